"""Reading tasks for their callers. An open one that does not run here is checked against its turn."""

import time
from collections.abc import Sequence
from datetime import datetime, timedelta

from a2a_bridge.service.tasks.feed import Feed, Feeds
from a2a_bridge.service.tasks.pieces import end_of
from a2a_bridge.service.tasks.store import StoresById
from a2a_bridge.wire.task import Task, TaskEvent, after, timestamp
from agents.core.types import SettledTurn
from agents.models import Process, QueuedAsk, Turn
from agents.models.choices import Outcome, TurnFailure
from agents.models.session import alive_since
from kit.async_db import db_call
from kit.clock import approximate_now, db_now
from kit.durations import seconds

END_WITHIN = timedelta(seconds=seconds(30.0, at_least_s=8.0))
LOOK_EVERY_S = 0.5


class TaskReader:
    """Reads a task store that may hold what a dead process left open."""

    def __init__(self, tasks: StoresById, feeds: Feeds, *, reply_wait_s: float) -> None:
        self._tasks = tasks
        self._feeds = feeds
        self._reply_wait_s = reply_wait_s

    async def find(self, task_id: str, caller_id: int) -> Task | None:
        """The caller's task, None when there is none.

        Raises:
            Unavailable: the store is out of reach.
        """
        feed = self._feeds.find(task_id)
        if feed is not None and feed.is_fed and feed.task.caller_id == caller_id:
            return feed.task
        task = await self._tasks.of(task_id).find(task_id, caller_id=caller_id)
        return await self._mended(task) if task is not None and task.is_running else task

    async def refresh(self, feed: Feed) -> bool:
        """Read new events of a task that does not run in this process; False when the store has no such task."""
        if feed.is_fed or time.monotonic() - feed.looked_at < LOOK_EVERY_S:
            return True
        feed.looked_at = time.monotonic()
        known = feed.task
        task = await self.find(known.id, known.caller_id)
        if task is None:
            return False
        await self._catch_up(feed, task)
        return True

    async def follow(self, task: Task) -> Feed:
        """The feed of a task that was just read from the store, brought up to the state of `task`."""
        feed = self._feeds.of(task)
        await self._catch_up(feed, task)
        return feed

    async def missed(self, feed: Feed, seq: int) -> Sequence[TaskEvent] | None:
        """The stored events after the event `seq`, which the feed has no more; None when they are not stored."""
        return await self._tasks.of(feed.task.id).events_after(feed.task, seq)

    async def _catch_up(self, feed: Feed, task: Task) -> None:
        """Add events of other processes to the feed; if they are not stored, set the feed to the present task."""
        known = feed.task.seq
        if task.seq > known:
            feed.add(task, await self._tasks.of(task.id).events_after(task, known) or ())
            feed.skip_to(task)

    async def _mended(self, task: Task) -> Task:
        """The task in the state of its turn: the process that ran it may have died before it stored the end."""
        settled = await db_call(end_of_turn)(task.chat_id)
        if settled is None or (settled.reason == TurnFailure.NOT_RECORDED and _is_recent(task)):
            return task  # the ledger admits the turn a moment after the task was written
        events = end_of(task, settled, wait_s=self._reply_wait_s, at=timestamp())
        ended = after(task, events)
        store = self._tasks.of(task.id)
        if await store.replace(ended, events, expected_seq=task.seq):
            return ended
        return await store.find(task.id, caller_id=task.caller_id) or ended


def end_of_turn(chat_id: str) -> SettledTurn | None:
    """The end of a turn without a reply; None while it is open, or when its process is about to report it."""
    turn = Turn.objects.filter(chat_id=chat_id).first()
    if turn is None:
        if is_queued(chat_id):
            return None
        # The queued ask may have become a turn since the first query.
        turn = Turn.objects.filter(chat_id=chat_id).first()
    if turn is None:
        return SettledTurn(Outcome.FAILED, TurnFailure.NOT_RECORDED)
    ended = turn.settled_at
    if ended is None or ended >= db_now() - END_WITHIN:
        return None if turn.outcome != Outcome.FAILED else SettledTurn(Outcome.FAILED, turn.reason)
    reason = turn.reason if turn.outcome == Outcome.FAILED else TurnFailure.REPLY_LOST
    return SettledTurn(Outcome.FAILED, reason)


def is_queued(chat_id: str) -> bool:
    """True if an ask waits for a free agent in a process that lives, or is about to be refused there."""
    return bool(find_process_of_queued(chat_id))


def find_process_of_queued(chat_id: str) -> str:
    """The id of the living process in which an ask waits for its agent; empty if no process has it queued."""
    living = Process.objects.filter(beat_at__gt=alive_since(db_now())).values("pk")
    return QueuedAsk.objects.filter(chat_id=chat_id, home__in=living).values_list("home", flat=True).first() or ""


def _is_recent(task: Task) -> bool:
    return datetime.fromisoformat(task.updated_at) > approximate_now() - END_WITHIN
