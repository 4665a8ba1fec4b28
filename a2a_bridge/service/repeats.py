"""Repeated sends: of a message that is being answered, in any process; or with an `Idempotency-Key`, within 24 h.

The ledger says of an identical message which turn answers it (docs/adr/0089); a key's row, which turn it began
(docs/adr/0089). `Exchanges.find` has that turn when it runs here; else `JoinedTask` or `RepeatedSend` follows it.
"""

import asyncio
import hashlib
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db import IntegrityError

from a2a_bridge.models import SendKey
from a2a_bridge.service.tasks.feed import Feed
from a2a_bridge.service.tasks.pieces import end_of, is_promoted
from a2a_bridge.service.tasks.reader import (
    LOOK_EVERY_S,
    TaskReader,
    end_of_turn,
    find_process_of_queued,
    is_queued,
)
from a2a_bridge.wire.dialects.reading import invalid
from a2a_bridge.wire.errors import IDEMPOTENCY_KEY_REUSED
from a2a_bridge.wire.requests import Send
from a2a_bridge.wire.task import Role, Task, after, timestamp
from agents.core.errors import AlreadyAsked, Denied, Unavailable
from agents.core.post import JoinTurn, Post
from agents.core.types import SettledTurn
from agents.models import Turn
from agents.models.choices import Outcome
from kit import batches, sql
from kit.async_db import db_call
from kit.clock import db_now
from kit.durations import seconds
from kit.ids import time_ordered
from kit.jsonrpc import RpcError

KEPT = timedelta(hours=24)
# A claim that has neither a turn nor a queued ask after this time counts as never admitted.
ADMITTED_WITHIN = timedelta(seconds=seconds(15.0, at_least_s=8.0))
# After this time not even a ledger that waits for locks admits the ask.
ABANDONED_AFTER = timedelta(seconds=seconds(60.0, at_least_s=15.0))
MAX_KEY_CHARS = 255
CLAIM_TRIES = 5
SHOWN_WITHIN_S = 3.0
SHOWN_EVERY_S = 0.05

KeepPosition = Callable[[str], Awaitable[None]]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Task).decode
_KEEP = "UPDATE a2a_bridge_sendkey SET result = %s, is_plain = %s WHERE id = %s RETURNING id"
_RELEASE = "DELETE FROM a2a_bridge_sendkey WHERE id = %s AND chat_id = %s RETURNING id"


@dataclass(frozen=True, slots=True)
class KeyClaim:
    """A key that belongs to a turn, this one or an earlier one."""

    pk: int
    task_id: str
    chat_id: str
    is_new: bool

    def writes(self, task: Task, settled: SettledTurn, *, is_plain: bool) -> Sequence[sql.Query]:
        """The statements to write with the end of the turn.

        If the hub sent nothing to the agent, these statements free the key.
        """
        if settled.is_unsent:
            return [sql.Query(_RELEASE, [self.pk, self.chat_id])]
        return [sql.Query(_KEEP, [_encode(task).decode(), is_plain, self.pk])]


class Followed(ABC):
    """Follows a turn that an earlier send started, here or in another process; same methods as `TaskRun`.

    `denied`: None, because only the process of the turn knows why an agent was not asked.
    """

    denied: Denied | None = None

    async def answered(self, within_s: float) -> bool:
        """Wait for the end of the turn; returns whether the turn ended in time.

        A task that asks for input is not open; an approval that the agent waits for is not known here.

        Raises:
            Unavailable: the first message was refused, and the hub sent nothing; or the task is out of reach.
        """
        until = time.monotonic() + within_s
        while not await self._look():
            left_s = until - time.monotonic()
            if left_s <= 0:
                return False
            await self._rest(min(left_s, LOOK_EVERY_S))
        return True

    @abstractmethod
    async def _look(self) -> bool:
        """True if the turn has ended by now."""

    async def _rest(self, within_s: float) -> None:
        """Wait until the task may have changed."""
        await asyncio.sleep(within_s)


