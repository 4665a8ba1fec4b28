"""A hub that is attacked, and what must be true of it afterwards."""

import asyncio
import os
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from lab.hub_process import HubProcess
from lab.processes import Program
from lab.waiting import until
from tests.attempts import Attempts
from tests.descriptions.seeded import Seeded

SEED = int(os.environ.get("FUZZ_SEED", "37"))
EACH = int(os.environ.get("FUZZ_EACH", "0"))  # the cases for each wire; 0: as many as suit the run
SETTLED_WITHIN_S = 60
BAD_LINE = re.compile(
    r"^\S+ \S+ (ERROR|CRITICAL) |^Traceback |^\s*(Exception|Task|Future) .*(ignored|never retrieved)"
)
SOCKETS_KEPT = 8  # of clients and the hub's own that come and go
GROWTH_KIB = 96 * 1024
LINES_SHOWN = 60
Drawn = TypeVar("Drawn")
Result = TypeVar("Result")


class Broke(AssertionError):
    """The hub did what it must not."""


@dataclass
class Live:
    """A hub with something of everything. `run` runs a coroutine on the loop of its clients."""

    seeded: Seeded
    runner: asyncio.Runner
    _read_to: int = 0

    def __post_init__(self) -> None:
        self._read_to = self._log.stat().st_size

    @property
    def hub(self) -> HubProcess:
        return self.seeded.hub

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self.runner.run(work)

    def read_errors(self) -> str:
        """What the hub logged as errors since the last look."""
        size = self._log.stat().st_size
        if size == self._read_to:
            return ""
        with self._log.open("rb") as log:
            log.seek(self._read_to)
            lines = log.read().decode(errors="replace").splitlines()
        self._read_to = size
        first = next((number for number, line in enumerate(lines) if self._is_error(line)), None)
        return "" if first is None else "\n".join(["the hub logged:", *lines[first : first + LINES_SHOWN]])

    def _is_error(self, line: str) -> bool:
        """True if the hub logged an error; that the booking of the seed has no charge is none."""
        return BAD_LINE.search(line) is not None and str(self.seeded.names["booking_id"]) not in line

    def check(self) -> None:
        """Raise what the hub logged as errors since the last look, or that its process ended."""
        if errors := self.read_errors():
            raise Broke(errors)
        self.hub.check_running()

    def usage(self) -> tuple[int, int]:
        """The open sockets of the process, and its resident memory in KiB."""
        return count_sockets(self._program), self._program.rss_kib()

    def check_usage(self, before: tuple[int, int]) -> None:
        """Raise unless sockets and memory come back to what they were, within a minute."""
        self.check()
        until(
            lambda: count_sockets(self._program) <= before[0] + SOCKETS_KEPT,
            f"the hub closed the sockets of clients that left; before: {before[0]}",
            within_s=SETTLED_WITHIN_S,
        )
        grown = self._program.rss_kib() - before[1]
        if grown > GROWTH_KIB:
            raise Broke(f"the hub's memory grew by {grown} KiB from {before[1]}")

    @property
    def _program(self) -> Program:
        return self.hub.programs[0]

    @property
    def _log(self) -> Path:
        return self._program.log


def count_sockets(program: Program) -> int:
    """The sockets that a process has open."""
    folder, found = Path(f"/proc/{program.pid}/fd"), 0
    for number in os.listdir(folder):
        try:
            found += os.readlink(folder / number).startswith("socket:")
        except FileNotFoundError:  # closed meanwhile
            continue
    return found


def number_of(attempts: Attempts) -> int:
    """The cases for one wire."""
    return EACH or attempts.number(short=200, long=5_000)


def drawing(most: int, *phases: Phase) -> settings:
    """How Hypothesis draws so many cases."""
    every = list(HealthCheck)
    return settings(
        max_examples=most,
        database=None,
        deadline=None,
        phases=phases or (Phase.generate, Phase.shrink),
        suppress_health_check=every,
    )


def drawn(cases: st.SearchStrategy[Drawn], number: int) -> list[Drawn]:
    """So many cases, to send them at once."""
    found: list[Drawn] = []

    @seed(SEED)
    @drawing(number, Phase.generate)
    @given(cases)
    def one(case: Any) -> None:
        found.append(case)

    one()
    return found


def try_each(live: Live, cases: st.SearchStrategy[Drawn], number: int, attack: Callable[[Drawn], None]) -> None:
    """Attack with so many drawn cases. `attack` sends one, and raises Broke when the answer is wrong.

    Hypothesis makes a case that broke something as small as possible, and raises that.
    """

    @seed(SEED)
    @drawing(number)
    @given(cases)
    def one(case: Any) -> None:
        try:
            attack(case)
        except Broke as broke:
            raise Broke(f"{broke}\n{live.read_errors()}") from None
        live.check()

    one()
