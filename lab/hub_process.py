"""A hub as its operator runs it: `manage.py serve`, once or several times, on one storage."""

import asyncio
import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from lab import ROOT
from lab.hub_storage import HubStorage, hub_env
from lab.processes import Program, free_port, printed, python
from lab.statements import mint_tokens
from lab.waiting import SCALE

SERVE = tuple(python("manage.py", "serve"))
CELERY = python("-m", "celery", "-A", "hub")
DEFAULTS = {
    "HOST": "127.0.0.1",
    "DEMO": "0",
    "DEV_LOGIN": "0",
    "GATEWAY": "1",
    "CALLER_RATE_PER_MINUTE": "0",
    "ACCOUNT_SHARE_PERCENT": "0",
    "SOCKET_BYTES_PER_SECOND": "0",
    "TEST_TIME_SCALE": str(SCALE),
}


@dataclass
class HubProcess:
    """A running hub, which a block with it stops at the end. `urls`: one of each web process; `url` is the first.

    `command`: what a web process runs. `cores`: each web process may use one of them, in turn. Without `is_forked`
    no process is forked from one that has imported the libraries: its memory is its own, and it reads PYTHONPATH.
    `code`: the checkout that each web process runs, and last the checkout that the worker runs; a test may change
    one before it starts that process again.
    """

    home: HubStorage
    urls: list[str]
    programs: list[Program] = field(default_factory=list)
    worker: Program | None = None
    command: Sequence[str] = SERVE
    cores: Sequence[int] = ()
    is_forked: bool = True
    code: list[Path] = field(default_factory=list)
    _tokens: dict[tuple[str, str, bool], str] = field(default_factory=dict)
    _env: dict[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.code = self.code or [ROOT] * (len(self.urls) + 1)

    @classmethod
    def start(
        cls,
        home: HubStorage,
        *,
        processes: int = 1,
        worker: bool = False,
        command: Sequence[str] = SERVE,
        cores: Sequence[int] = (),
        name: str = "127.0.0.1",
        code: Sequence[Path] = (),
        **env: object,
    ) -> Self:
        """Start the web processes, and the Celery worker if wanted; return when all are ready.

        `name`: the host of `PUBLIC_URL`, if a client resolves another one to this machine. `code`: by default
        today's for all processes. `env`: settings; None: as on every hub, not as in `DEFAULTS`.
        """
        urls = [f"http://127.0.0.1:{free_port()}" for _ in range(processes)]
        public = urls[0].replace("127.0.0.1", name)
        wanted = DEFAULTS | {"PUBLIC_URL": public} | env
        settings = {key: str(value) for key, value in wanted.items() if value is not None}
        hub = cls(home, urls, _env=hub_env(settings | dict(home.env)))
        hub.command, hub.cores, hub.is_forked = command, cores, not cores
        hub.code = [*code] or hub.code
        try:
            for index in range(processes):
                hub.serve(index)
            if worker:
                hub.start_worker()
        except BaseException:
            hub.stop()
            raise
        return hub

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()

    def check_running(self, index: int = 0) -> None:
        """Raise ProgramError, with the last output, when the process has ended."""
        self.programs[index].check()

    @property
    def url(self) -> str:
        return self.urls[0]

    def serve(self, index: int) -> None:
        """Start the web process of `urls[index]`, or start it again, and wait for its ready line."""
        program = self.web_program(index)
        self.programs[index : index + 1] = [program]
        program.start()

    def web_program(self, index: int, **env: object) -> Program:
        """The program that is the web process of `urls[index]`. `env`: settings of this process alone."""
        port, ready = self.urls[index].rpartition(":")[2], f"ready {self.urls[index]}"
        program = self.program(self.command, f"serve-{index}", ready, PORT=port, **env)
        self._run_code(program, self.code[index])
        program.core = self.cores[index % len(self.cores)] if self.cores else None
        return program

    def program(self, command: Sequence[str], name: str, ready: str, **env: object) -> Program:
        """A program of the hub with a log of its own, not yet started. `ready`: what it prints then."""
        own = {key: str(value) for key, value in env.items()}
        is_ready = printed(ready)
        return Program(command, self._log(name), env=self._env | own, is_ready=is_ready, is_forked=self.is_forked)

    def mint(self, login: str, kind: str, *, admin: bool = False) -> str:
        """A token of that login; the same one each time."""
        wanted = (login, kind, admin)
        if wanted not in self._tokens:
            self._mint([wanted])
        return self._tokens[wanted]

    def mint_again(self, login: str, kind: str) -> str:
        """A further token of that login, which `mint` does not return: a test may revoke it."""
        wanted = (login, kind, False)
        return mint_tokens(self._env, [wanted])[wanted]

    def mint_sessions(self, logins: Iterable[str]) -> list[str]:
        """Session tokens of many logins."""
        wanted = [(login, "session") for login in logins]
        tokens = self.mint_all(wanted)
        return [tokens[each] for each in wanted]

    def mint_all(self, wanted: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
        """Tokens by login and kind; the same ones each time."""
        keys = {(login, kind): (login, kind, False) for login, kind in wanted}
        self._mint(set(keys.values()) - set(self._tokens))
        return {each: self._tokens[key] for each, key in keys.items()}

    def kill9(self, index: int = 0) -> None:
        """Kill a web process."""
        self.programs[index].kill()

    def terminate(self, index: int = 0) -> None:
        """Send SIGTERM to a web process, which drains before it ends."""
        self.programs[index].ask_to_stop()

    async def exit_code(self, index: int = 0, *, within_s: float = 40) -> int:
        """The exit code of a web process."""
        return await asyncio.to_thread(self.programs[index].exit_code, within_s=within_s)

    @property
    def all_programs(self) -> list[Program]:
        """The web processes, and the Celery worker if there is one."""
        return [*self.programs, *([self.worker] if self.worker else [])]

    def stop(self) -> None:
        """End all processes at once; the storage stays."""
        for program in self.all_programs:
            program.kill()

    def _mint(self, wanted: Iterable[tuple[str, str, bool]]) -> None:
        self._tokens |= mint_tokens(self._env, wanted)

    def start_worker(self) -> None:
        """Start the Celery worker with beat, and wait until it is ready."""
        schedule = str(self.home.folder / "beat-schedule")
        options = ["-B", "-s", schedule, "-c", "1", "-l", "INFO"]
        self.worker = self.program([*CELERY, "worker", *options], "celery", " ready.")
        self._run_code(self.worker, self.code[-1])
        self.worker.start()

    @staticmethod
    def _run_code(program: Program, checkout: Path) -> None:
        """Let a program run a checkout, not forked from a process that has imported today's code."""
        if checkout != ROOT:
            program.folder, program.is_forked = checkout, False

    @property
    def logs(self) -> Path:
        """The folder of what the hub's programs print."""
        return self.home.folder.parent / f"{self.home.folder.name}-logs"

    def _log(self, name: str) -> Path:
        self.logs.mkdir(parents=True, exist_ok=True)
        return self.logs / f"{name}-{len(os.listdir(self.logs))}.log"


StartHub = Callable[..., HubProcess]
