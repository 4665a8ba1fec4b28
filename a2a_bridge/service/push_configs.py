"""The push addresses of tasks as rows, their sealed secrets, and the SQL that queues what they are told."""

from collections.abc import Sequence
from typing import Any

import msgspec
from django.db import connection, transaction
from msgspec import to_builtins
from msgspec.structs import replace

from a2a_bridge import limits
from a2a_bridge.models import PushConfig
from a2a_bridge.wire.dialects.v1.shapes import StreamEvent, render_status_update, render_whole
from a2a_bridge.wire.requests import PushTarget
from a2a_bridge.wire.task import StatusEvent, Task, TaskEvent
from accounts import quotas, sealing
from accounts.sealing import SecretUnreadable
from agents.models import Turn
from agents.transcript.pieces import Json
from kit import sql
from kit.clock import db_now
from kit.ids import unguessable
from webhooks.service.outbox import as_json

PURPOSE = b"push configs"
_END = """
UPDATE a2a_bridge_pushconfig SET ended_seq = %s, touched_at = {now} WHERE task_id = %s AND ended_seq IS NULL
"""
_QUEUE = """
INSERT INTO a2a_bridge_push
    (config_id, seq, payload, status, attempts, queued_at, next_attempt_at, last_error, traceparent)
SELECT c.id, v.column1, v.column2, 'pending', 0, {now}, {now}, '', %s
FROM a2a_bridge_pushconfig c, (VALUES {rows}) AS v
WHERE c.task_id = %s AND {which} {lock}
ON CONFLICT (config_id, seq) DO NOTHING
"""
_RETURN = "UPDATE a2a_bridge_pushconfig SET chat_id = %s WHERE task_id = %s AND ended_seq IS NULL"
# Rows that another transaction is deleting are skipped: a deleted address gets no push.
_LOCK = {"sqlite": "", "postgresql": "FOR KEY SHARE OF c SKIP LOCKED"}


class Secrets(msgspec.Struct, frozen=True):
    """The headers of a push that only its receiver and the caller know."""

    token: str = ""
    scheme: str = ""
    credentials: str = ""


@transaction.atomic
def keep(task: Task, target: PushTarget) -> tuple[PushTarget, bool]:
    """Keep an address of a task in place of one with the same id; returns whether the task's turn has ended.

    If the task has not ended, its end will find this address: settling the task waits for this transaction.

    Raises:
        accounts.quotas.QuotaExceeded: the task, or its caller, has as many as one may have; nothing was written.
    """
    quotas.lock_owner(task.caller_id)
    # Lock the turn before its configs: the transaction that settles the turn locks in the same order.
    turn = Turn.objects.select_for_update(no_key=True).filter(chat_id=task.chat_id).first()
    config_id = target.config_id or unguessable("push-")
    now = db_now()
    fields: dict[str, Any] = {"url": target.url, "sealed": seal(target), "touched_at": now}
    if not _of(task.id).filter(config_id=config_id).update(**fields):
        limits.PUSH_CONFIGS_OF_TASK.check_number(_of(task.id).count())
        limits.PUSH_CONFIGS.check(task.caller_id)
        PushConfig.objects.create(
            task_id=task.id,
            config_id=config_id,
            caller_id=task.caller_id,
            context_id=task.context_id,
            chat_id=task.chat_id,
            ended_seq=task.seq if task.is_terminal else None,
            **fields,
        )
    return replace(target, config_id=config_id), turn is not None and turn.outcome is not None


@transaction.atomic
def copy(task_id: str, to: Task) -> int:
    """Copy a task's push addresses, up to half of the limit, to a later task; returns the number of copies."""
    quotas.lock_owner(to.caller_id)
    most, copies = limits.PUSH_CONFIGS.most, 0
    has = limits.PUSH_CONFIGS.count_used(to.caller_id)
    for row in _of(task_id).order_by("pk"):
        if most and has + copies >= most // 2:
            break
        PushConfig.objects.create(
            task_id=to.id,
            config_id=row.config_id,
            caller_id=to.caller_id,
            context_id=to.context_id,
            chat_id=to.chat_id,
            url=row.url,
            sealed=row.sealed,
            touched_at=db_now(),
        )
        copies += 1
    return copies


