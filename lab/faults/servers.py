"""PostgreSQL that keeps what it said it kept, and Redis that keeps nothing: both stopped and started at will.

The same wheels as the tests' own (`lab.servers`), but durable: fsync and synchronous_commit are on.
"""

import asyncio
import signal
import subprocess
from pathlib import Path

import psycopg
import redis

from deploy.stack.wheels import free_port, initialise, programs_of_postgres, redis_program, serving, unprivileged
from lab.servers import answers
from lab.waiting import until

START_WITHIN_S = 60
STOP_WITHIN_S = 60
DURABLE = ["-c", "max_connections=200", "-c", "fsync=on", "-c", "synchronous_commit=on"]
STOPPING = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
Child = subprocess.Popen[bytes]


class Postgres:
    """One server with its data in `folder`. `stop` takes the modes of pg_ctl: fast, immediate."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._data = folder / "postgres"
        self._user = unprivileged()
        self._programs = programs_of_postgres(folder, self._user)
        self._child: Child | None = None

    def url(self, database: str, *, port: int | None = None) -> str:
        """How to reach a database; `port`: through something in between."""
        return f"postgres://postgres@127.0.0.1:{port or self.port}/{database}"

    def program(self, name: str) -> str:
        """One of PostgreSQL's own programs."""
        return str(self._programs / name)

    def create(self) -> None:
        """Make the data folder; once."""
        initialise(self._data, self._programs, self._user)

    def start(self, *options: str) -> None:
        """Start and wait until it answers. `options`: further ones of `postgres`."""
        command = serving(self._data, self._programs, self.port)
        with (self.folder / "postgres.log").open("ab") as log:
            self._child = child = subprocess.Popen(
                [*command, *DURABLE, *options], stdout=log, stderr=log, cwd=self.folder, **self._user
            )
        until(lambda: answers(child, self._greet), "PostgreSQL answers", within_s=START_WITHIN_S)

    def stop(self, mode: str = "fast") -> None:
        """Stop it; fine when it is stopped."""
        if self._child is not None:
            _end(self._child, STOPPING[mode])
            self._child = None

    async def restart(self, mode: str, *options: str) -> None:
        """Stop in a mode and start again at once."""
        await asyncio.to_thread(self.stop, mode)
        await asyncio.to_thread(self.start, *options)

    def _greet(self) -> None:
        psycopg.connect(self.url("postgres"), connect_timeout=2).close()


class Redis:
    """One server that forgets everything when it stops."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.port = free_port()
        self._child: Child | None = None

    def url(self, *, port: int | None = None) -> str:
        """How to reach it; `port`: through something in between."""
        return f"redis://127.0.0.1:{port or self.port}/0"

    def start(self) -> None:
        """Start, empty, and wait until it answers."""
        options = ["--bind", "127.0.0.1", "--save", "", "--appendonly", "no", "--dir", str(self.folder)]
        with (self.folder / "redis.log").open("ab") as log:
            self._child = child = subprocess.Popen(
                [redis_program(), "--port", str(self.port), *options], stdout=log, stderr=log, cwd=self.folder
            )
        with redis.Redis(port=self.port) as client:
            until(lambda: answers(child, client.ping), "Redis answers", within_s=START_WITHIN_S)

    def stop(self) -> None:
        """Kill it; fine when it is stopped."""
        if self._child is not None:
            _end(self._child, signal.SIGKILL)
            self._child = None


def _end(child: Child, how: signal.Signals) -> None:
    child.send_signal(how)
    try:
        child.wait(STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
