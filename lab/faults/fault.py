"""What a fault is, and the scene it is done in."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field

import psycopg

from lab.faults.load import Load
from lab.faults.oplog import OpLog
from lab.faults.participants import Participants
from lab.faults.stack import Stack

SERVED_EVERY_S = 0.3


@dataclass
class Scene:
    """A running hub under load, for as long as one fault takes.

    `count` is how often the fault is to be done, `done` how often it was before, in the same run.
    """

    stack: Stack
    participants: Participants
    load: Load
    log: OpLog
    count: int
    done: int = 0

    @property
    def numbers(self) -> range:
        """The running numbers of the cases to do now: kinds that come in turn choose by them."""
        return range(self.done, self.done + self.count)

    def saw(self, what: str, ok: bool, detail: str = "") -> None:
        """Note a case of a pass figure: a row of the table for each `what`, a violation for each not ok."""
        self.log.write("seen", what=what, ok=ok, detail=detail)

    async def asked(self, count: int) -> None:
        """Wait until so many more asks were answered, one way or another."""
        await self.load.reached(self.log.asks + count)

    async def served(self, within_s: float) -> float:
        """Wait until every web process answers an ask, of any agent that is free; how long that took.

        Raises:
            TimeoutError: it did not come to that in time.
        """
        began = time.monotonic()
        async with asyncio.timeout(within_s):
            for url in range(len(self.stack.urls)):
                await self._served_by(url)
        return time.monotonic() - began

    async def check_served(self, what: str, within_s: float) -> None:
        """`served`, noted as a pass figure."""
        try:
            took_s = await self.served(within_s)
        except TimeoutError:
            self.saw(what, False, f"not within {within_s:.0f} s")
        else:
            self.saw(what, True, f"{took_s:.1f} s")

    async def all_online(self, within_s: float) -> float:
        """Wait until every agent is registered; how long that took.

        Raises:
            TimeoutError: some were not in time.
        """
        began = time.monotonic()
        async with asyncio.timeout(within_s):
            for agent in self.participants.agents:
                await agent.online.wait()
        return time.monotonic() - began

    async def no_turn_open(self, within_s: float) -> bool:
        """Wait until no turn is open; the load must have stopped. Whether it came to that."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            try:
                if not self.stack.sql("SELECT 1 FROM agents_turn WHERE outcome IS NULL LIMIT 1"):
                    return True
            except psycopg.OperationalError:
                pass  # it is down, as the fault wants it
            await asyncio.sleep(SERVED_EVERY_S)
        return False

    async def _served_by(self, url: int) -> None:
        for number in range(10_000):
            agent = self.participants.agents[number % len(self.participants.agents)]
            login = self.participants.callers[number % len(self.participants.callers)]
            answer = await self.load.ask_once(agent, login, "v1", url)
            if answer.outcome == "completed":
                return
            await asyncio.sleep(SERVED_EVERY_S)


@dataclass(frozen=True)
class Fault:
    """One row of the table. `run` does it `scene.count` times, while the load goes on.

    `short` and `long` are the counts of the two sets; 0 leaves it out. `stack`: arguments of `Stack` beyond the
    usual ones; faults with the same share a hub. `loops`: how many callers ask at a time, when not as usual.
    """

    name: str
    title: str
    short: int
    long: int
    run: Callable[[Scene], Awaitable[None]]
    stack: Mapping[str, object] = field(default_factory=dict)
    loops: int | None = None
