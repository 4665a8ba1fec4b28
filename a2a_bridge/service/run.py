"""A turn of a task while it runs here: the pieces of its agent become events, committed before they are shown."""

import asyncio
import logging
import threading
import time
from collections.abc import Coroutine, Sequence
from contextlib import nullcontext
from typing import Any

from msgspec.structs import replace

from a2a_bridge.service.follow_ups import mark_shown
from a2a_bridge.service.push_configs import queue_pushes, return_to_turn
from a2a_bridge.service.pushes import Pushes
from a2a_bridge.service.repeats import KeyClaim, release_key
from a2a_bridge.service.tasks.feed import Feed, Feeds
from a2a_bridge.service.tasks.pieces import (
    agent_message,
    end_of,
    is_promoted,
    is_waiting_again,
    last_words,
    left_open,
    plain_end,
    waiting_again,
    with_joined_text,
)
from a2a_bridge.service.tasks.plans import End, Plan, is_plain, new_events
from a2a_bridge.service.tasks.store import TaskStore
from a2a_bridge.wire.errors import denied_text, failure_text
from a2a_bridge.wire.requests import Send
from a2a_bridge.wire.task import State, StatusEvent, Task, TaskEvent, after, timestamp
from agents.core.errors import Denied, Unavailable
from agents.core.types import Ask, SettledTurn
from agents.core.waiting import RunningTurn
from agents.models import FollowUp
from agents.transcript.pieces import Piece
from kit import sql

logger = logging.getLogger(__name__)

LAST_TRIES = 3
AGAIN_S = 0.2
ASKED_WITHIN_S = 0.5  # of a request for approval until its event is kept


