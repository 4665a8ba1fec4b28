"""Programs that one command starts, watches and ends."""

import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

STEP_S = 0.1
TAIL_LINES = 8


class CouldNotStart(Exception):
    """A program ended, or was not ready in time; the text says which and what it said last."""


@dataclass
class Child:
    """One program: how to start it, how to see that it is ready, how to end it.

    `options` go to Popen. `goes_with`: the signal that ends it. `within_s`: how long it may take for either.
    `falls`: how often in a row it ended soon after its start.
    """

    name: str
    command: Sequence[str | Path]
    log: Path
    is_ready: Callable[["Child"], bool]
    env: Mapping[str, str] | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    goes_with: signal.Signals = signal.SIGTERM
    within_s: float = 60.0
    started_at: float = 0.0
    falls: int = 0
    process: subprocess.Popen[bytes] | None = None

    @property
    def said(self) -> str:
        """Everything it printed since it was started last."""
        return self.log.read_text(errors="replace")

    def start(self) -> None:
        """Start it, and return when it is ready.

        Raises:
            CouldNotStart: it is not.
        """
        self.log.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        self.log.touch(mode=0o600)
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                self.command, env=self.env, stdout=output, stderr=output, start_new_session=True, **self.options
            )
        self.started_at = time.monotonic()
        while not self.is_ready(self):
            if self.has_ended:
                raise CouldNotStart(self.last_words())
            if time.monotonic() > self.started_at + self.within_s:
                raise CouldNotStart(f"{self.name} was not ready in {self.within_s:g} s; {self.log}")
            time.sleep(STEP_S)

    @property
    def has_ended(self) -> bool:
        """Whether it ran and runs no more."""
        return self.process is not None and self.process.poll() is not None

    def last_words(self) -> str:
        """How it ended, and the end of its log."""
        code = self.process.returncode if self.process else None
        tail = "\n".join(f"    {line}" for line in self.said.splitlines()[-TAIL_LINES:])
        return f"{self.name} ended with {code}; the end of {self.log}:\n{tail}"

    def ask_to_leave(self) -> None:
        """Send its signal; fine when it ended before."""
        if self.process is not None and not self.has_ended:
            self.process.send_signal(self.goes_with)

    def wait(self) -> bool:
        """Wait for its end; False when it had to be killed."""
        if self.process is None:
            return True
        try:
            self.process.wait(self.within_s)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            return False
        return True


def says(words: str) -> Callable[[Child], bool]:
    """Ready when it printed this."""
    return lambda child: words in child.said


def tell(line: str) -> None:
    """A line of progress, at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
