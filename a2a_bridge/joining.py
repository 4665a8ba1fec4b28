"""A message that another process answers already: who sends it again joins its task (docs/adr/0062)."""

import asyncio
import time

from a2a_bridge.requests import Send
from a2a_bridge.tasks.feed import Feed
from a2a_bridge.tasks.reader import LOOK_EVERY_S, TaskReader, is_queued
from a2a_bridge.tasks.record import Task
from a2a_bridge.tasks.run import is_promoted
from agents.errors import AlreadyAsked, Unavailable
from agents.models import Turn
from agents.post import Join, Post
from kit.async_db import db_call

SHOWN_WITHIN_S = 3.0
SHOWN_EVERY_S = 0.05


class Joined:
    """The answer that somebody else waits for too: a `TaskRun` to whoever waits for it."""

    def __init__(self, feed: Feed, send: Send, reader: TaskReader) -> None:
        self.feed = feed
        self._plain_is_direct = send.plain_is_direct
        self._reader = reader

    @property
    def task(self) -> Task:
        """As it is known here."""
        return self.feed.task

    @property
    def is_promoted(self) -> bool:
        """Whether its answer is a task, as far as the task shows it: here it is one by now."""
        if not self._plain_is_direct:
            return True
        return is_promoted(self.task, ()) or any(one.id != self.task.reply_id for one in self.task.artifacts)

    async def answered(self, within_s: float) -> bool:
        """The same as `ended`: a task that asks is not open."""
        return await self.ended(within_s)

    async def ended(self, within_s: float) -> bool:
        """Wait for the end of the turn; whether it came in time."""
        until = time.monotonic() + within_s
        while self.task.is_open:
            left_s = until - time.monotonic()
            if left_s <= 0:
                return False
            await self.feed.news(self.task.seq, min(left_s, LOOK_EVERY_S))
            if not await self._reader.refresh(self.feed):
                raise Unavailable("the task is gone")
        return True


async def join(same: AlreadyAsked, caller_id: int, send: Send, post: Post, reader: TaskReader) -> Joined | None:
    """Have the task told by the process that runs it, and follow it; None when it ended before that.

    Raises:
        Unavailable: that process does not say; it may be dead, and its turn about to be ended.
    """
    await post.send(same.home, Join(caller_id, same.session_id, same.message_key))
    deadline = time.monotonic() + SHOWN_WITHIN_S
    while time.monotonic() < deadline:
        if task := await reader.find(same.task_id, caller_id):
            return Joined(await reader.follow(task), send, reader)
        if not await db_call(_is_open)(same.chat_id):
            return None
        await asyncio.sleep(SHOWN_EVERY_S)
    raise Unavailable("an identical message is being answered out of reach")


def _is_open(chat_id: str) -> bool:
    return is_queued(chat_id) or Turn.objects.filter(chat_id=chat_id, outcome=None).exists()
