"""A distributed hub as an operator runs it: web processes, a Celery worker and a beat, on PostgreSQL and Redis."""

import asyncio
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any

import psutil
import psycopg
from psycopg.rows import dict_row

from kit.durations import seconds
from lab.faults.oplog import OpLog
from lab.hub_process import CELERY, DEFAULTS, HubProcess
from lab.hub_storage import HubStorage, hub_env, manage
from lab.processes import Program, free_port
from lab.servers import Postgres, Redis, Servers

START_WITHIN_S, MIGRATED_WITHIN_S = 180, 600  # suites share their machine
AGAIN_AFTER_S = 2.0  # as deploy/systemd/clawbridge-worker.service has it
DATABASE = "hub"
REPLY_WAIT_S = 20.0
SETTINGS = DEFAULTS | {
    "TASK_STORE": "journal",
    "WEBHOOK_ALLOW_PRIVATE": "1",
    "DRAIN_S": "10",
}
Via = Callable[[Servers], Servers]
Row = tuple[Any, ...]


@dataclass
class FaultStack:
    """A running hub. `urls` has one address per web process; `url` is the first.

    `scale`: the factor on the durations of the hub. `env`: settings beside `SETTINGS`. `via`: it makes from the
    addresses of PostgreSQL and Redis those that the hub's processes use, so that a fault can put a proxy between.
    The suite itself uses no proxy.
    """

    folder: Path
    log: OpLog
    scale: float = 1.0
    processes: int = 2
    env: Mapping[str, object] = field(default_factory=dict)
    via: Via | None = None
    urls: list[str] = field(default_factory=list)
    web: list[Program | None] = field(default_factory=list)
    worker: Program | None = None
    beats: list[Program] = field(default_factory=list)
    tokens: dict[tuple[str, str], str] = field(default_factory=dict)
    _process_ids: dict[int, str] = field(default_factory=dict)
    _supervisor: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start everything; when that fails, `stop` ends the processes that were started."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self.postgres, self.redis = Postgres(self.folder), Redis(self.folder)
        await asyncio.to_thread(self._start_servers)
        straight = Servers(self.postgres.port, self.redis.port)
        seen = self.via(straight) if self.via else straight
        self.urls = [f"http://127.0.0.1:{free_port()}" for _ in range(self.processes)]
        self.web = [None] * self.processes
        storage = HubStorage("grown", {
            "DATA_DIR": str(self.folder / "data"),
            "DATABASE_URL": self.postgres.url(DATABASE, port=seen.postgres_port),
            "REDIS_URL": self.redis.url(port=seen.redis_port),
        })  # fmt: skip
        await self.create_hub(storage)
        await asyncio.gather(self.start_worker(), self.start_beat(), *map(self.serve, range(self.processes)))
        self._supervisor = asyncio.get_running_loop().create_task(self._restart_worker(), name="supervisor")

    async def create_hub(self, storage: HubStorage) -> None:
        """Make the tables of a hub, and `hub`, whose processes are not started yet."""
        durations = {"TEST_TIME_SCALE": str(self.scale), "REPLY_WAIT_S": str(self.reply_wait_s)}
        own = {name: str(value) for name, value in self.env.items()}
        env = hub_env(SETTINGS | {"PUBLIC_URL": self.urls[0]} | durations | dict(storage.env) | own)
        self.hub = HubProcess(storage, self.urls, is_forked=False, _env=env)
        await asyncio.to_thread(manage, storage.env, "migrate", "--verbosity", "0", within_s=MIGRATED_WITHIN_S)

    def seconds(self, real_s: float, *, at_least_s: float = 0.0) -> float:
        """The length of a documented duration in this hub."""
        return seconds(real_s, at_least_s=at_least_s, scale=self.scale)

    @property
    def reply_wait_s(self) -> float:
        """The seconds that callers of this hub wait for a reply."""
        return self.seconds(REPLY_WAIT_S, at_least_s=6.0)

    @property
    def url(self) -> str:
        """The first web process."""
        return self.urls[0]

    def stop(self) -> None:
        """Kill everything; the folder stays."""
        if self._supervisor is not None:
            self._supervisor.cancel()
        for program in [*self.web, self.worker, *self.beats]:
            if program is not None:
                program.kill()
        self.postgres.stop("immediate")
        self.redis.stop()

    async def serve(self, index: int, **env: object) -> None:
        """Start the web process of `urls[index]`, and wait until it serves. `env`: settings of this process."""
        program = self.web[index] = self.hub.web_program(index, **env)
        program.within_s = START_WITHIN_S
        await asyncio.to_thread(program.start)
        rows = self.sql("SELECT id FROM agents_process WHERE pid = %s ORDER BY started_at", program.pid)
        self._process_ids[index] = rows[-1][0] if rows else ""
        self.log.write("start", process=self._process_ids[index], url=index)

    def process_of(self, index: int = 0) -> psutil.Process:
        """A web process, to look at its memory and its sockets."""
        return psutil.Process(self._running(index).pid)

    def process_id(self, index: int) -> str:
        """The id of a web process in the hub's own table; also after its end."""
        return self._process_ids[index]

    async def kill_web(self, index: int) -> None:
        """Kill a web process."""
        self._running(index).kill()
        await self.web_exited(index, "kill -9")

    @contextmanager
    def web_paused(self, index: int) -> Iterator[None]:
        """Stop a web process (SIGSTOP) for the block; it continues afterwards, which is logged."""
        began = time.monotonic()
        try:
            with self._running(index).paused():
                yield
        finally:
            took_s = round(time.monotonic() - began, 3)
            self.log.write("pause", process=self._process_ids[index], url=index, took_s=took_s)

    def terminate_web(self, index: int) -> None:
        """Send SIGTERM; the process drains, which takes a while."""
        self._running(index).ask_to_stop()

    async def web_exited(self, index: int, how: str, *, within_s: float = 60) -> int:
        """Wait for the end of a web process, and log it; the exit code.

        Raises:
            ProgramError: the process did not end in time, and was killed.
        """
        program = self._running(index)
        code = await asyncio.to_thread(program.exit_code, within_s=within_s)
        self.web[index] = None
        self.log.write("death", process=self._process_ids[index], url=index, how=how)
        return code

    async def start_worker(self, **env: object) -> None:
        """Start a Celery worker, which runs no schedule. `env`: settings of this process."""
        command = [*CELERY, "worker", "-c", "2", "--without-mingle", "--without-gossip", "-l", "INFO"]
        self.worker = self.hub.program(command, "worker", " ready.", **env)
        self.worker.within_s = START_WITHIN_S
        await asyncio.to_thread(self.worker.start)

    def kill_worker(self) -> None:
        """Kill the worker and its children."""
        if self.worker is not None:
            self.worker.kill()
            self.worker = None

    async def _restart_worker(self) -> None:
        """Start a worker that ended by itself again, as systemd and containers do."""
        while True:
            await asyncio.sleep(AGAIN_AFTER_S)
            if self.worker is not None and self.worker.has_ended:
                self.log.write("restart", program="worker")
                await self.start_worker()

    async def start_beat(self, **env: object) -> None:
        """Start one more beat, which queues the periodic jobs. `env`: settings of this process."""
        command = [*CELERY, "beat", "-l", "INFO", "--pidfile="]
        program = self.hub.program(command, "beat", "beat: Starting", **env)
        program.command = [*program.command, "-s", program.log.with_suffix(".schedule")]
        self.beats.append(program)
        await asyncio.to_thread(program.start)

    async def restart_postgres(self, mode: str) -> None:
        """Stop PostgreSQL in a mode of pg_ctl, fast or immediate, and start it again at once."""
        await asyncio.to_thread(self.postgres.stop, mode)
        await asyncio.to_thread(self.postgres.start)

    def kill_beats(self) -> None:
        """Kill every beat."""
        for program in self.beats:
            program.kill()
        self.beats.clear()

    def sql(self, statement: str, *values: object) -> list[Row]:
        """Rows of the hub's database, without a proxy."""
        with psycopg.connect(self.postgres.url(DATABASE), autocommit=True, connect_timeout=5) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def rows(self, statement: str) -> list[dict[str, Any]]:
        """Rows of the hub's database, by column."""
        url = self.postgres.url(DATABASE)
        with psycopg.connect(url, row_factory=dict_row, autocommit=True) as connection:
            return connection.execute(statement.encode()).fetchall()

    def now(self) -> datetime:
        """The time of the database."""
        now: datetime = self.rows("SELECT clock_timestamp() AS now")[0]["now"]
        return now

    def dump(self) -> bytes:
        """All rows of all tables, as text."""
        command = [self.postgres.tool("pg_dump"), "--data-only", "--inserts", self.postgres.url(DATABASE)]
        return subprocess.run(command, capture_output=True, check=True).stdout

    def mint(self, wanted: Iterable[tuple[str, str]]) -> None:
        """Mint tokens into `tokens[login, kind]`."""
        self.tokens |= self.hub.mint_all(wanted)

    def cpu_s(self) -> list[float]:
        """Processor time of each web process that runs."""
        return [one.cpu_s() for one in self.web if one is not None]

    def logs(self) -> list[Path]:
        """The logs of all processes that were ever started."""
        return sorted(self.folder.rglob("*.log"))

    def _start_servers(self) -> None:
        self.redis.start()
        self.postgres.start()
        with psycopg.connect(self.postgres.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")

    def _running(self, index: int) -> Program:
        program = self.web[index]
        assert program is not None, f"web process {index} is not running"
        return program
