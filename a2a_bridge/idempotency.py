"""Sends that may be repeated: one `Idempotency-Key`, within 24 h, one answer (docs/adr/0048)."""

import asyncio
import hashlib
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

import msgspec
from django.db import IntegrityError

from a2a_bridge.dialects.reading import invalid
from a2a_bridge.errors import IDEMPOTENCY_KEY_REUSED
from a2a_bridge.models import SendKey
from a2a_bridge.tasks.pieces import end_of
from a2a_bridge.tasks.reader import end_of_turn, home_of_queued, is_queued
from a2a_bridge.tasks.record import Task, after, timestamp
from agents.errors import Unavailable
from agents.models import Turn
from agents.types import Outcome, SettledTurn
from kit import batches, sql
from kit.async_db import db_call
from kit.clock import db_now
from kit.durations import seconds
from kit.ids import time_ordered
from kit.jsonrpc import RpcError

KEPT = timedelta(hours=24)
# A claim without a turn for longer lost its process.
ADMITTED_WITHIN = timedelta(seconds=seconds(15.0, at_least_s=8.0))
# And after this not even a ledger that waits for locks will admit it.
ABANDONED_AFTER = timedelta(seconds=seconds(60.0, at_least_s=15.0))
MAX_KEY_CHARS = 255
CLAIM_TRIES = 5
LOOK_EVERY_S = 0.5

KeepPlace = Callable[[str], Awaitable[None]]

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(Task).decode
_KEEP = "UPDATE a2a_bridge_sendkey SET result = %s, is_plain = %s WHERE id = %s RETURNING id"


@dataclass(frozen=True, slots=True)
class Claim:
    """A key that belongs to a turn, this one or an earlier one."""

    pk: int
    task_id: str
    chat_id: str
    is_new: bool

    def writes(self, task: Task, *, is_plain: bool) -> Sequence[sql.Query]:
        """What to write with the end of the turn."""
        return [sql.Query(_KEEP, [_encode(task).decode(), is_plain, self.pk])]


class Repeat:
    """The answer of an earlier send, with the methods of a `TaskRun`. `begun`: the task, while it runs.

    `keep_place`: called once with the process in which the ask waits for its agent, if it does.
    """

    def __init__(self, claim: Claim, begun: Task, *, wait_s: float, keep_place: KeepPlace) -> None:
        self.task = self.opening = begun
        self.is_promoted = False
        self._claim = claim
        self._wait_s = wait_s
        self._keep_place = keep_place
        self._has_kept = False
        self._has_ended = False

    async def answered(self, within_s: float) -> bool:
        """The same as `ended`: what the first was asked to approve is not known here."""
        return await self.ended(within_s)

    async def ended(self, within_s: float) -> bool:
        """Wait for the end of the first; whether it came in time.

        Raises:
            Unavailable: the first came to nothing, nothing was sent; its key is free, or will be.
        """
        until = time.monotonic() + within_s
        while not await self._look():
            left_s = until - time.monotonic()
            if left_s <= 0:
                return False
            await asyncio.sleep(min(left_s, LOOK_EVERY_S))
        return True

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
                await self._keep_place(home)
            return False
        self._has_ended = True
        return True


def check(key: str) -> str:
    """A key as a header may hold it.

    Raises:
        RpcError: -32602, it is too long or not printable.
    """
    if len(key) > MAX_KEY_CHARS or not key.isascii() or not key.isprintable() or not key.strip():
        raise invalid("Idempotency-Key", f"Idempotency-Key: want 1 to {MAX_KEY_CHARS} printable ASCII characters")
    return key


async def take(caller_id: int, handle: str, key: str, body: bytes, *, task_id: str) -> Claim:
    """Take a key, or find the turn that has it. `task_id`: of the task the message goes on with, or begins.

    Raises:
        RpcError: the key belongs to another message.
        Unavailable: others took it and let go, again and again.
    """
    return await db_call(_claim)(caller_id, handle, key, body.hex(), task_id)


async def let_go(claimed: Claim) -> None:
    """Nothing was sent: the key is free again."""
    await db_call(_delete)(claimed.pk, claimed.chat_id)


def forget_old() -> int:
    """Delete keys older than 24 h, in batches; how many went."""
    return batches.delete(SendKey.objects.filter(created_at__lt=db_now() - KEPT))


def _claim(caller_id: int, handle: str, key: str, body: str, task_id: str) -> Claim:
    now = db_now()
    named = {"caller_id": caller_id, "handle": handle, "key": hashlib.sha256(key.encode()).hexdigest()}
    SendKey.objects.filter(**named, created_at__lt=now - KEPT).delete()
    ids = {"task_id": task_id, "chat_id": time_ordered()}
    row, is_new = _row_of(named, {"body": body, "created_at": now, **ids})
    if row.body != body:
        raise RpcError(IDEMPOTENCY_KEY_REUSED, "this Idempotency-Key belongs to another message", status=200)
    if not is_new and _was_abandoned(row, now) and _take_over(row, ids, now):
        return Claim(row.pk, ids["task_id"], ids["chat_id"], is_new=True)
    return Claim(row.pk, row.task_id, row.chat_id, is_new)


def _row_of(named: Mapping[str, Any], fields: Mapping[str, Any]) -> tuple[SendKey, bool]:
    """The row of a key, and whether it is new. Who had it may let go between our look and our insert, or after."""
    for _ in range(CLAIM_TRIES):
        with suppress(IntegrityError):
            return SendKey.objects.get_or_create(**named, defaults=fields)
    raise Unavailable("the key is taken and let go of all the time")


def _was_abandoned(row: SendKey, now: datetime) -> bool:
    """Whether its process died, or lost the database, before it was admitted or could let go."""
    is_old = not row.result and row.created_at < now - ABANDONED_AFTER
    return is_old and not is_queued(row.chat_id) and not _was_admitted(row.chat_id)


def _was_admitted(chat_id: str) -> bool:
    return Turn.objects.filter(chat_id=chat_id).exclude(outcome=Outcome.DENIED).exists()


def _take_over(row: SendKey, ids: dict[str, str], now: datetime) -> bool:
    """Make an abandoned key this send's; False when another was first."""
    same = SendKey.objects.filter(pk=row.pk, chat_id=row.chat_id)
    return bool(same.update(created_at=now, **ids))


def _read(claimed: Claim) -> tuple[SendKey | None, SettledTurn | None, str]:
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
    home = home_of_queued(claimed.chat_id)
    is_old = row.created_at < db_now() - ADMITTED_WITHIN
    if is_old and not home and not _was_admitted(claimed.chat_id):  # it may have been since we looked
        raise Unavailable("the first of these sends was never admitted")
    return None, None, home


def _delete(pk: int, chat_id: str) -> None:
    SendKey.objects.filter(pk=pk, chat_id=chat_id).delete()  # not one that another took over
