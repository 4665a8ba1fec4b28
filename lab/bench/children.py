"""Child processes: started on a chosen core, watched through /proc, ended for certain."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]
START_WITHIN_S = 60.0
STOP_WITHIN_S = 15.0
CPUS = sorted(os.sched_getaffinity(0))
SERVER_CORE, LOAD_CORE = CPUS[0], CPUS[-1]
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True)
class Child:
    """A running process of ours and everything it printed."""

    process: subprocess.Popen[str]
    log: Path

    @property
    def lines(self) -> list[str]:
        """What it printed so far, whole lines only."""
        text = self.log.read_text(errors="replace")
        return text[: text.rfind("\n") + 1].splitlines()

    def says(self, start: str) -> bool:
        """Whether it printed a line that begins so."""
        self.check()
        return any(line.startswith(start) for line in self.lines)

    def check(self) -> None:
        """Raise RuntimeError, with its last words, when it ended."""
        if self.process.poll() is not None:
            raise RuntimeError(
                f"{self.log.stem} ended with {self.process.returncode}:\n" + "\n".join(self.lines[-20:])
            )

    def cpu_s(self) -> float:
        """Processor time of all its threads."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND

    def rss_kib(self) -> int:
        """Resident memory."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])


@contextmanager
def child(
    command: Sequence[str | Path], log: Path, *, core: int = LOAD_CORE, env: Mapping[str, str] | None = None,
    ready: str = "", stdin: str = "", **options: Any,
) -> Iterator[Child]:  # fmt: skip
    """Run a program on one core; enter when it printed a line beginning with `ready`, end it at exit.

    It gets a session of its own, so that Ctrl-C reaches the bench alone, which then ends everything in order.
    """
    with log.open("w") as output, on_core(core):
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=output, stderr=output, text=True, start_new_session=True,
            env={**os.environ, **(env or {})}, **{"cwd": ROOT, **options},
        )  # fmt: skip
    try:
        assert process.stdin is not None
        process.stdin.write(stdin)
        process.stdin.close()
        running = Child(process, log)
        until(lambda: not ready or running.says(ready), f"{log.stem} is ready", START_WITHIN_S)
        yield running
    finally:
        process.terminate()
        try:
            process.wait(STOP_WITHIN_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def python(*arguments: str) -> list[str]:
    """The command that runs our own interpreter."""
    return [sys.executable, *arguments]


@contextmanager
def on_core(core: int) -> Iterator[None]:
    """Children started inside inherit this core, their threads too."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)


def until(is_so: Callable[[], bool], what: str, within_s: float) -> None:
    """Wait for something.

    Raises:
        TimeoutError: it did not become so in time.
    """
    deadline = time.monotonic() + within_s
    while not is_so():
        if time.monotonic() > deadline:
            raise TimeoutError(f"not within {within_s:.0f} s: {what}")
        time.sleep(0.02)
