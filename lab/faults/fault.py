"""The definition of a fault, and the scene in which a fault is injected."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field

import psycopg

from lab.faults.agents import EchoAgent
from lab.faults.load import Load
from lab.faults.oplog import OpLog
from lab.faults.participants import Participants
from lab.faults.request_kinds import AskAnswer
from lab.faults.stack import Stack

SERVED_EVERY_S = 0.3
DONE = "was done to its end, and callers asked to theirs"  # noted of every fault


@dataclass
class Scene:
    """A running hub under load, for as long as one fault takes.

    `count`: how often the fault is to be injected; `done`: how often it was before, in the same run.
    """

    stack: Stack
    participants: Participants
    load: Load
    log: OpLog
    count: int
    done: int = 0

    @property
    def numbers(self) -> range:
        """The running numbers of the cases of this call; a fault with variants chooses its variant by them."""
        return range(self.done, self.done + self.count)

    def saw(self, what: str, ok: bool, detail: str = "") -> None:
        """Note a case: the table has a row for each `what`, and a violation for each case that is not ok."""
        self.log.write("seen", what=what, ok=ok, detail=detail)

    def caller(self, number: int) -> str:
        """The caller of a number; numbers above the last caller begin with the first again."""
        return self.participants.callers[number % len(self.participants.callers)]

    def agent(self, number: int) -> EchoAgent:
        """The agent of a number, among those that the load asks; likewise."""
        return self.participants.agents[number % len(self.participants.agents)]

    async def ask(self, agent: EchoAgent, number: int = 0, *, url: int | None = None) -> AskAnswer:
        """Ask an agent in A2A 1.0 as the caller of that number; logged like any ask.

        `url`: the number of the web process that is asked, by default also by the caller's number.
        """
        asked = number % len(self.stack.urls) if url is None else url
        return await self.load.ask_once(agent, self.caller(number), "v1", asked)

    async def asked(self, count: int) -> None:
        """Wait until so many more asks have ended."""
        await self.load.reached(self.log.asks + count)

    async def served(self, within_s: float) -> float:
        """Wait until every web process answers an ask of some agent; the seconds that this took.

        Raises:
            TimeoutError: a process did not answer in time.
        """
        began = time.monotonic()
        async with asyncio.timeout(within_s):
            for url in range(len(self.stack.urls)):
                await self._served_by(url)
        return time.monotonic() - began

    async def check_served(self, what: str, within_s: float) -> None:
        """Note whether every web process answers an ask in time."""
        try:
            took_s = await self.served(within_s)
        except TimeoutError:
            self.saw(what, False, f"not within {within_s:.0f} s")
        else:
            self.saw(what, True, f"{took_s:.1f} s")

    async def all_online(self, within_s: float) -> float:
        """Wait until every agent is registered; the seconds that this took.

        Raises:
            TimeoutError: some were not in time.
        """
        began = time.monotonic()
        async with asyncio.timeout(within_s):
            for agent in self.participants.agents:
                await agent.online.wait()
        return time.monotonic() - began

    async def no_turn_open(self, within_s: float) -> bool:
        """Wait until no turn is open; False when time is up. The load must have stopped."""
        until = time.monotonic() + within_s
        while time.monotonic() < until:
            try:
                if not self.stack.sql("SELECT 1 FROM agents_turn WHERE outcome IS NULL LIMIT 1"):
                    return True
            except psycopg.OperationalError:
                pass  # the fault has stopped PostgreSQL
            await asyncio.sleep(SERVED_EVERY_S)
        return False

    async def _served_by(self, url: int) -> None:
        for number in range(10_000):
            answer = await self.ask(self.agent(number), number, url=url)
            if answer.outcome == "completed":
                return
            await asyncio.sleep(SERVED_EVERY_S)


@dataclass(frozen=True)
class Fault:
    """One row of the table. `run` injects the fault `scene.count` times, while the load goes on.

    `short` and `long` are the counts of the two sets; 0 leaves it out. `fills`: how the rows begin that it must
    fill, because a fault that tried nothing broke nothing; without them any row of its own. `stack`: arguments of
    `Stack` beyond the usual ones; faults with the same share a hub. `loops`: how many callers ask at a time, when
    not as usual.
    """

    name: str
    title: str
    short: int
    long: int
    run: Callable[[Scene], Awaitable[None]]
    stack: Mapping[str, object] = field(default_factory=dict)
    loops: int | None = None
    fills: Sequence[str] = ("",)
