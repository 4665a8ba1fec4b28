"""Sends what the push addresses of tasks are told: signed, in the order of each task's events.

Two jobs also send the ends of tasks that no process sent, because the process died and the reaper ended the task,
and delete old rows.
"""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any, ClassVar

import msgspec
from django.db import transaction
from django.db.models import Exists, Max, OuterRef, Q, QuerySet

from a2a_bridge import settings
from a2a_bridge.models import Push, PushConfig
from a2a_bridge.service.push_configs import Secrets, payload_of, unseal
from a2a_bridge.service.tasks.pieces import end_of
from a2a_bridge.service.tasks.store import ASKING_TTL_S, ENDED_TTL_S, OPEN_TTL_S
from a2a_bridge.wire.task import State, Task, after, timestamp
from accounts.sealing import SecretUnreadable
from accounts.signing import NoKey, sign
from agents.core.types import SettledTurn
from agents.models import Turn
from agents.models.choices import Outcome
from kit import batches
from kit.clock import db_now
from kit.durations import seconds
from webhooks.service.sending import EACH_OWNER, HttpOutbox, SignedRequest, traced

MEDIA_TYPE = "application/a2a+json"
USER_AGENT = "clawbridge-push"
TOKEN = "X-A2A-Notification-Token"  # noqa: S105  the name of a header
SIGNATURE = "X-A2A-Notification-Signature"
RETRY_AFTER_S = tuple(map(seconds, (5, 30, 120, 600, 1800)))
AT_ONCE = 500
FORGOTTEN_AT_ONCE = 100
ENDED_KEPT = timedelta(seconds=ENDED_TTL_S)
KEPT = timedelta(seconds=ASKING_TTL_S + OPEN_TTL_S)


class PushOutbox(HttpOutbox):
    """The pushes of all tasks. A push waits for those of earlier events to the same address."""

    rows = Push
    receiver = "config_id"
    shares: ClassVar[Mapping[str, int]] = {"config_id": 1, "config__caller_id": EACH_OWNER}
    retry_after_s = RETRY_AFTER_S
    unreadable = "what it is signed or authorized with cannot be read any more"

    def find_sendable(self) -> QuerySet[Any]:
        """See `Outbox`."""
        earlier = Push.objects.filter(
            config=OuterRef("config"), seq__lt=OuterRef("seq"), status__in=Push.UNSETTLED
        )
        rows = super().find_sendable().filter(~Exists(earlier), config__caller__is_active=True)
        return rows.select_related("config")

    def prepare(self, row: Push, now: datetime) -> SignedRequest | None:
        """See `Outbox`; None: there can be no request."""
        config, body = row.config, row.payload.encode("utf-8")
        try:
            secrets = unseal(config.sealed)
            signature = _signature(config, row.seq, body, now)
        except (SecretUnreadable, NoKey):
            return None
        headers = {"Content-Type": MEDIA_TYPE, "User-Agent": USER_AGENT, SIGNATURE: signature}
        return SignedRequest(
            url=config.url, headers=traced(headers | _headers(secrets), row.traceparent), body=body
        )


def _headers(secrets: Secrets) -> dict[str, str]:
    headers = {TOKEN: secrets.token} if secrets.token else {}
    if secrets.scheme:
        headers["Authorization"] = f"{secrets.scheme} {secrets.credentials}".strip()
    return headers


def _signature(config: PushConfig, seq: int, body: bytes, now: datetime) -> str:
    """A JWT about this very attempt (docs/howto/receive-push.md). `jti` is the same in each attempt."""
    claims = {
        "iss": settings.PUBLIC_URL,
        "aud": config.url,
        "iat": int(now.timestamp()),
        "jti": f"{config.task_id}.{seq}",
        "taskId": config.task_id,
        "request_body_sha256": hashlib.sha256(body).hexdigest(),
    }
    return sign(msgspec.json.encode(claims), {"typ": "JWT"})


def queue_missed_ends() -> int:
    """Queue the failures of turns that ended without their process; the result is the number of addresses.

    A process that lives queues the end of its turn in the transaction that settles the turn.
    """
    failed = Turn.objects.filter(chat_id=OuterRef("chat_id"), outcome=Outcome.FAILED)
    lost = PushConfig.objects.filter(Exists(failed), ended_seq=None).order_by("pk")[:AT_ONCE]
    turns = {turn.chat_id: turn for turn in Turn.objects.filter(chat_id__in=[one.chat_id for one in lost])}
    return sum(_end(config, turns[config.chat_id]) for config in lost if config.chat_id in turns)


def forget_configs() -> int:
    """Delete the addresses of tasks that are gone, once no push waits for them; returns their number."""
    now = db_now()
    waiting = Push.objects.filter(config=OuterRef("pk"), status__in=Push.UNSETTLED)
    ended = Q(ended_seq__isnull=False, touched_at__lt=now - ENDED_KEPT) & ~Exists(waiting)
    over = PushConfig.objects.filter(ended | Q(touched_at__lt=now - KEPT))
    gone = 0
    for ids in batches.key_batches(over, FORGOTTEN_AT_ONCE):
        batches.delete(Push.objects.filter(config__in=ids))
        gone += PushConfig.objects.filter(pk__in=ids).delete()[1].get(PushConfig._meta.label, 0)
    return gone


@transaction.atomic
def _end(lost: PushConfig, turn: Turn) -> bool:
    """Queue the end of a task for one address; False if another process has just queued it."""
    config = PushConfig.objects.select_for_update(no_key=True).filter(pk=lost.pk, ended_seq=None).first()
    if config is None:
        return False
    known: int = Push.objects.filter(config=config).aggregate(last=Max("seq"))["last"] or 0
    task = Task(
        id=config.task_id,
        caller_id=config.caller_id,
        handle="",
        context_id=config.context_id,
        chat_id=config.chat_id,
        home="",
        state=State.WORKING,
        updated_at="",
        history=(),
        seq=known,
    )
    end = SettledTurn(Outcome.FAILED, turn.reason)
    [event] = end_of(task, end, wait_s=settings.REPLY_WAIT_S, at=timestamp())
    now = db_now()
    config.ended_seq, config.touched_at = event.seq, now
    config.save(update_fields=["ended_seq", "touched_at"])
    payload = payload_of(after(task, [event]), event)
    Push.objects.create(
        config=config,
        seq=event.seq,
        payload=payload,
        queued_at=now,
        next_attempt_at=now,
        traceparent=turn.traceparent,
    )
    return True
