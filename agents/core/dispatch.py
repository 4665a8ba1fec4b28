"""Runs turns: admits their asks, starts their course, finds and cancels them, and shows their ends."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from contextvars import copy_context
from typing import Any, TypeVar

from msgspec.structs import replace

from agents.core.ask_queue import AskQueue
from agents.core.errors import MustWait, RateLimited, Unavailable
from agents.core.failures import failed
from agents.core.ledger import Ledger
from agents.core.ledger.state import BuildAsk
from agents.core.ledger.work import Admit, Deny
from agents.core.live_views import LiveViews
from agents.core.ports import AskLimits, Clock, Link
from agents.core.turn_course import TurnCourse
from agents.core.types import LookUpResult, OpenTurn, SettledTurn, TurnEnding
from agents.core.waiting import RunningTurn, WaitingTurns
from agents.models.choices import NO_CONNECTION, Outcome, TurnFailure
from kit.asgi import REFUSED_AFTER_S
from kit.failpoints import reach
from kit.tasks import TaskSet

logger = logging.getLogger(__name__)

DRAIN_STEP_S = 0.05
CANCELED = failed(TurnFailure.CANCELED)
SHUTDOWN = failed(TurnFailure.SHUTDOWN)
HALTED = failed(TurnFailure.HALTED)
ACCESS_ENDED = failed(TurnFailure.ACCESS_ENDED)

Run = TypeVar("Run", bound=RunningTurn)


class Dispatcher:
    """Runs turns. A turn continues whether or not a caller follows it. `links`: the links by `Session.link`.

    `asks_found`: `ask_found` may be used. False if the rate limit is counted in Redis, because that needs the
    event loop.
    """

    def __init__(
        self,
        *,
        links: Mapping[str, Link],
        ledger: Ledger,
        waiting: WaitingTurns,
        limits: AskLimits,
        live: LiveViews,
        clock: Clock,
    ) -> None:
        self._links = links
        self._ledger = ledger
        self._limits = limits
        self.asks_found = limits.is_local
        self._clock = clock
        self._queue = AskQueue(ledger, clock)
        self._running: dict[str, RunningTurn] = {}  # by chat id, until the end is stored
        self._tasks = TaskSet()
        self._admitting = 0
        self._open = 0  # the turns whose end is not published yet
        self._draining = False
        self._course = TurnCourse(
            links=links, ledger=ledger, waiting=waiting, live=live, clock=clock, on_end=self._take_end
        )

    async def ask(self, running: Run) -> Run:
        """Admit the ask of a turn, and start the turn.

        A turn whose ask has to wait for a free agent is returned as well, with `is_admitted` False.

        Raises:
            Denied: nothing was sent; the audit row says why.
            NotPublished, AlreadyAsked, Unavailable: nothing was sent, no row was written.
        """
        ask = running.ask
        if self._draining:
            raise Unavailable("draining")
        if retry_in_s := await self._limits.retry_in_s(ask):
            denied = RateLimited(retry_in_s, counts_messages=ask.credential_id is not None)
            await self._ledger.deny(ask, denied)
            raise denied
        if ask.queues and self._queue.is_full:
            ask = replace(ask, queues=False)
        return await self._begin(self._ledger.admit(ask), [running])

    def ask_found(
        self, digest: str | None, handle: str | None, make: Callable[[LookUpResult], Run]
    ) -> Coroutine[Any, Any, Run]:
        """Do what `ask` does for a caller and an agent that the ledger looks up in the same batch.

        `make` makes the turn from what was found. The ledger's thread calls it, so it must be quick; its
        exceptions are raised here.
        """
        made: list[Run] = []
        return self._begin(self._ledger.admit_found(digest, handle, self._decider(make, made)), made)

    def begin_found(
        self,
        digest: str | None,
        handle: str | None,
        make: Callable[[LookUpResult], Run],
        then: Callable[[Run | Exception], None],
    ) -> None:
        """Do what `ask_found` does without a task: `then` is called with the turn, or with the error."""
        made: list[Run] = []
        started = self._clock()
        self._admitting += 1

        def take(decided: OpenTurn | Exception) -> None:
            self._admitting -= 1
            if decided.__class__ is RateLimited:
                asyncio.get_running_loop().call_later(REFUSED_AFTER_S, then, decided)
            else:
                then(self._start(made, decided, started))

        self._ledger.decide_found(digest, handle, self._decider(make, made), take)

    def _decider(self, make: Callable[[LookUpResult], Run], made: list[Run]) -> BuildAsk:
        """The function by which the ledger's thread makes the turn of what it found, and adds it to `made`."""

        def decide(found: LookUpResult) -> Admit | Deny:
            running = make(found)
            if self._draining:
                raise Unavailable("draining")
            if retry_in_s := self._limits.count(running.ask):
                return Deny(running.ask, RateLimited(retry_in_s))
            made.append(running)
            cannot_wait = running.ask.queues and self._queue.is_full
            return Admit(replace(running.ask, queues=False) if cannot_wait else running.ask)

        return decide

    async def _begin(self, deciding: Awaitable[OpenTurn], made: Sequence[Run]) -> Run:
        """Wait for the ledger's decision, and start the turn. `made`: has the turn once the ask is decided."""
        started = self._clock()
        self._admitting += 1
        decided: OpenTurn | Exception
        try:
            decided = await deciding
        except MustWait as waits:
            decided = waits
        except RateLimited:
            await asyncio.sleep(REFUSED_AFTER_S)
            raise
        finally:
            self._admitting -= 1
        begun = self._start(made, decided, started)
        if isinstance(begun, Exception):
            raise begun
        return begun

    def _start(self, made: Sequence[Run], decided: OpenTurn | Exception, started: float) -> Run | Exception:
        """Start the turn of an ask that was admitted or has to wait; else returns the error."""
        if isinstance(decided, Exception) and not isinstance(decided, MustWait):
            return decided
        running = made[0]
        running.context = copy_context()
        self._running[running.ask.chat_id] = running
        self._open += 1
        if isinstance(decided, MustWait):
            waiting = self._wait_in_queue(running, decided)
            self._tasks.start(waiting, name=f"turn {running.ask.chat_id}")
        else:
            if reach:
                reach("after-admission")
            running.started_at = started
            running.admit(decided)
            self._course.begin(running)
        return running

    async def _wait_in_queue(self, running: RunningTurn, waits: MustWait) -> None:
        began = self._clock()
        try:
            turn = await self._queue.wait(running, waits)
        except BaseException:
            del self._running[running.ask.chat_id]
            self._open -= 1
            raise
        if isinstance(turn, SettledTurn):
            self._publish(running, turn)
            return
        running.started_at = self._clock()
        running.waited_s = running.started_at - began
        running.admit(turn)
        self._course.begin(running)

    def find(self, chat_id: str) -> RunningTurn | None:
        """The turn of that id, if it runs or waits in this process and its end is not stored yet.

        The turn is found as soon as `AlreadyAsked` names it to another ask: the ledger's results reach the event
        loop in their order.
        """
        return self._running.get(chat_id)

    def cancel(self, chat_id: str, ending: TurnEnding = CANCELED) -> bool:
        """Cancel a turn of this process for its caller; returns False if no such turn is open here.

        The turn may still end in another way: the first ending stands.
        """
        running = self._running.get(chat_id)
        if running is None or running.ending is not None:
            return False
        running.end(ending)
        if running.is_admitted and (link := self._links.get(running.turn.link)):
            self._tasks.start(link.withdraw(running.turn), name=f"withdraw {chat_id}")
        return True

    @property
    def parents(self) -> set[str]:
        """The parents of this process's open turns: the turns, of any process, in which agents made these asks."""
        return {one.ask.parent for one in self._running.values() if one.ask.parent and one.ending is None}

    def cancel_children_of(self, ended: Collection[str]) -> None:
        """Cancel the turns of this process for asks that agents made during these ended turns."""
        for running in self._running.values():
            if running.ask.parent in ended:
                self.cancel(running.ask.chat_id)

    @property
    def open_turns(self) -> int:
        """The number of turns of this process that have not ended."""
        return self._open + self._admitting

    @property
    def queued(self) -> int:
        """The number of asks of this process that wait for a free agent."""
        return self._queue.count

    def connections(self) -> set[int]:
        """The connections over which turns of this process wait for replies."""
        return {one.turn.connection_id for one in self._running.values() if one.is_admitted} - {NO_CONNECTION}

    def fail_turns_of(self, connection_ids: Collection[int]) -> None:
        """Fail at once the turns that wait for replies over these lost connections."""
        for running in self._running.values():
            if running.is_admitted and running.turn.connection_id in connection_ids:
                running.end(failed(TurnFailure.CHANNEL_LOST))

    async def drain(self, within_s: float) -> None:
        """Refuse new asks, wait for the open turns, then fail those still open."""
        self._draining = True
        deadline = self._clock() + within_s
        while self.open_turns or len(self._tasks):
            if reach:
                reach("while-draining")
            for running in self._running.values():
                if not running.is_admitted or self._clock() >= deadline:
                    running.end(SHUTDOWN)
            await asyncio.sleep(DRAIN_STEP_S)

    def _take_end(self, running: RunningTurn, settled: SettledTurn | Exception) -> None:
        if isinstance(settled, Exception):
            logger.error("turn.not_recorded", extra={"chat_id": running.ask.chat_id})
            settled = SettledTurn(Outcome.FAILED, TurnFailure.NOT_RECORDED, has_extra_writes=False)
        if reach:
            reach("after-settling")
        if self._queue.count:
            self._queue.wake_first(running.turn.ask.target.session_id)
        self._publish(running, settled)

    def _publish(self, running: RunningTurn, settled: SettledTurn) -> None:
        """Show the stored end to the followers of the turn, in a task if the surface has to wait before."""
        del self._running[running.ask.chat_id]
        publishing = None
        try:
            publishing = running.publish(settled)
        finally:
            if publishing is None:
                self._open -= 1
            else:
                self._tasks.start(self._finish(publishing), name=f"end {running.ask.chat_id}")

    async def _finish(self, publishing: Coroutine[Any, Any, None]) -> None:
        try:
            await publishing
        finally:
            self._open -= 1