class JoinedTask(Followed):
    """Follows a task that another process runs, by the feed of the task. `follower`: see `JoinTurn`."""

    def __init__(self, feed: Feed, send: Send, reader: TaskReader, follower: str = "") -> None:
        self.feed = feed
        self.follower = follower
        self._turns = feed.task.turns
        self._plain_is_direct = send.plain_is_direct
        self._reader = reader

    @property
    def task(self) -> Task:
        """The task as this process knows it."""
        return self.feed.task

    @property
    def is_promoted(self) -> bool:
        """True if the answer of the turn is a task, as far as the stored task shows."""
        if not self._plain_is_direct:
            return True
        return is_promoted(self.task, ()) or any(one.id != self.task.reply_id for one in self.task.artifacts)

    async def _look(self) -> bool:
        if self.task.turns < self._turns:  # the ask was refused: the task waits for its caller, as before it
            raise Unavailable("the first of these messages was refused")
        return not self.task.is_open

    async def _rest(self, within_s: float) -> None:
        await self.feed.wait_for_events(self.task.seq, within_s)
        if not await self._reader.refresh(self.feed):
            raise Unavailable("the task is gone")


class RepeatedSend(Followed):
    """The result of the send that took a key. `begun`: its task, while it runs.

    `keep_place`: called once with the process in which the ask waits for its agent, if it does.
    """

    def __init__(self, claim: KeyClaim, begun: Task, *, wait_s: float, keep_place: KeepPosition) -> None:
        self.task = begun
        self.is_promoted = False
        self._claim = claim
        self._wait_s = wait_s
        self._keep_position = keep_place
        self._has_kept = False
        self._has_ended = False

    async def _look(self) -> bool:
        if self._has_ended:
            return True
        kept, settled, home = await db_call(_read)(self._claim)
        if kept is not None:
            self.task, self.is_promoted = _decode(kept.result), not kept.is_plain
        elif settled is not None:
            events = end_of(self.task, settled, wait_s=self._wait_s, at=timestamp())
            self.task, self.is_promoted = after(self.task, events), True
        else:
            if home and not self._has_kept:
                self._has_kept = True
                await self._keep_position(home)
            return False
        self._has_ended = True
        return True


async def join(
    same: AlreadyAsked, caller_id: int, send: Send, post: Post, reader: TaskReader, follower: str
) -> JoinedTask | None:
    """Have the process that runs the task publish it, and follow the task; None if the turn ended before
    that.

    `follower`: see `JoinTurn`.

    Raises:
        Unavailable: that process does not say; it may be dead, and its turn about to be ended.
    """
    await post.send(same.home, JoinTurn(same.chat_id, follower=follower))
    deadline = time.monotonic() + SHOWN_WITHIN_S
    while time.monotonic() < deadline:
        if task := await reader.find(same.task_id, caller_id):
            return JoinedTask(await reader.follow(task), send, reader, follower)
        if not await db_call(_is_open)(same.chat_id):
            return None
        await asyncio.sleep(SHOWN_EVERY_S)
    raise Unavailable("an identical message is being answered out of reach")


def is_being_answered(task: Task, send: Send) -> bool:
    """True if the open turn of a task answers this very message, which continues the task."""
    if not task.is_open or task.turns == 1:
        return False
    return next((one for one in reversed(task.history) if one.role is Role.USER), None) == send.message


def check(key: str) -> str:
    """A key as a header may hold it.

    Raises:
        RpcError: -32602, it is too long or not printable.
    """
    if len(key) > MAX_KEY_CHARS or not key.isascii() or not key.isprintable() or not key.strip():
        raise invalid("Idempotency-Key", f"Idempotency-Key: want 1 to {MAX_KEY_CHARS} printable ASCII characters")
    return key


