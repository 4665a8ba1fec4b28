"""Starts each program again that ends by itself, alone and after the servers that it needs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from lab.processes import Program, ProgramError

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 8.0
TOO_SOON_S = 10.0
MAX_FAILURES = 5  # a program that fails so often in a row will fail again


class ProgramState(Enum):
    RUNS = auto()
    WAITS = auto()
    STARTS = auto()


@dataclass(eq=False)
class WatchedProgram:
    """A program. `needs`: servers that must run before its start. `failures`: how often it failed in a row."""

    program: Program
    needs: Sequence["WatchedProgram"]
    state: ProgramState = ProgramState.RUNS
    since: float = 0.0
    start_at: float = 0.0
    failures: int = 0

    @property
    def has_servers(self) -> bool:
        """True if the servers that the program needs run."""
        return all(one.state is ProgramState.RUNS and not one.program.has_ended for one in self.needs)


class Supervisor:
    """Watches running programs from one thread: a program that starts slowly delays no other program.

    `servers` are what the `others` need: a program waits for them before it is started again, and its failures
    count only while they run. `tell` gets lines of progress. Each pause before a start is twice the one before.
    """

    def __init__(
        self,
        servers: Sequence[Program],
        others: Sequence[Program],
        *,
        tell: Callable[[str], None],
        first_pause_s: float = FIRST_PAUSE_S,
        too_soon_s: float = TOO_SOON_S,
    ) -> None:
        needed = [WatchedProgram(one, (), since=one.started_at) for one in servers]
        self._watched = [*needed, *(WatchedProgram(one, needed, since=one.started_at) for one in others)]
        self._tell = tell
        self._first_pause_s, self._too_soon_s = first_pause_s, too_soon_s

    def look(self) -> list[Program]:
        """Start the programs that are due; returns those that became ready since the last call.

        Raises:
            ProgramError: a program ended, or was not ready in time, MAX_FAILURES times in a row.
        """
        return [one.program for one in self._watched if self._advance(one)]

    def _advance(self, one: WatchedProgram) -> bool:
        """Move one program to its next state; True when it runs again."""
        try:
            if one.state is ProgramState.WAITS:
                if time.monotonic() >= one.start_at and one.has_servers:
                    one.program.launch()
                    one.state = ProgramState.STARTS
                return False
            one.program.check()
            if one.state is ProgramState.RUNS:
                return False
            if not one.program.is_ready(one.program):
                one.program.check_in_time()
                return False
        except (ProgramError, OSError) as failure:
            one.program.kill()
            # Processes that are left may hold the port or the files that the program needs.
            one.program.kill_children()
            self._plan_start(one, str(failure))
            return False
        one.state, one.since = ProgramState.RUNS, time.monotonic()
        self._tell(f"{one.program.name} runs again")
        return True

    def _plan_start(self, one: WatchedProgram, failure: str) -> None:
        now, name = time.monotonic(), one.program.name
        if one.state is ProgramState.RUNS and now >= one.since + self._too_soon_s:
            one.failures = 0
        one.failures += one.has_servers
        if one.failures >= MAX_FAILURES:
            raise ProgramError(f"{name} failed {one.failures} times in a row, so the stack ends: {failure}")
        pause_s = min(self._first_pause_s * 2 ** max(0, one.failures - 1), LONGEST_PAUSE_S)
        one.state, one.start_at = ProgramState.WAITS, now + pause_s
        needs = "" if one.has_servers else ", once its servers run"
        self._tell(f"{failure}\nstarting {name} again in {pause_s:g} s{needs}")
