"""The grown hub as its operator runs it: web processes, a Celery worker and beat, each a process of its own."""

import asyncio
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psycopg

from kit.durations import seconds
from lab.faults.oplog import OpLog
from lab.hub_process import CELERY, DEFAULTS, SERVE
from lab.hub_storage import hub_env, manage
from lab.minting import mint_tokens
from lab.processes import Program, free_port, printed
from lab.servers import Postgres, Redis, Servers

START_WITHIN_S = 90
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
class Stack:
    """A running hub. `urls` has one address per web process; `url` is the first.

    `scale`: the factor on the durations of the hub. `env`: settings beside `SETTINGS`. `via`: given where
    PostgreSQL and Redis listen, says where the hub's own processes are to reach them: a fault puts its proxy in
    between so. The harness itself always goes straight.
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
    _logs: int = 0
    _supervisor: asyncio.Task[None] | None = None

    async def start(self) -> None:
        """Start everything; whatever fails, `stop` ends what was started."""
        self.folder.mkdir(parents=True, exist_ok=True)
        self.folder.chmod(0o755)
        self.postgres, self.redis = Postgres(self.folder), Redis(self.folder)
        await asyncio.to_thread(self._start_servers)
        straight = Servers(self.postgres.port, self.redis.port)
        seen = self.via(straight) if self.via else straight
        self.urls = [f"http://127.0.0.1:{free_port()}" for _ in range(self.processes)]
        self.web = [None] * self.processes
        settings = SETTINGS | {"PUBLIC_URL": self.urls[0], "DATA_DIR": str(self.folder / "data")}
        settings |= {
            "TEST_TIME_SCALE": str(self.scale),
            "REPLY_WAIT_S": str(self.reply_wait_s),
            "DATABASE_URL": self.postgres.url(DATABASE, port=seen.postgres_port),
            "REDIS_URL": self.redis.url(port=seen.redis_port),
        }
        self._env = settings | {name: str(value) for name, value in self.env.items()}
        await asyncio.to_thread(manage, self._env, "migrate", "--verbosity", "0")
        await asyncio.gather(self.start_worker(), self.start_beat(), *map(self.serve, range(self.processes)))
        self._supervisor = asyncio.get_running_loop().create_task(self._restart_worker(), name="supervisor")

    def seconds(self, real_s: float, *, at_least_s: float = 0.0) -> float:
        """How long a duration of the contract is in this hub."""
        return seconds(real_s, at_least_s=at_least_s, scale=self.scale)

    @property
    def reply_wait_s(self) -> float:
        """How long its callers wait for a reply."""
        return self.seconds(REPLY_WAIT_S, at_least_s=6.0)

    @property
    def url(self) -> str:
        """The first web process."""
        return self.urls[0]

    def stop(self) -> None:
        """End everything, by kill; the folder stays."""
        if self._supervisor is not None:
            self._supervisor.cancel()
        for program in [*self.web, self.worker, *self.beats]:
            if program is not None:
                program.kill()
        self.postgres.stop("immediate")
        self.redis.stop()

    async def serve(self, index: int, **env: object) -> None:
        """Start the web process of `urls[index]`, again perhaps, and wait until it serves. `env`: for this one."""
        port = self.urls[index].rpartition(":")[2]
        program = self._program(SERVE, f"web-{index}", f"ready {self.urls[index]}", PORT=port, **env)
        self.web[index] = program
        await asyncio.to_thread(program.start)
        rows = self.sql("SELECT id FROM agents_process WHERE pid = %s ORDER BY started_at", program.pid)
        self._process_ids[index] = rows[-1][0] if rows else ""
        self.log.write("start", process=self._process_ids[index], url=index)

    def process_id(self, index: int) -> str:
        """What the hub calls that web process, or called it while it lived."""
        return self._process_ids[index]

    async def kill_web(self, index: int) -> None:
        """kill -9."""
        self._running(index).kill()
        await self.web_exited(index, "kill -9")

    def terminate_web(self, index: int) -> None:
        """SIGTERM; it drains, which takes a while."""
        self._running(index).ask_to_stop()

    async def web_exited(self, index: int, how: str, *, within_s: float = 60) -> int:
        """Wait for the end of a web process, and note it; what it left with.

        Raises:
            ProgramError: it did not end in time, and was killed.
        """
        program = self._running(index)
        code = await asyncio.to_thread(program.exit_code, within_s=within_s)
        self.web[index] = None
        self.log.write("death", process=self._process_ids[index], url=index, how=how)
        return code

    async def start_worker(self) -> None:
        """A Celery worker; it runs no schedule."""
        command = [*CELERY, "worker", "-c", "2", "--without-mingle", "--without-gossip", "-l", "INFO"]
        self.worker = self._program(command, "worker", " ready.")
        await asyncio.to_thread(self.worker.start)

    def kill_worker(self) -> None:
        """kill -9 of the worker and of its children."""
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

    async def start_beat(self) -> None:
        """One more beat, which says when what is due."""
        schedule = str(self.folder / f"beat-{self._logs}")
        command = [*CELERY, "beat", "-s", schedule, "-l", "INFO", "--pidfile="]
        program = self._program(command, "beat", "beat: Starting")
        self.beats.append(program)
        await asyncio.to_thread(program.start)

    async def restart_postgres(self, mode: str) -> None:
        """Stop PostgreSQL in a mode of pg_ctl, fast or immediate, and start it again at once."""
        await asyncio.to_thread(self.postgres.stop, mode)
        await asyncio.to_thread(self.postgres.start)

    def kill_beats(self) -> None:
        """No beat is left."""
        for program in self.beats:
            program.kill()
        self.beats.clear()

    def sql(self, statement: str, *values: object) -> list[Row]:
        """Rows of the hub's database, straight from PostgreSQL."""
        with psycopg.connect(self.postgres.url(DATABASE), autocommit=True, connect_timeout=5) as connection:
            cursor = connection.execute(statement, values or None)
            return cursor.fetchall() if cursor.description else []

    def mint(self, wanted: Iterable[tuple[str, str]]) -> None:
        """Make `tokens[login, kind]` of these."""
        missing = [(login, kind, False) for login, kind in wanted if (login, kind) not in self.tokens]
        minted = mint_tokens(hub_env(self._env), missing)
        self.tokens |= {(login, kind): token for (login, kind, _), token in minted.items()}

    def logs(self) -> list[Path]:
        """What every process of the stack ever printed."""
        return sorted(self.folder.glob("*.log"))

    def _start_servers(self) -> None:
        self.redis.start()
        self.postgres.start()
        with psycopg.connect(self.postgres.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {DATABASE}")

    def _running(self, index: int) -> Program:
        program = self.web[index]
        assert program is not None, f"web process {index} is not running"
        return program

    def _program(self, command: Sequence[str], name: str, ready: str, **env: object) -> Program:
        self._logs += 1
        given = {key: str(value) for key, value in env.items()}
        log = self.folder / f"{name}-{self._logs:04}.log"
        env_of_it = hub_env(self._env | given)
        return Program(command, log, env=env_of_it, is_ready=printed(ready), within_s=START_WITHIN_S)
