"""One hub as its operator runs it: `manage.py serve`, once or several times, over one home."""

import asyncio
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from lab.hub_storage import HubStorage, hub_env
from lab.minting import mint_tokens
from lab.processes import Program, free_port, printed, python
from lab.waiting import SCALE

SERVE = python("manage.py", "serve")
CELERY = python("-m", "celery", "-A", "hub")
DEFAULTS = {
    "HOST": "127.0.0.1",
    "DEMO": "0",
    "DEV_LOGIN": "0",
    "GATEWAY": "1",
    "CALLER_RATE_PER_MINUTE": "0",
    "TEST_TIME_SCALE": str(SCALE),
}


@dataclass
class HubProcess:
    """A running hub. `urls` has one address per web process; `url` is the first."""

    home: HubStorage
    urls: list[str]
    programs: list[Program] = field(default_factory=list)
    worker: Program | None = None
    _tokens: dict[tuple[str, str, bool], str] = field(default_factory=dict)
    _env: dict[str, str] = field(default_factory=dict)

    @classmethod
    def start(cls, home: HubStorage, *, processes: int = 1, worker: bool = False, **env: object) -> Self:
        """Start the web processes, and the Celery worker if wanted; return when all are ready."""
        urls = [f"http://127.0.0.1:{free_port()}" for _ in range(processes)]
        settings = DEFAULTS | {"PUBLIC_URL": urls[0]} | {name: str(value) for name, value in env.items()}
        hub = cls(home, urls, _env=hub_env(settings | dict(home.env)))
        try:
            for index in range(processes):
                hub.serve(index)
            if worker:
                hub._start_worker()
        except BaseException:
            hub.stop()
            raise
        return hub

    def check_running(self, index: int = 0) -> None:
        """Raise ProgramError, with what it printed, when the process is gone."""
        self.programs[index].check()

    @property
    def url(self) -> str:
        return self.urls[0]

    def serve(self, index: int) -> None:
        """Start the web process of `urls[index]`, or start it again, and wait for its ready line."""
        program = self.web_program(index)
        self.programs[index : index + 1] = [program]
        program.start()

    def web_program(self, index: int) -> Program:
        """How the web process of `urls[index]` is started."""
        env = self._env | {"PORT": self.urls[index].rpartition(":")[2]}
        is_ready = printed(f"ready {self.urls[index]}")
        return Program(SERVE, self._log(f"serve-{index}"), env=env, is_ready=is_ready, is_forked=True)

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
        wanted = [(login, "session", False) for login in logins]
        self._mint(set(wanted) - set(self._tokens))
        return [self._tokens[each] for each in wanted]

    def kill9(self, index: int = 0) -> None:
        """kill -9."""
        self.programs[index].kill()

    def terminate(self, index: int = 0) -> None:
        """SIGTERM; it may take a while to stop."""
        self.programs[index].ask_to_stop()

    async def exit_code(self, index: int = 0, *, within_s: float = 40) -> int:
        """What it stopped with."""
        return await asyncio.to_thread(self.programs[index].exit_code, within_s=within_s)

    def stop(self) -> None:
        """End everything at once; the home stays."""
        for program in [*self.programs, *([self.worker] if self.worker else [])]:
            program.kill()

    def _mint(self, wanted: Iterable[tuple[str, str, bool]]) -> None:
        self._tokens |= mint_tokens(self._env, wanted)

    def _start_worker(self) -> None:
        schedule = str(self.home.folder / "beat-schedule")
        options = ["-B", "-s", schedule, "-c", "1", "-l", "INFO"]
        command = [*CELERY, "worker", *options]
        self.worker = Program(
            command, self._log("celery"), env=self._env, is_ready=printed(" ready."), is_forked=True
        )
        self.worker.start()

    def _log(self, name: str) -> Path:
        folder = self.home.folder.parent / f"{self.home.folder.name}-logs"
        folder.mkdir(exist_ok=True)
        return folder / f"{name}-{len(os.listdir(folder))}.log"


StartHub = Callable[..., HubProcess]
