"""The definition of a fault, and the scene in which a fault is injected."""

import asyncio
import itertools
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from inspect import isawaitable
from typing import Any, TypeVar

import psycopg

from lab.faults.agents import EchoAgent
from lab.faults.load import Load
from lab.faults.oplog import OpLog
from lab.faults.participants import ONLINE_WITHIN_S, Participants
from lab.faults.requests import AskAnswer
from lab.faults.stack import FaultStack

SERVED_EVERY_S = 0.3
LOOKS_EVERY_S = 0.2
OWNER = "owner-1"  # the first owner's webhook hears of its agents only
DONE = "the fault was injected to its end, and its callers ended"  # noted of every fault

AgentKind = TypeVar("AgentKind", bound=EchoAgent)
_numbers = itertools.count(1)


async def became_true(
    look: Callable[[], bool | Awaitable[bool]], within_s: float, *, every_s: float = LOOKS_EVERY_S
) -> bool:
    """Call `look` again and again until it returns True; False when time is up."""
    deadline = time.monotonic() + within_s
    while True:
        seen = look()
        if await seen if isawaitable(seen) else seen:
            return True
        if time.monotonic() > deadline:
            return False
        await asyncio.sleep(every_s)


@dataclass
class Scene:
    """A running hub under load, for as long as one fault takes.

    `count`: how often the fault is to be injected; `done`: how often it was before, in the same run.
    """

    stack: FaultStack
    participants: Participants
    load: Load
    log: OpLog
    count: int
    done: int = 0

    @property
    def numbers(self) -> range:
        """The running numbers of the cases of this call; a fault with variants chooses its variant by them."""
        return range(self.done, self.done + self.count)

    def note(self, what: str, ok: bool, detail: str = "") -> None:
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

    async def check_in_time(self, what: str, work: Awaitable[None], within_s: float) -> None:
        """Note whether some work was done in time."""
        began = time.monotonic()
        try:
            await asyncio.wait_for(work, within_s)
        except TimeoutError:
            self.note(what, False, f"not within {within_s:.0f} s")
        else:
            self.note(what, True, f"{time.monotonic() - began:.1f} s")

    async def check_served(self, what: str, within_s: float) -> None:
        """Note whether every web process answers an ask of some agent in time."""

        async def serve_all() -> None:
            for url in range(len(self.stack.urls)):
                for number in itertools.count():
                    if (await self.ask(self.agent(number), number, url=url)).outcome == "completed":
                        break
                    await asyncio.sleep(SERVED_EVERY_S)

        await self.check_in_time(what, serve_all(), within_s)

    async def all_online(self, agents: Iterable[EchoAgent] | None = None) -> None:
        """Wait until these agents, by default those that the load asks, are registered."""
        for agent in self.participants.agents if agents is None else agents:
            await agent.online.wait()

    @asynccontextmanager
    async def extra_agent(
        self, kind: Callable[..., AgentKind], *at: str, owner: str = OWNER, **fields: Any
    ) -> AsyncIterator[AgentKind]:
        """An agent that is published and stays for the block; the load does not ask it.

        `at`: the URLs it dials in turn, by default the first; `fields`: of the agent.
        """
        slug = f"extra-{next(_numbers)}"
        token = self.stack.tokens[owner, "channel"]
        agent = kind(list(at) or [self.stack.url], token, self.log, name=slug)
        agent.start()
        try:
            await asyncio.wait_for(agent.online.wait(), ONLINE_WITHIN_S)
            await self.participants.publish(agent, owner, slug, **({"dailyBudgetQueries": 100_000} | fields))
            yield agent
        finally:
            await agent.stop()

    async def no_turn_open(self, within_s: float) -> bool:
        """Wait until no turn is open; False when time is up. The load must have stopped."""

        def is_calm() -> bool:
            try:
                return not self.stack.sql("SELECT 1 FROM agents_turn WHERE outcome IS NULL LIMIT 1")
            except psycopg.OperationalError:
                return False  # the fault has stopped PostgreSQL

        return await became_true(is_calm, within_s)


@dataclass(frozen=True)
class Fault:
    """One row of the table. `run` injects the fault `scene.count` times, while the load goes on.

    `short` and `long` are the counts of the two sets; 0 leaves the fault out. `fills`: the beginnings of the rows
    that the fault must fill, because a fault that tried nothing broke nothing; without them any row of its own.
    `hub`: the kind of hub; `stack`: its arguments beyond the usual ones. Faults with the same kind and arguments
    share a hub. `loops`: how many callers ask at a time, if not as usual.
    """

    name: str
    title: str
    short: int
    long: int
    run: Callable[[Scene], Awaitable[None]]
    stack: Mapping[str, object] = field(default_factory=dict)
    hub: type[FaultStack] = FaultStack
    loops: int | None = None
    fills: Sequence[str] = ("",)
