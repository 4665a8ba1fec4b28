"""`make run-stack` as a developer uses it: started, observed by its output, ended by Ctrl-C."""

import os
import re
import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil

from lab import ROOT
from lab.hub_storage import hub_env
from lab.processes import Program, free_port, python
from lab.waiting import until

READY_WITHIN_S = 100


class Stack:
    def __init__(self, program: Program) -> None:
        self.program = program

    @property
    def urls(self) -> list[str]:
        return re.findall(r"^web \d runs on (\S+)$", self.program.output, re.MULTILINE)

    @property
    def tokens(self) -> list[str]:
        """Those of the demo, the newest last."""
        return re.findall(r"^  (cw_sess_\w+)$", self.program.output, re.MULTILINE)

    @property
    def token(self) -> str:
        return self.tokens[0]

    def find(self, url: str) -> psutil.Process:
        """The web process that listens there."""
        port = url.rpartition(":")[2]
        children = psutil.Process(self.program.pid).children()
        found = [one for one in children if "serve" in one.cmdline() and one.environ()["PORT"] == port]
        assert len(found) == 1, [one.cmdline() for one in children]
        return found[0]

    def find_program(self, name: str) -> psutil.Process:
        [found] = [one for one in psutil.Process(self.program.pid).children() if one.name() == name]
        return found

    def wait_for(self, line: str, *, after: int = 0) -> None:
        """`after`: how many characters of its output are left out."""

        def is_printed() -> bool:
            self.program.check()
            return line in self.program.output[after:]

        until(is_printed, line, within_s=READY_WITHIN_S)

    def command(self, command: str) -> str:
        """Run a command of the hub in the way that was printed; what it says."""
        [line] = re.findall(r"^its commands: (.+) help$", self.program.output, re.MULTILINE)
        return subprocess.check_output(f"{line} {command}", shell=True, cwd=ROOT, text=True)

    def leave(self) -> int:
        """Ctrl-C; the exit code."""
        self.program.send_signal(signal.SIGINT)
        return self.program.exit_code(within_s=90)


@contextmanager
def running_stack(folder: Path, path: str = "", **env: str) -> Iterator[Stack]:
    """`path`: where to look for programs first, such as a proxy."""
    search = f"{path}:{os.environ['PATH']}" if path else os.environ["PATH"]
    settings = {"DATA_DIR": str(folder / "data"), "PORT": str(free_port()), "PATH": search, **env}
    program = Program(python("-m", "deploy.stack"), folder / "stack.log", env=hub_env(settings))
    program.start()
    try:
        stack = Stack(program)
        stack.wait_for("Ctrl-C ends everything")
        yield stack
    finally:
        if not program.has_ended:
            stack.leave()
        program.kill()
        _forget(folder / "data" / "stack" / "postgres")


def _forget(home: Path) -> None:
    """Remove the folder that root keeps elsewhere, because PostgreSQL runs as the user `nobody`."""
    if home.is_symlink():
        shutil.rmtree(home.resolve().parent, ignore_errors=True)
