"""PostgreSQL and Redis from their PyPI wheels, as durable as they come: fsync stays on."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import redis

from deploy.stack.wheels import (
    Command,
    free_port,
    initialise,
    programs_of_postgres,
    redis_program,
    serving,
    unprivileged,
)
from lab.bench.children import Child, child, until


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
    data, port, user = folder / "postgres", free_port(), unprivileged()
    programs = programs_of_postgres(folder, user)
    initialise(data, programs, user)
    url = f"postgres://postgres@127.0.0.1:{port}/postgres"
    with child(serving(data, programs, port), folder / "postgres.log", cwd=folder, **user) as server:
        until(lambda: _postgres_answers(server, url), "PostgreSQL answers", 30)
        yield port


@contextmanager
def _redis(folder: Path) -> Iterator[int]:
    port = free_port()
    command: Command = [redis_program(), "--port", str(port), "--bind", "127.0.0.1", "--save", ""]
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