async def take(caller_id: int, handle: str, key: str, body: bytes, *, task_id: str) -> KeyClaim:
    """Take a key, or find the turn that has it. `task_id`: of the task the message goes on with, or begins.

    Raises:
        RpcError: the key belongs to another message.
        Unavailable: other requests took and freed the key again and again.
    """
    return await db_call(_claim)(caller_id, handle, key, body.hex(), task_id)


async def release_key(claimed: KeyClaim) -> None:
    """Free the key of a send that sent nothing."""
    await db_call(_delete)(claimed.pk, claimed.chat_id)


def forget_old() -> int:
    """Delete keys older than 24 h, in batches; returns the number of deleted keys."""
    return batches.delete(SendKey.objects.filter(created_at__lt=db_now() - KEPT))


def _claim(caller_id: int, handle: str, key: str, body: str, task_id: str) -> KeyClaim:
    now = db_now()
    named = {"caller_id": caller_id, "handle": handle, "key": hashlib.sha256(key.encode()).hexdigest()}
    SendKey.objects.filter(**named, created_at__lt=now - KEPT).delete()
    ids = {"task_id": task_id, "chat_id": time_ordered()}
    row, is_new = _row_of(named, {"body": body, "created_at": now, **ids})
    if row.body != body:
        raise RpcError(IDEMPOTENCY_KEY_REUSED, "this Idempotency-Key belongs to another message", status=200)
    if not is_new and _was_abandoned(row, now) and _take_over(row, ids, now):
        return KeyClaim(row.pk, ids["task_id"], ids["chat_id"], is_new=True)
    return KeyClaim(row.pk, row.task_id, row.chat_id, is_new)


def _row_of(named: Mapping[str, Any], fields: Mapping[str, Any]) -> tuple[SendKey, bool]:
    """The row of a key, and whether it is new.

    The request that holds the key may free it between our read and our insert, or after.
    """
    for _ in range(CLAIM_TRIES):
        with suppress(IntegrityError):
            return SendKey.objects.get_or_create(**named, defaults=fields)
    raise Unavailable("the key is taken and let go of all the time")


def _was_abandoned(row: SendKey, now: datetime) -> bool:
    """True if the process of the request died, or lost the database, before it was admitted or could free the
    key.
    """
    is_old = not row.result and row.created_at < now - ABANDONED_AFTER
    return is_old and not is_queued(row.chat_id) and not _was_admitted(row.chat_id)


def _was_admitted(chat_id: str) -> bool:
    return Turn.objects.filter(chat_id=chat_id).exclude(outcome=Outcome.DENIED).exists()


def _take_over(row: SendKey, ids: dict[str, str], now: datetime) -> bool:
    """Give an abandoned key to this send; False when another send was first."""
    same = SendKey.objects.filter(pk=row.pk, chat_id=row.chat_id)
    return bool(same.update(created_at=now, **ids))


def _read(claimed: KeyClaim) -> tuple[SendKey | None, SettledTurn | None, str]:
    """The kept answer; or why there is none to come, as the turn says; or the process in which the ask waits.

    A young claim may have no turn yet.
    """
    row = SendKey.objects.filter(pk=claimed.pk, chat_id=claimed.chat_id).first()
    if row is None:
        raise Unavailable("the first of these sends was refused")
    if row.result:
        return row, None, ""
    if _was_admitted(claimed.chat_id):
        return None, end_of_turn(claimed.chat_id), ""
    home = find_process_of_queued(claimed.chat_id)
    is_old = row.created_at < db_now() - ADMITTED_WITHIN
    # The turn may have been admitted since the first query.
    if is_old and not home and not _was_admitted(claimed.chat_id):
        raise Unavailable("the first of these sends was never admitted")
    return None, None, home


def _is_open(chat_id: str) -> bool:
    return is_queued(chat_id) or Turn.objects.filter(chat_id=chat_id, outcome=None).exists()


def _delete(pk: int, chat_id: str) -> None:
    SendKey.objects.filter(pk=pk, chat_id=chat_id).delete()  # not a key that another send took over
