"""Child processes: they are started, awaited until they are ready, and always ended."""

import fcntl
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, field
from functools import cache
from itertools import count
from pathlib import Path
from typing import Any, Self

from lab import ROOT
from lab.forked import ForkedProcess

Command = Sequence[str | Path]
LOOKS_AGAIN_S = 0.02
TAIL_LINES = 20
TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")
FIRST_PORT, PORTS = 12_000, 16_000  # below the range from which outgoing connections take theirs
PORTS_PER_PROCESS = 250
_offsets = count()


class ProgramError(Exception):
    """A program did not start, ended too early or did not end in time; the text has its last output."""


@dataclass(eq=False)
class Program:
    """A child process in a process group of its own, and its output. The program may be started again.

    `env`: its whole environment, by default ours. `options` go to Popen. `core`: the only one it may run on.
    `stdin`: what it reads. `is_forked`: a Python program, run in a process that has imported the libraries
    (`lab/forked.py`). `within_s`: how long it may take to be ready, and to stop. As a context manager it runs for
    the block.
    """

    command: Command
    log: Path
    name: str = ""
    env: Mapping[str, str] | None = None
    folder: Path = ROOT
    is_ready: Callable[["Program"], bool] = lambda _: True
    options: Mapping[str, Any] = field(default_factory=dict)
    core: int | None = None
    stdin: str = ""
    is_forked: bool = False
    stop_signal: signal.Signals = signal.SIGTERM
    within_s: float = 60.0
    started_at: float = 0.0
    process: subprocess.Popen[bytes] | ForkedProcess | None = None
    _printed_before: int = 0

    def __post_init__(self) -> None:
        self.name = self.name or self.log.stem

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, *failure: object) -> None:
        self.stop()

    def start(self) -> None:
        """Start the program, and return when it is ready.

        Raises:
            ProgramError: the program ended, or was not ready in time; in the second case it still runs.
        """
        self.launch()
        while not self.is_ready(self):
            self.check()
            self.check_in_time()
            time.sleep(LOOKS_AGAIN_S)

    def launch(self) -> None:
        """Start the program, and return before it is ready. A later start adds to the log."""
        self.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.log.touch(mode=0o600)
        if self.process is None:
            os.truncate(self.log, 0)
        self._printed_before = self.log.stat().st_size
        self.process = self._forked() if self.is_forked else self._spawned()
        self.started_at = time.monotonic()

    @property
    def pid(self) -> int:
        """The id of the process that was started last."""
        return self._started.pid

    @property
    def output(self) -> str:
        """The output since the last start."""
        with self.log.open("rb") as log:
            log.seek(self._printed_before)
            return log.read().decode(errors="replace")

    @property
    def lines(self) -> list[str]:
        """The whole lines of the output."""
        text = self.output
        return text[: text.rfind("\n") + 1].splitlines()

    @property
    def has_ended(self) -> bool:
        """True if the program was started and has ended."""
        return self.process is not None and self.process.poll() is not None

    def check(self) -> None:
        """Raise ProgramError when the program has ended."""
        if self.has_ended:
            raise ProgramError(self.last_output())

    def check_in_time(self) -> None:
        """Raise ProgramError when the program was not ready in time."""
        if time.monotonic() > self.started_at + self.within_s:
            raise ProgramError(f"{self.name} was not ready in {self.within_s:g} s; {self.last_output()}")

    def last_output(self) -> str:
        """The exit code, if the program has ended, and the end of the log."""
        code = self._started.poll()
        tail = "\n".join(f"    {line}" for line in self.output.splitlines()[-TAIL_LINES:])
        return f"{self.name} {'runs' if code is None else f'ended with {code}'}; the end of {self.log}:\n{tail}"

    def send_signal(self, number: int) -> None:
        """Send a signal to the process, not to its children; do nothing when it does not run."""
        if self.process is not None and not self.has_ended:
            self.process.send_signal(number)

    def ask_to_stop(self) -> None:
        """Send the `stop_signal`."""
        self.send_signal(self.stop_signal)

    def exit_code(self, *, within_s: float | None = None) -> int:
        """Wait for the end of the program; the exit code.

        Raises:
            ProgramError: the program did not end in time, and was killed.
        """
        within_s = within_s or self.within_s
        try:
            return self._started.wait(within_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ProgramError(f"{self.name} did not stop in {within_s:g} s: {self.last_output()}") from None

    def stop(self, how: signal.Signals | None = None) -> bool:
        """Send a signal, by default `stop_signal`, and wait; False when the program had to be killed."""
        self.send_signal(how or self.stop_signal)
        return self.wait()

    def wait(self) -> bool:
        """Wait for the end of the program; False when it did not end in time, and was killed."""
        try:
            return self.process is None or self.exit_code() is not None
        except ProgramError:
            return False

    def kill(self) -> None:
        """Kill the program and its children; do nothing when it does not run."""
        if self.process is not None and not self.has_ended:
            self.kill_children()
            self.process.kill()
            self.process.wait()

    def kill_children(self) -> None:
        """Kill all processes of the program's process group, also when the program itself has ended."""
        with suppress(ProcessLookupError):
            os.killpg(self.pid, signal.SIGKILL)

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Stop all processes of the program's process group (SIGSTOP) for the block; then they continue."""
        os.killpg(self.pid, signal.SIGSTOP)
        try:
            yield
        finally:
            with suppress(ProcessLookupError):
                os.killpg(self.pid, signal.SIGCONT)

    def cpu_s(self) -> float:
        """The processor time of all threads of the process."""
        fields = Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS_A_SECOND

    def rss_kib(self) -> int:
        """The resident memory of the process."""
        status = Path(f"/proc/{self.pid}/status").read_text()
        return int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1])

    @property
    def _started(self) -> subprocess.Popen[bytes] | ForkedProcess:
        assert self.process is not None, f"{self.name} was not started"
        return self.process

    def _forked(self) -> ForkedProcess:
        script = [str(part) for part in self.command[1:]]
        return ForkedProcess(script, os.environ if self.env is None else self.env, self.folder, self.log)

    def _spawned(self) -> subprocess.Popen[bytes]:
        with self.log.open("ab") as output, nullcontext() if self.core is None else _on_core(self.core):
            process = subprocess.Popen(
                self.command, env=self.env, cwd=self.folder, stdin=subprocess.PIPE, stdout=output, stderr=output,
                start_new_session=True, **self.options,
            )  # fmt: skip
        assert process.stdin is not None
        with suppress(BrokenPipeError), process.stdin:
            process.stdin.write(self.stdin.encode())
        return process


