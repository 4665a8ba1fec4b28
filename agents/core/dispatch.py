"""Runs a turn from admission to its end: delivery, waiting, settling exactly once."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Collection, Coroutine, Mapping, Sequence
from typing import Any, NamedTuple

from msgspec.structs import replace

from agents.core.ask_queue import AskQueue
from agents.core.errors import MustWait, NoReceipt, NotDelivered, RateLimited, Unavailable
from agents.core.failures import failed
from agents.core.ledger import ExtraWrites, Ledger
from agents.core.ledger.work import Admit, Deny
from agents.core.live_views import LiveViews
from agents.core.ports import AskLimits, Clock, Link
from agents.core.types import Ask, LookUpResult, OpenTurn, SettledTurn, TurnEnding
from agents.core.waiting import OnChunk, RunningTurn, WaitingTurns
from agents.models.choices import NO_CONNECTION, Outcome, TurnFailure
from agents.transcript.announcements import ReplyChunkMessage
from kit.failpoints import reach
from kit.tasks import TaskSet, wait_within

logger = logging.getLogger(__name__)

DRAIN_STEP_S = 0.05
NO_REPLY = failed(TurnFailure.TIMEOUT)

CANCELED = failed(TurnFailure.CANCELED)
SHUTDOWN = failed(TurnFailure.SHUTDOWN)
HALTED = failed(TurnFailure.HALTED)
NEVER_LEFT = replace(failed(TurnFailure.NOT_DELIVERED), returns_budget=True)
MAY_WORK = replace(failed(TurnFailure.CHANNEL_LOST), keeps_claim=True)  # the agent may have the prompt

OnSettled = Callable[[SettledTurn], Awaitable[None]]


class PreparedAsk(NamedTuple):
    """An ask with the callback and the extra writes of its surface, see `Dispatcher.ask`."""

    ask: Ask
    on_settled: OnSettled
    extra_writes: ExtraWrites | None = None


class Dispatcher:
    """Runs turns. A turn continues whether or not a caller follows it. `links`: by `Session.link`.

    `asks_found`: `ask_found` may be used. False where the rate limit is counted in Redis, because that needs the
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
        self._live = live
        self._showing = TaskSet()
        self._clock = clock
        self._waiting = waiting
        self._queue = AskQueue(ledger, clock)
        self._tasks = TaskSet()
        self._admitting = 0
        self._draining = False

    async def ask(self, ask: Ask, on_settled: OnSettled, extra_writes: ExtraWrites | None = None) -> RunningTurn:
        """Admit an ask and start its turn. `on_settled` runs after the end is durable, before followers see it.

        An ask that has to wait for a free agent is returned as well, with `in_queue` set. `extra_writes`: what to
        write in the transaction that settles.

        Raises:
            Denied: nothing was sent; the audit row says why.
            NotPublished, AlreadyAsked, Unavailable: nothing was sent, no row was written.
        """
        if self._draining:
            raise Unavailable("draining")
        if retry_in_s := await self._limits.retry_in_s(ask):
            denied = RateLimited(retry_in_s, counts_messages=ask.credential_id is not None)
            await self._ledger.deny(ask, denied)
            raise denied
        if ask.queues and self._queue.waiters and self._queue.is_full:
            ask = replace(ask, queues=False)
        return await self._begin(self._ledger.admit(ask), [PreparedAsk(ask, on_settled, extra_writes)])

    def ask_found(
        self, digest: str | None, handle: str | None, make: Callable[[LookUpResult], PreparedAsk]
    ) -> Coroutine[Any, Any, RunningTurn]:
        """Ask as `ask` does, for a caller and an agent that the ledger looks up in the same trip.

        `make` builds the ask from what was found. The ledger's thread calls it, so it must be quick; its
        exceptions are raised here.
        """
        made: list[PreparedAsk] = []

        def decide(found: LookUpResult) -> Admit | Deny:
            asked = make(found)
            if self._draining:
                raise Unavailable("draining")
            if retry_in_s := self._limits.count(asked.ask):
                return Deny(asked.ask, RateLimited(retry_in_s))
            made.append(asked)
            cannot_wait = asked.ask.queues and self._queue.waiters and self._queue.is_full
            return Admit(replace(asked.ask, queues=False) if cannot_wait else asked.ask)

        return self._begin(self._ledger.admit_found(digest, handle, decide), made)

    async def _begin(self, deciding: Awaitable[OpenTurn], asked: Sequence[PreparedAsk]) -> RunningTurn:
        """Start the turn that the ledger decided. `asked`: the one ask, once it is decided."""
        started = self._clock()
        self._admitting += 1
        try:
            turn = await deciding
        except MustWait as waits:
            return self._begin_to_wait(asked[0], waits)
        finally:
            self._admitting -= 1
        if reach:
            reach("after-admission")
        _, on_settled, extra_writes = asked[0]
        running = RunningTurn(turn, self._show_chunk(turn) if turn.watchers else None)
        self._tasks.start(
            self._see_through(running, started, on_settled, extra_writes), name=f"turn {turn.ask.chat_id}"
        )
        return running

    def _begin_to_wait(self, asked: PreparedAsk, waits: MustWait) -> RunningTurn:
        ask, on_settled, extra_writes = asked
        to_be = OpenTurn(ask=ask, connection_id=NO_CONNECTION, link_process="", text=ask.question)
        running = RunningTurn(to_be, in_queue=True)
        self._tasks.start(
            self._wait_in_queue(running, waits, on_settled, extra_writes), name=f"line {ask.chat_id}"
        )
        return running

    async def _wait_in_queue(
        self, running: RunningTurn, waits: MustWait, on_settled: OnSettled, extra_writes: ExtraWrites | None
    ) -> None:
        turn = await self._queue.wait(running, waits)
        if isinstance(turn, SettledTurn):
            await self._publish_end(running, turn, on_settled)
            return
        running.become(turn, self._show_chunk(turn) if turn.watchers else None)
        await self._see_through(running, self._clock(), on_settled, extra_writes)

    def cancel(self, chat_id: str, ending: TurnEnding = CANCELED) -> bool:
        """Cancel a turn of this process for its caller; False when no such turn is open here.

        The turn may still end in another way: the first ending stands.
        """
        running = self._waiting.find(chat_id) or self._queue.find(chat_id)
        if running is None or running.ending is not None:
            return False
        running.end(ending)
        if running.in_queue:
            return True
        if link := self._links.get(running.turn.link):
            self._tasks.start(link.withdraw(running.turn), name=f"withdraw {chat_id}")
        return True

    @property
    def parents(self) -> set[str]:
        """The parents of this process's open turns: turns, of any process, in which an agent asked onward."""
        asks = (running.turn.ask for running in self._waiting if running.ending is None)
        return {ask.parent for ask in asks if ask.parent}

    def cancel_children_of(self, ended: Collection[str]) -> None:
        """Cancel the turns of this process that agents began in these turns."""
        for running in self._waiting:
            if running.turn.ask.parent in ended:
                self.cancel(running.turn.ask.chat_id)

    @property
    def open_turns(self) -> int:
        """The number of turns of this process that have not ended."""
        return len(self._tasks) + self._admitting

    @property
    def queued(self) -> int:
        """The number of asks of this process that wait for a free agent."""
        return len(self._queue)

    def connections(self) -> set[int]:
        """The connections that turns of this process wait on."""
        return {running.turn.connection_id for running in self._waiting} - {NO_CONNECTION}

    def fail_turns_of(self, connection_ids: Collection[int]) -> None:
        """Fail the turns that wait on these lost connections at once."""
        for running in self._waiting:
            if running.turn.connection_id in connection_ids:
                running.end(failed(TurnFailure.CHANNEL_LOST))

    async def drain(self, within_s: float) -> None:
        """Refuse new asks, wait for the open turns, then fail those still open."""
        self._draining = True
        deadline = self._clock() + within_s
        while self.open_turns:
            if reach:
                reach("while-draining")
            for running in self._queue:
                running.end(SHUTDOWN)
            if self._clock() >= deadline:
                for running in self._waiting:
                    running.end(SHUTDOWN)
            await asyncio.sleep(DRAIN_STEP_S)

    def _show_chunk(self, turn: OpenTurn) -> OnChunk:
        """Return a callback that sends each chunk to the operators who watch the session."""

        def show(text: str) -> None:
            chunk = ReplyChunkMessage(turn.session_public_id, turn.ask.chat_id, text, done=False)
            self._showing.start(
                self._live.publish(turn.watchers, turn.ask.target.session_id, chunk), name="show chunk"
            )

        return show

    async def _see_through(
        self, running: RunningTurn, started: float, on_settled: OnSettled, extra_writes: ExtraWrites | None
    ) -> None:
        self._waiting.expect(running)  # register before delivery, or a fast agent's reply would be lost
        try:
            ending = await self._reach_end(running)
        finally:
            self._waiting.forget(running)
        if reach:
            reach("before-settling")
        settled = await self._settle(running, ending, started, extra_writes)
        if reach:
            reach("after-settling")
        if self._queue.waiters:
            self._queue.wake_first(running.turn.ask.target.session_id)
        await self._publish_end(running, settled, on_settled)

    async def _publish_end(self, running: RunningTurn, settled: SettledTurn, on_settled: OnSettled) -> None:
        try:
            await on_settled(settled)
        except Exception:
            logger.exception("turn.on_settled_failed", extra={"chat_id": running.turn.ask.chat_id})
        running.publish(settled)

    async def _reach_end(self, running: RunningTurn) -> TurnEnding:
        if running.ending is not None:  # it was canceled while it was admitted
            return replace(running.ending, keeps_claim=False, returns_budget=True)
        wait_s = running.turn.ask.wait_s
        deadline = self._clock() + wait_s
        try:
            if (link := self._links.get(running.turn.link)) is None:
                return NEVER_LEFT  # this hub does not have the link any more
            await wait_within(link.deliver(running.turn), wait_s)
            if reach:
                reach("after-delivery")
            if running.ending is None:
                await running.until_replied.wait(deadline - self._clock())
        except TimeoutError:
            pass  # the agent may have ended the turn in the same moment
        except NoReceipt:
            return MAY_WORK
        except NotDelivered:
            return NEVER_LEFT
        except Exception:  # whatever happens, the turn ends
            logger.exception("turn.broken", extra={"chat_id": running.turn.ask.chat_id})
            return MAY_WORK
        ending: TurnEnding | None = running.ending  # of the wait
        return ending or NO_REPLY

    async def _settle(
        self, running: RunningTurn, ending: TurnEnding, started: float, extra_writes: ExtraWrites | None
    ) -> SettledTurn:
        latency_ms = int((self._clock() - started) * 1000)
        timed = TurnEnding(
            outcome=ending.outcome,
            reason=ending.reason,
            text=ending.text,
            latency_ms=latency_ms,
            keeps_claim=ending.keeps_claim and not running.agent_is_done,
            returns_budget=ending.returns_budget,
            usage=running.usage,
        )
        try:
            return await self._ledger.settle(running.turn, timed, extra_writes)
        except Unavailable:
            logger.error("turn.not_recorded", extra={"chat_id": running.turn.ask.chat_id})
            return SettledTurn(Outcome.FAILED, TurnFailure.NOT_RECORDED, has_extra_writes=False)
