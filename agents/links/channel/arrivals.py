"""Agents that connect, by any link: those of one account are registered one batch after another, at a pace."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from django.db import IntegrityError

from agents.core.registration import AgentRegistration
from agents.links.channel.driving import RegisteredAgent
from agents.links.sockets import SocketLink
from kit.account_pace import NEW_SESSION, STORED, AccountPace, AccountPaces
from kit.async_db import db_call

AT_ONCE = 10  # agents in one transaction
ARRIVE_TOGETHER_S = 0.25  # the shortest wait beyond the pace, so that several agents are registered together

Register = Callable[[Sequence[AgentRegistration]], Sequence[RegisteredAgent | Exception]]


@dataclass(slots=True, eq=False)
class _Arriving:
    registration: AgentRegistration
    has_left: Callable[[], bool]
    outcome: asyncio.Future[RegisteredAgent | None] = field(default_factory=asyncio.Future)

    @property
    def is_gone(self) -> bool:
        return self.outcome.cancelled() or self.has_left()


class Arrivals:
    """Registers agents. Agents of one account that wait at the same time are registered in one transaction.

    `register`: registers agents of one account, in a database thread; returns what each gets, or why it may not
    connect. `size`: what each counts, see `kit.account_pace`.
    """

    def __init__(self, link: SocketLink, paces: AccountPaces, register: Register, size: int = STORED) -> None:
        self._link = link
        self._size = size
        self.paces = paces
        self._register_in_thread = db_call(register)
        self._waiting: dict[int, list[_Arriving]] = {}  # by account

    async def register(
        self, registration: AgentRegistration, has_left: Callable[[], bool]
    ) -> RegisteredAgent | None:
        """Register an agent after others of its account; None if its client has left by then.

        A client that gave up and connects again must not wait behind the sockets that it left.

        Raises:
            MayNotConnect, QuotaExceeded, or another refusal of `register`: the agent may not connect.
        """
        arriving = _Arriving(registration, has_left)
        account_id = registration.user_id
        if (waiting := self._waiting.get(account_id)) is not None:
            waiting.append(arriving)
        else:
            self._waiting[account_id] = [arriving]
            self._link.start(self._register_all(account_id), "register agents")
        return await arriving.outcome

    async def _register_all(self, account_id: int) -> None:
        waiting = self._waiting[account_id]
        pace = self.paces.of_connections(account_id)
        some: list[_Arriving] = []
        try:
            while waiting:
                async with pace.line:
                    await pace.keep(0, at_least_s=ARRIVE_TOGETHER_S)
                    async with self._link.registering:
                        if some := _take_some(waiting, pace, self._size):
                            new = await self._register(some)
                            pace.count(new * NEW_SESSION)
        finally:
            del self._waiting[account_id]
            for one in (*some, *waiting):  # those without an outcome: the process stops
                one.outcome.cancel()

    async def _register(self, some: list[_Arriving]) -> int:
        """Register agents in one transaction, and tell those that wait for it; the number of new sessions."""
        outcomes: Sequence[RegisteredAgent | Exception]
        try:
            outcomes = await self._register_in_thread([one.registration for one in some])
        except IntegrityError as failure:  # of one of them, whose token was deleted meanwhile
            if len(some) > 1:
                return sum([await self._register([one]) for one in some])
            outcomes = [failure]
        except Exception as failure:  # noqa: BLE001  those who wait get it
            outcomes = [failure] * len(some)
        for one, outcome in zip(some, outcomes, strict=True):
            if one.outcome.cancelled():
                continue
            if isinstance(outcome, Exception):
                one.outcome.set_exception(outcome)
            else:
                one.outcome.set_result(outcome)
        return sum(isinstance(one, RegisteredAgent) and one.registered.is_new for one in outcomes)


def _take_some(waiting: list[_Arriving], pace: AccountPace, size: int) -> list[_Arriving]:
    """Take the first of those that wait, as many as the pace allows, but no two of one session: the later one has
    to evict the earlier one.
    """
    some: dict[object, _Arriving] = {}
    while waiting and len(some) < AT_ONCE and not (some and pace.is_behind):
        first = waiting[0]
        session = first.registration.wanted_session or first
        if first.is_gone:
            if not first.outcome.cancelled():
                first.outcome.set_result(None)
        elif session in some:
            break
        else:
            some[session] = first
            pace.count(size)
        del waiting[0]
    return list(some.values())