def printed(text: str) -> Callable[[Program], bool]:
    """A condition: the program has printed this text."""
    return lambda program: text in program.output


def python(*arguments: str) -> list[str]:
    """The command that runs our own interpreter."""
    return [sys.executable, *arguments]


def run(command: Sequence[str], env: Mapping[str, str], *, folder: Path = ROOT, within_s: float = 600) -> str:
    """Run a program to its end; what it prints on standard output.

    Raises:
        ProgramError: the program failed; the text holds its whole output.
    """
    try:
        done = subprocess.run(
            command, env=env, cwd=folder, capture_output=True, text=True, timeout=within_s, check=False
        )
    except subprocess.TimeoutExpired:
        raise ProgramError(f"{' '.join(command)} took longer than {within_s:g} s") from None
    if done.returncode:
        raise ProgramError(f"{' '.join(command)} failed:\n{done.stdout}\n{done.stderr}")
    return done.stdout


def free_port() -> int:
    """A loopback port that nothing listens on, and that neither another process nor an outgoing connection takes.

    Raises:
        ProgramError: no port is free.
    """
    first = FIRST_PORT + _ports_of(os.getpid()) * PORTS_PER_PROCESS
    for _ in range(PORTS_PER_PROCESS):
        port = first + next(_offsets) % PORTS_PER_PROCESS
        with socket.socket() as free:
            try:
                free.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise ProgramError("no port is free")


@cache
def _ports_of(pid: int) -> int:
    """The number of a range of ports that no other process has until this one ends. `pid`: a fork gets its own."""
    folder = Path(tempfile.gettempdir()) / f"hub-ports-{os.getuid()}"
    folder.mkdir(exist_ok=True)
    for number in range(PORTS // PORTS_PER_PROCESS):
        lock = os.open(folder / str(number), os.O_CREAT | os.O_RDWR)  # released when the process ends
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(lock)
            continue
        return number
    raise ProgramError("other processes have all ports")


@contextmanager
def _on_core(core: int) -> Iterator[None]:
    """Children started inside inherit this core, their threads too."""
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {core})
    try:
        yield
    finally:
        os.sched_setaffinity(0, before)