def find(task_id: str, config_id: str) -> PushTarget | None:
    """One address of a task, without its credentials."""
    row = _of(task_id).filter(config_id=config_id).first()
    return _shown(row) if row is not None else None


def page(task_id: str, size: int, after: int) -> tuple[Sequence[PushTarget], int]:
    """The next `size` addresses after the row `after`, without credentials; and the last row's id, 0 on the last
    page.
    """
    rows = list(_of(task_id).filter(pk__gt=after).order_by("pk")[: size + 1])
    shown = [_shown(row) for row in rows[:size]]
    return shown, rows[size - 1].pk if len(rows) > size else 0


@transaction.atomic
def drop(task_id: str, config_id: str = "") -> None:
    """Delete one address of a task, or all of them, with the pushes that wait for it."""
    rows = _of(task_id).filter(config_id=config_id) if config_id else _of(task_id)
    for held in rows.order_by("pk").select_for_update(of=("self",)):
        held.delete()


def _of(task_id: str) -> Any:
    return PushConfig.objects.filter(task_id=task_id)


def _shown(row: PushConfig) -> PushTarget:
    try:
        secrets = unseal(row.sealed)
    except SecretUnreadable:
        secrets = Secrets()
    return PushTarget(url=row.url, config_id=row.config_id, token=secrets.token, scheme=secrets.scheme)


def seal(target: PushTarget) -> str:
    """The secrets of an address, sealed."""
    secrets = Secrets(target.token, target.scheme, target.credentials)
    return sealing.seal(msgspec.json.encode(secrets).decode("utf-8"), PURPOSE)


def unseal(sealed: str) -> Secrets:
    """Decrypt stored secrets.

    Raises:
        Unreadable: the hub does not have the key that sealed the secrets.
    """
    return msgspec.json.decode(sealing.unseal(sealed, PURPOSE), type=Secrets)


def reseal_all() -> tuple[int, int]:
    """Seal all secrets anew with the newest key; the function returns how many it sealed, and could not read."""
    return sealing.reseal_all(PushConfig.objects.all(), PURPOSE, "sealed")


def queue_pushes(task: Task, events: Sequence[TaskEvent], traceparent: str = "") -> list[sql.Query]:
    """Queue the notifications of these events to every address of the task. `task`: its state after the events.

    The end of a task is queued once, by its process or by `a2a_bridge.service.push_delivery`. Queuing an event
    again changes nothing.
    """
    told = [(event.seq, payload) for event in events if (payload := payload_of(task, event))]
    if not told:
        return []
    now = sql.NOW[connection.vendor]
    rows = ", ".join(["(%s, %s)"] * len(told))
    which = "c.ended_seq = %s" if task.is_terminal else "c.ended_seq IS NULL"
    queue = _QUEUE.format(now=now, rows=rows, which=which, lock=_LOCK[connection.vendor])
    values = [traceparent, *(value for pair in told for value in pair), task.id]
    if not task.is_terminal:
        return [sql.Query(queue, values)]
    return [sql.Query(_END.format(now=now), [task.seq, task.id]), sql.Query(queue, [*values, task.seq])]


def return_to_turn(task: Task) -> sql.Query:
    """Set the turn of a task's push addresses back to the task's: the later turn was unsent, and ends no task."""
    return sql.Query(_RETURN, [task.chat_id, task.id])


def payload_of(task: Task, event: TaskEvent) -> str:
    """The JSON of an event, a stream response of A2A 1.0; empty when the event is not sent."""
    if isinstance(event, StatusEvent):
        return _as_json(StreamEvent(status_update=render_status_update(task, event)))
    artifact = task.artifact(event.artifact.id)
    if not event.last_chunk or artifact is None:
        return ""
    return _as_json(StreamEvent(artifact_update=render_whole(task, artifact)))


def _as_json(shown: StreamEvent) -> str:
    payload: Json = to_builtins(shown)
    return as_json(payload)
