"""A hub that is attacked, and what must be true of it afterwards."""

import asyncio
import os
import re
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
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
    """A hub with something of everything. `run` runs a coroutine on the loop of its clients.

    Requests go to its first web process, and sockets to its last.
    """

    seeded: Seeded
    runner: asyncio.Runner
    _read_to: dict[Path, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._read_to = {program.log: program.log.stat().st_size for program in self.hub.all_programs}

    @property
    def hub(self) -> HubProcess:
        return self.seeded.hub

    @property
    def socket_url(self) -> str:
        """Where sockets are opened, without their path."""
        return self.hub.urls[-1].replace("http", "ws", 1)

    def run(self, work: Coroutine[Any, Any, Result]) -> Result:
        return self.runner.run(work)

    def read_errors(self) -> str:
        """What the processes of the hub logged as errors since the last look."""
        return "\n".join(filter(None, (self._read_errors(program) for program in self.hub.all_programs)))

    def _read_errors(self, program: Program) -> str:
        size, read_to = program.log.stat().st_size, self._read_to[program.log]
        if size == read_to:
            return ""
        with program.log.open("rb") as log:
            log.seek(read_to)
            lines = log.read().decode(errors="replace").splitlines()
        self._read_to[program.log] = size
        first = next((number for number, line in enumerate(lines) if self._is_error(line)), None)
        return "" if first is None else "\n".join([f"{program.name} logged:", *lines[first : first + LINES_SHOWN]])

    def _is_error(self, line: str) -> bool:
        """True if the hub logged an error; that the booking of the seed has no charge is none."""
        return BAD_LINE.search(line) is not None and str(self.seeded.names["booking_id"]) not in line

    def check(self) -> None:
        """Raise what the hub logged as errors since the last look, or that a process of it ended."""
        if errors := self.read_errors():
            raise Broke(errors)
        for program in self.hub.all_programs:
            program.check()

    def usage(self) -> list[tuple[int, int]]:
        """The open sockets of each process, and its resident memory in KiB."""
        return [(count_sockets(program), program.rss_kib()) for program in self.hub.all_programs]

    def check_usage(self, before: list[tuple[int, int]]) -> None:
        """Raise unless sockets and memory come back to what they were, within a minute."""
        self.check()
        for program, (sockets, memory_kib) in zip(self.hub.all_programs, before, strict=True):
            self._check_usage_of(program, sockets, memory_kib)

    def _check_usage_of(self, program: Program, sockets: int, memory_kib: int) -> None:
        until(
            lambda: count_sockets(program) <= sockets + SOCKETS_KEPT,
            f"{program.name} closed the sockets of clients that left; before: {sockets}",
            within_s=SETTLED_WITHIN_S,
        )
        grown = program.rss_kib() - memory_kib
        if grown > GROWTH_KIB:
            raise Broke(f"the memory of {program.name} grew by {grown} KiB from {memory_kib}")


def count_sockets(program: Program) -> int:
    """The sockets that a process has open."""
    folder, found = Path(f"/proc/{program.pid}/fd"), 0
    for number in os.listdir(folder):
        try:
            found += os.readlink(folder / number).startswith("socket:")
        except FileNotFoundError:  # closed meanwhile
            continue
    return found


def number_of(attempts: Attempts, live: Live) -> int:
    """The cases for one wire; fewer on PostgreSQL, where only what a database refuses differs."""
    short, long = (50, 1_000) if live.hub.home.is_grown else (200, 5_000)
    return EACH or attempts.number(short, long)


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
