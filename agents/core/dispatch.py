"""From an ask to its end: admission, delivery, the wait, and settling exactly once."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from agents.core.errors import NoReceipt, NotDelivered, RateLimited, Unavailable, Waits
from agents.core.ledger import Also, Ledger
from agents.core.ledger.work import Admit, Deny
from agents.core.line import Line
from agents.core.live_views import LiveViews
from agents.core.ports import Clock, Limits, Link
from agents.core.types import Ask, Ending, Found, OpenTurn, SettledTurn
from agents.core.waiting import OnChunk, RunningTurn, WaitingTurns
from agents.models.choices import NO_CONNECTION, Failure, Outcome
from agents.transcript.announcing import ReplyChunkMessage
from kit.failpoints import reach
from kit.tasks import TaskSet
from kit.waits import within

logger = logging.getLogger(__name__)

DRAIN_STEP_S = 0.05
NO_REPLY = Ending(outcome=Outcome.FAILED, reason=Failure.TIMEOUT, keeps_claim=True)

CANCELED = Ending(outcome=Outcome.FAILED, reason=Failure.CANCELED, keeps_claim=True)
SHUTDOWN = Ending(outcome=Outcome.FAILED, reason=Failure.SHUTDOWN, keeps_claim=True)
HALTED = Ending(outcome=Outcome.FAILED, reason=Failure.HALTED, keeps_claim=True)

OnSettled = Callable[[SettledTurn], Awaitable[None]]


class Asked(NamedTuple):
    """An ask, and what its surface does at its end, see `Dispatcher.ask`."""

    ask: Ask
    on_settled: OnSettled
    also: Also | None = None


class Dispatcher:
    """Runs turns. A turn goes on whether or not anyone follows it. `links`: by `Session.link`.

    `asks_found`: `ask_found` may be used. Not where the rate is counted in Redis, for which the loop waits.
    """

    def __init__(
        self,
        *,
        links: Mapping[str, Link],
        ledger: Ledger,
        waiting: WaitingTurns,
        limits: Limits,
        live: LiveViews,
        clock: Clock,
    ) -> None:
        self._links = links
        self._ledger = ledger
        self._limits = limits
        self.asks_found = limits.is_local
        self._live = live
        self._showing = TaskSet()
        self._clock = clock
        self._waiting = waiting
        self._line = Line(ledger, clock)
        self._tasks = TaskSet()
        self._admitting = 0
        self._draining = False

    async def ask(self, ask: Ask, on_settled: OnSettled, also: Also | None = None) -> RunningTurn:
        """Admit an ask and set its turn going. `on_settled` runs after the end is durable, before it is told.

        An ask that has to wait for a free agent is given back as well, `in_line`. `also`: what to write in the
        transaction that settles.

        Raises:
            Denied: nothing was sent; the audit row says why.
            NotPublished, AlreadyAsked, Unavailable: nothing was sent, no row was written.
        """
        if self._draining:
            raise Unavailable("draining")
        if retry_in_s := await self._limits.retry_in_s(ask.caller_id):
            denied = RateLimited(retry_in_s)
            await self._ledger.deny(ask, denied)
            raise denied
        if ask.queues and self._line.is_full:
            ask = replace(ask, queues=False)
        return await self._begin(self._ledger.admit(ask), [Asked(ask, on_settled, also)])

    def ask_found(
        self, digest: str | None, handle: str | None, make: Callable[[Found], Asked]
    ) -> Coroutine[Any, Any, RunningTurn]:
        """The same for a caller and an agent that one trip to the ledger looks up before it decides.

        `make` says what is asked, of what is found. It is called in the ledger's thread, and must be quick; what
        it raises is raised.
        """
        made: list[Asked] = []

        def decide(found: Found) -> Admit | Deny:
            asked = make(found)
            if self._draining:
                raise Unavailable("draining")
            if retry_in_s := self._limits.count(asked.ask.caller_id):
                return Deny(asked.ask, RateLimited(retry_in_s))
            made.append(asked)
            is_late = asked.ask.queues and self._line.is_full
            return Admit(replace(asked.ask, queues=False) if is_late else asked.ask)

        return self._begin(self._ledger.admit_found(digest, handle, decide), made)

    async def _begin(self, deciding: Awaitable[OpenTurn], asked: Sequence[Asked]) -> RunningTurn:
        """Set going what is decided. `asked`: the one ask, once it is decided."""
        started = self._clock()
        self._admitting += 1
        try:
            turn = await deciding
        except Waits as waits:
            return self._begin_to_wait(asked[0], waits)
        finally:
            self._admitting -= 1
        if reach:
            reach("after-admission")
        _, on_settled, also = asked[0]
        running = RunningTurn(turn, self._show_chunk(turn) if turn.watchers else None)
        self._tasks.start(self._see_through(running, started, on_settled, also), name=f"turn {turn.ask.chat_id}")
        return running

    def _begin_to_wait(self, asked: Asked, waits: Waits) -> RunningTurn:
        ask, on_settled, also = asked
        to_be = OpenTurn(ask=ask, connection_id=NO_CONNECTION, link_process="", text=ask.question)
        running = RunningTurn(to_be, in_line=True)
        self._tasks.start(self._wait_in_line(running, waits, on_settled, also), name=f"line {ask.chat_id}")
        return running

    async def _wait_in_line(
        self, running: RunningTurn, waits: Waits, on_settled: OnSettled, also: Also | None
    ) -> None:
        turn = await self._line.wait(running, waits)
        if isinstance(turn, SettledTurn):
            await self._tell(running, turn, on_settled)
            return
        running.become(turn, self._show_chunk(turn) if turn.watchers else None)
        await self._see_through(running, self._clock(), on_settled, also)

    def cancel(self, chat_id: str, ending: Ending = CANCELED) -> bool:
        """End a turn of this process because its caller wants it no more; False when none is open here.

        It may end otherwise all the same: the first ending stands.
        """
        running = self._waiting.find(chat_id) or self._line.find(chat_id)
        if running is None or running.ending is not None:
            return False
        running.end(ending)
        if running.in_line:
            return True
        if link := self._links.get(running.turn.link):
            self._tasks.start(link.withdraw(running.turn), name=f"withdraw {chat_id}")
        return True

    @property
    def parents(self) -> set[str]:
        """The turns, of any process, in which agents asked what is open here."""
        asks = (running.turn.ask for running in self._waiting if running.ending is None)
        return {ask.parent for ask in asks if ask.parent}

    def cancel_begun_in(self, ended: Collection[str]) -> None:
        """Cancel the turns of this process that agents began in these turns."""
        for running in self._waiting:
            if running.turn.ask.parent in ended:
                self.cancel(running.turn.ask.chat_id)

    @property
    def open_turns(self) -> int:
        """How many turns of this process have not ended."""
        return len(self._tasks) + self._admitting

    @property
    def queued(self) -> int:
        """How many asks of this process wait for a free agent."""
        return len(self._line)

    def connections(self) -> set[int]:
        """The connections that turns of this process wait on."""
        return {running.turn.connection_id for running in self._waiting} - {NO_CONNECTION}

    def lose(self, connection_ids: Collection[int]) -> None:
        """These connections are gone: fail what waits on them at once."""
        for running in self._waiting:
            if running.turn.connection_id in connection_ids:
                running.end(Ending(outcome=Outcome.FAILED, reason=Failure.CHANNEL_LOST))

    async def drain(self, within_s: float) -> None:
        """Refuse new asks, wait for the open turns, then fail those still open."""
        self._draining = True
        deadline = self._clock() + within_s
        while self.open_turns:
            if reach:
                reach("while-draining")
            for running in self._line:
                running.end(SHUTDOWN)
            if self._clock() >= deadline:
                for running in self._waiting:
                    running.end(SHUTDOWN)
            await asyncio.sleep(DRAIN_STEP_S)

    def _show_chunk(self, turn: OpenTurn) -> OnChunk:
        """Operators who watch the session see the reply grow."""

        def show(text: str) -> None:
            chunk = ReplyChunkMessage(turn.session_public_id, turn.ask.chat_id, text, done=False)
            self._showing.start(
                self._live.publish(turn.watchers, turn.ask.target.session_id, chunk), name="show chunk"
            )

        return show

    async def _see_through(
        self, running: RunningTurn, started: float, on_settled: OnSettled, also: Also | None
    ) -> None:
        self._waiting.expect(running)  # before it is delivered: a fast agent answers first
        try:
            ending = await self._reach_end(running)
        finally:
            self._waiting.forget(running)
        if reach:
            reach("before-settling")
        settled = await self._settle(running, ending, started, also)
        if reach:
            reach("after-settling")
        self._line.ring(running.turn.ask.target.session_id)
        await self._tell(running, settled, on_settled)

    async def _tell(self, running: RunningTurn, settled: SettledTurn, on_settled: OnSettled) -> None:
        try:
            await on_settled(settled)
        except Exception:
            logger.exception("turn.on_settled_failed", extra={"chat_id": running.turn.ask.chat_id})
        running.publish(settled)

    async def _reach_end(self, running: RunningTurn) -> Ending:
        if running.ending is not None:  # it was canceled while it was admitted
            return replace(running.ending, keeps_claim=False, gives_back=True)
        wait_s = running.turn.ask.wait_s
        deadline = self._clock() + wait_s
        try:
            await within(self._deliver(running.turn), wait_s)
            if reach:
                reach("after-delivery")
            if running.ending is None:
                await running.until_replied.wait(deadline - self._clock())
            return running.ending_or(NO_REPLY)
        except TimeoutError:
            return running.ending_or(NO_REPLY)
        except NoReceipt:
            return Ending(outcome=Outcome.FAILED, reason=Failure.CHANNEL_LOST, keeps_claim=True)
        except NotDelivered:
            return Ending(outcome=Outcome.FAILED, reason=Failure.NOT_DELIVERED, gives_back=True)
        except Exception:  # whatever happens, the turn ends
            logger.exception("turn.broken", extra={"chat_id": running.turn.ask.chat_id})
            return Ending(outcome=Outcome.FAILED, reason=Failure.CHANNEL_LOST, keeps_claim=True)

    def _deliver(self, turn: OpenTurn) -> Coroutine[Any, Any, None]:
        if (link := self._links.get(turn.link)) is None:
            raise NotDelivered  # this hub does not have the link any more
        return link.deliver(turn)

    async def _settle(
        self, running: RunningTurn, ending: Ending, started: float, also: Also | None
    ) -> SettledTurn:
        latency_ms = int((self._clock() - started) * 1000)
        timed = Ending(
            outcome=ending.outcome,
            reason=ending.reason,
            text=ending.text,
            latency_ms=latency_ms,
            keeps_claim=ending.keeps_claim and not running.agent_is_done,
            gives_back=ending.gives_back,
        )
        try:
            return await self._ledger.settle(running.turn, timed, also)
        except Unavailable:
            logger.error("turn.not_recorded", extra={"chat_id": running.turn.ask.chat_id})
            return SettledTurn(Outcome.FAILED, Failure.NOT_RECORDED, has_also=False)