class TaskRun(RunningTurn):
    """The running turn of a task, with the task as far as it is kept, and the end of both.

    Until `start_feed` is called the store does not have the task, and only the request that started the turn
    knows it. `opening`: the task as the turn began. `send`: the message of the turn. If its caller waits for the
    end, a reply that is not shown in pieces is kept as one text. If the caller takes a message for an answer, a
    task whose answer is one is not kept. `claim`: of the Idempotency-Key, which keeps the end too. `before`: the
    task as it waited for the message of this turn; None for a first turn. `follow_ups`: those that the task shows.

    `denied`: why the agent was not asked, at once or after a wait. `followers`: how many requests of this process
    wait for the task; `followers_elsewhere`: the names of those of other processes; `outlives_followers`: the turn
    goes on when they have left, see `Exchanges.leave`.
    """

    def __init__(
        self,
        ask: Ask,
        opening: Task,
        send: Send,
        *,
        store: TaskStore,
        feeds: Feeds,
        pushes: Pushes,
        claim: KeyClaim | None = None,
        before: Task | None = None,
        follow_ups: Sequence[FollowUp] = (),
    ) -> None:
        super().__init__(ask)
        self.opening = self.task = opening
        self.send = send
        self.store = store
        self.before = before
        self.denied: Denied | None = None
        self.feed: Feed | None = None
        self.followers = 0
        self.followers_elsewhere: set[str] = set()
        self.outlives_followers = False
        self._feeds = feeds
        self._pushes = pushes
        self._claim = claim
        self._follow_ups = follow_ups
        self._plan = Plan(opening, 0)
        self._end: End | None = None
        self._open_ids: tuple[str, ...] = ()
        # The event loop's thread computes plans, the ledger's thread computes the end.
        self._planning = threading.Lock()
        self._is_written = False
        self._feed_lock: asyncio.Lock | None = None
        self._is_recording = False

    @property
    def is_refused(self) -> bool:
        """True if the ask was refused at once: there is no turn, and the task has ended."""
        return self.denied is not None and self._end is None

    @property
    def is_promoted(self) -> bool:
        """True if the answer of the turn is a task, also to a caller who takes a message instead."""
        return self._is_promoted(self.task)

    @property
    def unsent_text(self) -> str:
        """The reason why the message was not sent, if the task waits for its caller again; else empty."""
        if self._end is None or self.before is None or not is_waiting_again(self._end.settled):
            return ""
        return failure_text(self._end.settled.reason, self.ask.wait_s)

    @property
    def last_events(self) -> Sequence[TaskEvent]:
        """The events of the turn's end; all events of the task when nothing followed it before."""
        return self._end.events if self._end else ()

    async def start_feed(self) -> Feed:
        """Keep the task and publish its events from now on, those of pieces that came before first."""
        if self.feed is not None:
            return self.feed
        if self._feed_lock is None:
            self._feed_lock = asyncio.Lock()
        async with self._feed_lock:
            if self.feed is None:
                if self.task.turns == 1:
                    await self.store.put(self.task)
                self.feed = self._feeds.of(self.task)
                self.feed.is_fed = self._end is None
        self.record()
        return self.feed

    async def answered(self, within_s: float) -> bool:
        """Wait for the end of the turn, or until its task asks its caller to approve something."""
        until = time.monotonic() + within_s
        if not self.is_due and not await self.until_due.wait(within_s):
            return False
        if self.is_settled:
            return True
        feed = await self.start_feed()
        while self.task.is_open and self.is_due and not self.is_settled:
            left_s = until - time.monotonic()  # the task store may be out of reach for longer
            if left_s <= 0:
                return False
            # Of the feed, not of the turn: if a reader of the store brought the feed ahead, each call would
            # return at once, and nothing else would run.
            await feed.wait_for_events(feed.task.seq, min(left_s, ASKED_WITHIN_S))
        return not self.task.is_open

    def extra_writes(self, settled: SettledTurn) -> Sequence[sql.Query]:
        """Write the task, if its store is in the database, and its pushes.

        A task without a feed has no push configs.
        """
        end = self._find_end(settled)
        events = end.written or () if self._feed_lock is None else end.events
        writes = [*self.store.writes(end.task, events, is_message=not self._is_kept(end.task))]
        self._is_written = bool(writes)
        if self._claim is not None:
            writes += self._claim.writes(end.task, settled, is_plain=not self._is_promoted(end.task))
        if self.feed is not None:
            if end.task.chat_id != self.opening.chat_id:
                writes.append(return_to_turn(end.task))
            writes += queue_pushes(end.task, end.events, self.ask.traceparent)
        return writes

    def keep_end(self, settled: SettledTurn) -> Coroutine[Any, Any, None] | None:
        """Keep the task's end, release a key under which nothing was sent, and mark the follow-ups as shown."""
        must_wait = self._is_busy or self._claim is not None or self._follow_ups
        return self._keep_all(settled) if must_wait or not self._keep_task_now(settled) else None

    @property
    def _is_busy(self) -> bool:
        """True if a task of this turn's feed writes to the store."""
        return self._feed_lock is not None and self._feed_lock.locked()

    def _keep_task_now(self, settled: SettledTurn) -> bool:
        """Keep the end of a task; False if its store, or a push, has to wait."""
        before, end, feed = self._end, self._find_end(settled), self.feed
        if feed is not None and feed.has_pushes and not settled.has_extra_writes:
            return False
        if not (self._is_written and end is before) and self._is_kept(end.task):
            store = self.store
            is_kept = store.put_now(end.task) if feed is None else store.append_now(end.task, end.events)
            if not is_kept:
                return False
        self._show_end_of(end)
        return True

    async def _keep_all(self, settled: SettledTurn) -> None:
        try:  # with extra writes, the transaction that settled the turn has released the key
            if self._claim is not None and settled.is_unsent and not settled.has_extra_writes:
                await release_key(self._claim)
        finally:
            # Without the lock nothing follows the task yet; a store ignores `put` of a task whose end it has.
            async with self._feed_lock or nullcontext():
                await self._keep_task(settled)
        if self._follow_ups and settled.refused is None and not settled.is_unsent:
            await mark_shown(self._follow_ups, self.opening.chat_id)

    async def refuse(self, denied: Denied) -> None:
        """End the task: the ask was refused at once. The next ask is given the follow-ups.

        Raises:
            Unavailable: the task could not be kept.
        """
        new = replace(self.task, artifacts=())
        words = agent_message(new, 1, denied_text(denied, new.handle), denied.reason)
        event = StatusEvent(1, timestamp(), State.FAILED, words)
        task = after(new, [event])
        if not await self._keep(task, [event]):
            raise Unavailable
        self.denied = denied
        await self._push(task, [event])
        self._become(task, 0, [event])
        self.is_settled = self.is_due = True

    async def _push(self, task: Task, events: Sequence[TaskEvent]) -> None:
        if self.feed is not None and self.feed.has_pushes:
            await self._pushes.queue_events(task, events, self.ask.traceparent)

    def record(self) -> None:
        """Record what the agent sends from now on, once the turn runs and its task is followed."""
        feed = self.feed
        if not self.is_admitted or feed is None or self._end is not None or self._is_recording:
            return
        if self._is_busy or feed.has_pushes or not self._record_now():
            self._is_recording = True
            self._feeds.recording.start(self._record(), name=f"record {self.task.id}")

    def _record_now(self) -> bool:
        """Keep new pieces as events; False if the store has to wait."""
        while plan := self._planned():
            if not self.store.append_now(plan.task, plan.events):
                return False
            self._become(plan.task, plan.taken, plan.events)
        return True

    async def _record(self) -> None:
        """Commit new pieces as events in their order. After a failure the next piece, or the end, tries again.

        Runs in an asyncio task of its own: the first follower must not wait for the store, and may leave before.
        """
        assert self._feed_lock is not None  # noqa: S101  for the type checker: what is recorded was told
        try:
            async with self._feed_lock:
                while plan := self._planned():
                    await self.store.append(plan.task, plan.events)
                    await self._push(plan.task, plan.events)
                    self._become(plan.task, plan.taken, plan.events)
        except Unavailable:
            logger.warning("task.not_recorded", extra={"chat_id": self.task.chat_id})
        finally:
            self._is_recording = False

    def _planned(self) -> Plan | None:
        """The next events to keep, the same until they are kept; None if there are none, or the end has them."""
        with self._planning:
            if self._end is not None:
                return None
            if not self._plan.events:
                if self._plan.taken == len(self.pieces) and self._plan.task.state is not State.SUBMITTED:
                    return None
                events = self._new(self._plan)
                self._plan = Plan(after(self._plan.task, events), len(self.pieces), events)
            return self._plan if self._plan.events else None

    def _new(self, plan: Plan) -> list[TaskEvent]:
        """The events of the pieces after those of the plan."""
        pieces: Sequence[Piece] = self.pieces[plan.taken :]
        if self.send.waits and self.feed is None:
            pieces = with_joined_text(pieces)
        return new_events(plan.task, pieces, is_admitted=self.is_admitted)

    def _find_end(self, settled: SettledTurn) -> End:
        """The task as the settled turn leaves it; computed once for each end."""
        with self._planning:
            end = self._end
            if end is None or (end.settled is not settled and end.settled != settled):
                end = self._end = self._make_end(settled)
                self.denied = settled.refused
            return end

    def _make_end(self, settled: SettledTurn) -> End:
        plan = self._plan
        if self.feed is None and plan.is_new and is_plain(settled, self.pieces, waits=self.send.waits):
            return End(settled, plain_end(plan.task, settled, timestamp()))
        events = [*plan.events, *self._new(plan)]
        so_far = after(plan.task, events)
        if self.before is not None and is_waiting_again(settled):
            restored, event = waiting_again(self.before, so_far.seq, timestamp())
            return End(settled, restored, [*events, event])
        open_ids = left_open(self._open_ids, events)
        words = last_words(self.pieces)
        ends = end_of(so_far, settled, words, open_ids, wait_s=self.ask.wait_s, at=timestamp())
        return End(settled, after(so_far, ends), [*events, *ends])

    def _is_kept(self, task: Task) -> bool:
        """True if the store keeps the task: not one whose answer is a message, which no request follows."""
        return not self.send.takes_direct or self.feed is not None or self._is_promoted(task)

    def _is_promoted(self, task: Task) -> bool:
        if self.opening.artifacts:  # the task shows follow-ups
            return True
        is_direct = self.is_direct and self.feed is None
        if self.send.plain_is_direct:
            is_message = is_direct and bool(self.pieces) and (task.is_open or task.state is State.COMPLETED)
            return not is_message and is_promoted(task, self.pieces)
        return not (is_direct and task.state is State.COMPLETED)

    async def _keep_task(self, settled: SettledTurn) -> None:
        before, end = self._end, self._find_end(settled)
        was_written = self._is_written and end is before
        try:
            if not was_written and self._is_kept(end.task):  # a request may follow the task since the end
                await self._keep(end.task, end.events if self.feed is not None else end.written or ())
            if not settled.has_extra_writes and self.feed is not None:
                await self._push(end.task, end.events)
        finally:  # also after a failure: followers read the store from now on
            self._show_end_of(end)

    def _show_end_of(self, end: End) -> None:
        self.task = end.task
        if self.feed is not None:
            self.feed.end(end.task, end.events)
            if self.feed.has_pushes:
                self._pushes.wake()

    def _become(self, task: Task, taken: int, events: Sequence[TaskEvent]) -> None:
        self.task = task
        with self._planning:
            self._plan, self._open_ids = Plan(task, taken), left_open(self._open_ids, events)
        if self.feed is not None:
            self.feed.add(task, events)

    async def _keep(self, task: Task, events: Sequence[TaskEvent]) -> bool:
        """Write the end to the store; False if it stays out of reach: a turn's row has the end, too."""
        for _ in range(LAST_TRIES):
            try:
                if self.feed is None and task.turns == 1:
                    await self.store.put(task)
                else:
                    await self.store.append(task, events)
                return True
            except Unavailable:
                await asyncio.sleep(AGAIN_S)
        logger.warning("task.not_kept", extra={"chat_id": task.chat_id})
        return False
