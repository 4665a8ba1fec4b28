"""A real PostgreSQL and a real Redis from PyPI wheels, on free loopback ports, as our own child processes."""

import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psycopg
import redis

from deploy.stack.wheels import Command, initialise, programs_of_postgres, redis_program, serving, unprivileged
from deploy.stack.wheels import free_port as free_port
from lab.waiting import until

REDIS_DATABASES = 512
DATA = "postgres"  # the folder of PostgreSQL's data
FAST_AND_FORGETFUL = ["-c", "fsync=off", "-c", "full_page_writes=off", "-c", "max_connections=200"]
Child = subprocess.Popen[bytes]


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
def running_servers(cluster: Path | None = None, *, keep_as: Path | None = None) -> Iterator[Servers]:
    """Start both in a temporary folder; end both and remove it.

    `cluster`: a data folder of PostgreSQL to begin with a copy of; `keep_as`: where its own goes at the end.
    """
    folder = Path(tempfile.mkdtemp(prefix="hub-servers-"))
    folder.chmod(0o755)
    try:
        with _postgres(folder, cluster) as postgres_port, _redis(folder) as redis_port:
            yield Servers(postgres_port, redis_port)
        if keep_as:
            _copy(folder / DATA, keep_as)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@contextmanager
def _postgres(folder: Path, cluster: Path | None) -> Iterator[int]:
    data, port, user = folder / DATA, free_port(), unprivileged()
    programs = programs_of_postgres(folder, user)
    if cluster:
        _copy(cluster, data)
    else:
        initialise(data, programs, user, "--no-sync")
    serve = [*serving(data, programs, port), *FAST_AND_FORGETFUL]
    url = f"postgres://postgres@127.0.0.1:{port}/postgres"
    with _child(serve, folder / "postgres.log", **user) as process:
        until(lambda: answers(process, lambda: psycopg.connect(url).close()), "PostgreSQL answers", within_s=30)
        yield port


@contextmanager
def _redis(folder: Path) -> Iterator[int]:
    port = free_port()
    options = ["--bind", "127.0.0.1", "--save", "", "--databases", str(REDIS_DATABASES), "--dir", str(folder)]
    command: Command = [redis_program(), "--port", str(port), *options]
    with _child(command, folder / "redis.log") as process, redis.Redis(port=port) as client:
        until(lambda: answers(process, client.ping), "Redis answers", within_s=30)
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


def _copy(data: Path, to: Path) -> None:
    """Copy a data folder with its owner and modes, which `shutil` would not."""
    subprocess.run(["cp", "-a", data, to], check=True)


def answers(process: Child, ask: Callable[[], object]) -> bool:
    """Whether a server answers yet; fails when it ended instead."""
    assert process.poll() is None, f"{process.args!r} ended with {process.returncode}"
    try:
        ask()
    except (psycopg.OperationalError, redis.ConnectionError):
        return False
    return True
