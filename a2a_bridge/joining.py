"""A message that is sent again while it is answered joins its task, in this process or in another.

See docs/adr/0011 and docs/adr/0062.
"""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable

import msgspec

from a2a_bridge.idempotency import Claim
from a2a_bridge.requests import Send
from a2a_bridge.tasks.feed import Feed
from a2a_bridge.tasks.reader import LOOK_EVERY_S, TaskReader, is_queued
from a2a_bridge.tasks.record import Task
from a2a_bridge.tasks.run import TaskRun, is_promoted
from accounts.authn import Identity
from agents.errors import AlreadyAsked, Unavailable
from agents.models import Turn
from agents.post import Join, Post
from agents.types import Target
from kit.async_db import db_call

SHOWN_WITHIN_S = 3.0
SHOWN_EVERY_S = 0.05

Key = tuple[int, int, bytes]
Begin = Callable[[], Awaitable[TaskRun]]


class OpenRuns:
    """The turns of these messages, each from before it begins until it has ended."""

    def __init__(self) -> None:
        self._runs: dict[Key, asyncio.Future[TaskRun]] = {}

    def find(self, key: Key) -> asyncio.Future[TaskRun] | None:
        """What is being begun or answered under a key; not to be cancelled."""
        return self._runs.get(key)

    async def once(self, key: Key, begin: Begin) -> TaskRun:
        """Begin a turn, or wait for the one that the same message began. A failure reaches all that wait."""
        if (same := self._runs.get(key)) is not None:
            return await asyncio.shield(same)
        self._runs[key] = started = asyncio.get_running_loop().create_future()
        try:
            run = await begin()
        except BaseException as failure:
            self.leave(key)
            _pass_on(failure, started)
            raise
        started.set_result(run)
        return run

    def leave(self, key: Key) -> None:
        """The turn has ended: the same message sent now starts a new one."""
        self._runs.pop(key, None)


def key_of(identity: Identity, agent: Target, send: Send, claim: Claim | None) -> Key:
    """Under which a message that is being answered is found."""
    return identity.user_id, agent.session_id, claim.chat_id.encode() if claim else digest_of(send)


def digest_of(send: Send) -> bytes:
    """What tells one message from another: all of it, but for how its answer is to be shown."""
    is_direct = send.takes_direct and send.plain_is_direct
    besides = [one for one in (send.metadata, send.output_modes) if one]
    said = (send.message, send.task_id, send.context_id, is_direct, send.push, *besides)
    body = msgspec.json.encode(said)
    return hashlib.blake2b(body, digest_size=16).digest()


def _pass_on(failure: BaseException, joined: asyncio.Future[TaskRun]) -> None:
    """Requests that joined get the same failure; reading it here keeps asyncio from logging it when none did."""
    if isinstance(failure, Exception):
        joined.set_exception(failure)
        joined.exception()
    else:
        joined.cancel()


class Joined:
    """Follows a task that another process runs; same interface as `TaskRun`."""

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

    answered = ended  # a task that asks is not open


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
