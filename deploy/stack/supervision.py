"""Starts programs again that end by themselves: each on its own, and after the servers that it needs."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from lab.processes import Program, ProgramError

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 8.0
TOO_SOON_S = 10.0
MOST_FALLS = 5  # a program that ends so often soon after its start will end again


class State(Enum):
    RUNS = auto()
    WAITS = auto()
    STARTS = auto()


@dataclass(eq=False)
class Watched:
    """A program. `needs`: the servers that run before it is started. `falls`: how often it ended in a row."""

    program: Program
    needs: Sequence["Watched"]
    state: State = State.RUNS
    since: float = 0.0
    start_at: float = 0.0
    falls: int = 0

    @property
    def has_servers(self) -> bool:
        """Whether the servers that it needs run."""
        return all(one.state is State.RUNS and not one.program.has_ended for one in self.needs)


class Supervisor:
    """Watches programs that run, from one thread: a program that starts slowly delays no other one.

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
        needed = [Watched(one, (), since=one.started_at) for one in servers]
        self._watched = [*needed, *(Watched(one, needed, since=one.started_at) for one in others)]
        self._tell = tell
        self._first_pause_s, self._too_soon_s = first_pause_s, too_soon_s

    def look(self) -> list[Program]:
        """Start what has to be started now; the programs that run again since the last look.

        Raises:
            ProgramError: a program ended MOST_FALLS times in a row, or was as often not ready in time.
        """
        return [one.program for one in self._watched if self._moves_on(one)]

    def _moves_on(self, one: Watched) -> bool:
        """Take one program to its next state; whether it runs again."""
        try:
            if one.state is State.WAITS:
                if time.monotonic() >= one.start_at and one.has_servers:
                    one.program.launch()
                    one.state = State.STARTS
                return False
            one.program.check()
            if one.state is State.RUNS:
                return False
            if not one.program.is_ready(one.program):
                one.program.check_in_time()
                return False
        except (ProgramError, OSError) as failure:
            one.program.kill()
            one.program.kill_children()  # they may hold the port or the files that it needs
            self._plan_start(one, str(failure))
            return False
        one.state, one.since = State.RUNS, time.monotonic()
        self._tell(f"{one.program.name} runs again")
        return True

    def _plan_start(self, one: Watched, failure: str) -> None:
        now, name = time.monotonic(), one.program.name
        if one.state is State.RUNS and now >= one.since + self._too_soon_s:
            one.falls = 0
        one.falls += one.has_servers
        if one.falls >= MOST_FALLS:
            raise ProgramError(f"{name} failed {one.falls} times in a row, so the stack ends: {failure}")
        pause_s = min(self._first_pause_s * 2 ** max(0, one.falls - 1), LONGEST_PAUSE_S)
        one.state, one.start_at = State.WAITS, now + pause_s
        needs = "" if one.has_servers else ", once its servers run"
        self._tell(f"{failure}\nstarting {name} again in {pause_s:g} s{needs}")
