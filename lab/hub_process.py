"""One hub as its operator runs it: `manage.py serve`, once or several times, over one home."""

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Self

from lab.forked import ForkedProcess
from lab.homes import ROOT, Home, hub_env
from lab.minting import mint_tokens
from lab.servers import free_port
from lab.waiting import SCALE, until

READY_WITHIN_S = 60
DEFAULTS = {
    "HOST": "127.0.0.1",
    "DEMO": "0",
    "DEV_LOGIN": "0",
    "CALLER_RATE_PER_MINUTE": "0",
    "TEST_TIME_SCALE": str(SCALE),
}


@dataclass
class Program:
    """A child process of ours and everything it printed."""

    process: subprocess.Popen[bytes] | ForkedProcess
    log: Path

    @classmethod
    def start(cls, command: list[str], env: dict[str, str], log: Path, *, folder: Path = ROOT) -> Self:
        with log.open("wb") as output:
            process = subprocess.Popen(
                command, env=env, cwd=folder, stdout=output, stderr=output, start_new_session=True
            )
        return cls(process, log)

    @classmethod
    def serve(cls, env: dict[str, str], log: Path) -> Self:
        """`manage.py serve`."""
        log.touch()
        return cls(ForkedProcess(["manage.py", "serve"], env, ROOT, log), log)

    @property
    def said(self) -> str:
        return self.log.read_text(errors="replace")

    def says(self, line: str) -> bool:
        code = self.process.poll()
        assert code is None, f"ended with {code}:\n{self.said}"
        return line in self.said

    def exit_code(self, *, within_s: float = 40) -> int:
        """Wait for its end; one that does not leave in time is killed and fails the test."""
        try:
            return self.process.wait(within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            raise AssertionError(f"did not leave within {within_s} s:\n{self.said}") from None

    def discard(self) -> None:
        """End it and its children whatever it takes; fine when it ended before."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()


@dataclass
class HubProcess:
    """A running hub. `urls` has one address per web process; `url` is the first."""

    home: Home
    urls: list[str]
    programs: list[Program] = field(default_factory=list)
    worker: Program | None = None
    _tokens: dict[tuple[str, str, bool], str] = field(default_factory=dict)
    _env: dict[str, str] = field(default_factory=dict)

    @classmethod
    def start(cls, home: Home, *, processes: int = 1, worker: bool = False, **env: object) -> Self:
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
        """Fail with all it said when the process is gone."""
        self.programs[index].says("")

    @property
    def url(self) -> str:
        return self.urls[0]

    def serve(self, index: int) -> None:
        """Start the web process of `urls[index]`, or start it again, and wait for its ready line."""
        env = self._env | {"PORT": self.urls[index].rpartition(":")[2]}
        log = self._log(f"serve-{index}")
        program = Program.serve(env, log)
        self.programs[index : index + 1] = [program]
        ready = f"ready {self.urls[index]}"
        until(lambda: program.says(ready), f"{ready}\n{program.said}", within_s=READY_WITHIN_S)

    def mint(self, login: str, kind: str, *, admin: bool = False) -> str:
        """A token of that login; the same one each time."""
        wanted = (login, kind, admin)
        if wanted not in self._tokens:
            self._mint([wanted])
        return self._tokens[wanted]

    def mint_again(self, login: str, kind: str) -> str:
        """A further token of that login, beside those it has."""
        self._mint([(login, kind, False)])
        return self._tokens[login, kind, False]

    def mint_sessions(self, logins: Iterable[str]) -> list[str]:
        """Session tokens of many logins."""
        wanted = [(login, "session", False) for login in logins]
        self._mint(set(wanted) - set(self._tokens))
        return [self._tokens[each] for each in wanted]

    def kill9(self, index: int = 0) -> None:
        self.programs[index].process.kill()
        self.programs[index].exit_code()

    def terminate(self, index: int = 0) -> None:
        """SIGTERM; it may take a while to leave."""
        self.programs[index].process.terminate()

    async def exit_code(self, index: int = 0, *, within_s: float = 40) -> int:
        """What it left with."""
        return await asyncio.to_thread(self.programs[index].exit_code, within_s=within_s)

    def stop(self) -> None:
        """End everything at once; the home stays."""
        for program in [*self.programs, *([self.worker] if self.worker else [])]:
            program.discard()

    def _mint(self, wanted: Iterable[tuple[str, str, bool]]) -> None:
        self._tokens |= mint_tokens(self._env, wanted)

    def _start_worker(self) -> None:
        schedule = str(self.home.folder / "beat-schedule")
        command = [
            sys.executable,
            "-m",
            "celery",
            "-A",
            "hub",
            "worker",
            "-B",
            "-s",
            schedule,
            "-c",
            "1",
            "-l",
            "INFO",
        ]
        worker = self.worker = Program.start(command, self._env, self._log("celery"))
        until(lambda: worker.says(" ready."), "the Celery worker is ready", within_s=READY_WITHIN_S)

    def _log(self, name: str) -> Path:
        folder = self.home.folder.parent / f"{self.home.folder.name}-logs"
        folder.mkdir(exist_ok=True)
        return folder / f"{name}-{len(os.listdir(folder))}.log"


StartHub = Callable[..., HubProcess]
