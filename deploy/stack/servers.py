"""PostgreSQL and Redis from the wheels of requirements/dev.txt; their data stays in the stack's folder.

Root runs PostgreSQL as `nobody`, in a folder that `nobody` can reach.
"""

import hashlib
import secrets
import shutil
import signal
import subprocess
from pathlib import Path
from typing import Any

import psycopg
import redis

from deploy.stack.children import Child, CouldNotStart
from deploy.stack.wheels import (
    Command,
    free_port,
    give,
    programs_of_postgres,
    redis_program,
    serving,
    unprivileged,
)

REACHABLE = Path("/var/tmp")  # noqa: S108  survives restarts; the folder made in it must be root's own


def postgres(folder: Path) -> tuple[Child, str]:
    """PostgreSQL, and the URL of its database `postgres`."""
    user = unprivileged()
    home = _reachable(folder, user) / "postgres"
    programs = programs_of_postgres(home.parent, user)
    password, port = _password(folder), free_port()
    if not (home / "PG_VERSION").exists():
        _initialise(home, programs, password, user)
    url = f"postgres://postgres:{password}@127.0.0.1:{port}/postgres"
    command = serving(home, programs, port)
    options = {"cwd": home.parent, **user}
    child = Child("PostgreSQL", command, folder / "logs" / "postgres.log", lambda _: _takes(url), options=options)
    child.goes_with = signal.SIGINT  # its fast shutdown: SIGTERM would wait for every client
    return child, url


def redis_server(folder: Path) -> tuple[Child, str]:
    """Redis, and its URL."""
    password, port, data = _password(folder), free_port(), folder / "redis"
    data.mkdir(parents=True, exist_ok=True, mode=0o700)
    settings = data / "redis.conf"
    settings.touch(mode=0o600)
    settings.write_text(
        f'bind 127.0.0.1\nport {port}\nrequirepass {password}\ndir {data}\nsave ""\nappendonly no\n'
        "maxmemory 512mb\nmaxmemory-policy volatile-ttl\n"
    )
    url = f"redis://:{password}@127.0.0.1:{port}/0"
    return Child("Redis", [redis_program(), settings], folder / "logs" / "redis.log", lambda _: _pongs(url)), url


def _initialise(home: Path, programs: Path, password: str, user: dict[str, Any]) -> None:
    """Whole or not at all: it is made beside its place."""
    draft = home.with_name("postgres.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    secret = draft.with_name("password.new")
    secret.touch(mode=0o600)
    secret.write_text(password)
    give(draft, user)
    give(secret, user)
    command: Command = [programs / "initdb", "-D", draft, "-U", "postgres", "-E", "utf8", "-A", "scram-sha-256"]
    try:
        done = subprocess.run(
            [*command, f"--pwfile={secret}"], cwd=home.parent, capture_output=True, text=True, check=False, **user
        )
    finally:
        secret.unlink()
    if done.returncode:
        raise CouldNotStart(f"PostgreSQL made no database: {done.stderr}")
    draft.rename(home)


def _takes(url: str) -> bool:
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.OperationalError:
        return False
    return True


def _pongs(url: str) -> bool:
    try:
        with redis.Redis.from_url(url) as client:
            return bool(client.ping())
    except redis.ConnectionError:
        return False


def _password(folder: Path) -> str:
    file = folder / "password"
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not file.exists():
        file.touch(mode=0o600)
        file.write_text(secrets.token_hex(16))
    return file.read_text()


def _reachable(folder: Path, user: dict[str, Any]) -> Path:
    """The folder itself, or for `nobody` one outside of DATA_DIR, which is closed to all but its owner."""
    if not user:
        return folder
    name = hashlib.sha256(bytes(folder)).hexdigest()[:12]
    reachable = REACHABLE / f"clawbridge-stack-{name}"
    reachable.mkdir(mode=0o755, exist_ok=True)
    if reachable.is_symlink() or reachable.stat().st_uid != 0:
        raise CouldNotStart(f"{reachable} is somebody else's")
    reachable.chmod(0o755)
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    link = folder / "postgres"
    if link.is_dir() and not link.is_symlink():
        raise CouldNotStart(f"{link} was made by another user: run as that user, or remove it")
    link.unlink(missing_ok=True)
    link.symlink_to(reachable / "postgres")
    return reachable
