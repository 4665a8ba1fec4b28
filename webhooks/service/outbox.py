"""Writes a delivery for each subscription to an event, in the transaction of the event; pauses all sending."""

import json
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from django.db import transaction
from django.db.models import Exists
from django.db.models.functions import Now

from kit import sql
from kit.clock import db_now
from kit.ids import time_ordered
from webhooks.models import Delivery, SendingPause, Subscription
from webhooks.wire import is_wanted

Waker = Callable[[], None]

_commit_callbacks: list[Waker] = []

ROWS_AT_ONCE = 190
MAX_HANDLE_CHARS = 160
# Of these owners. The rows are locked: a subscription deleted before the caller's commit would make it fail.
_SUBSCRIPTIONS = sql.KeyedQuery(
    lambda owners: Subscription.objects.filter(
        owner_id__in=owners, owner__is_active=True, paused_at=None
    ).values_list("pk", "owner_id", "credential_id", "events", "session_id", "routing_name"),
    holds_keys=True,
)
MAX_REASON_CHARS = 200
NOT_PAUSED = ~Exists(SendingPause.objects.all())  # a condition for queries of any table


@dataclass(frozen=True, slots=True, kw_only=True)
class OutboxEvent:
    """An event that subscriptions may want.

    `audience`: the ids of the users whose subscriptions may get the event; `payload`: JSON with the wire's own
    names. `session_id` (a UUID) and `routing_name` (with its @): what filters of subscriptions compare; None when
    the event belongs to no session. `traceparent`: of the turn that the event is about, if any. `credentials`: the
    ids of the credentials whose subscriptions may get the event, of the same users; a queryset is read only if one
    of these users has a subscription of a credential that wants the event.
    """

    type: str
    audience: Collection[int]
    payload: Mapping[str, Any]
    session_id: str | None = None
    routing_name: str | None = None
    traceparent: str = ""
    credentials: Iterable[int] = ()


@dataclass(frozen=True, slots=True)
class _Subscriber:
    """The columns of a subscription by which it matches events."""

    subscription_id: int
    owner_id: int
    credential_id: int | None
    events: str
    session_id: str
    routing_name: str

    def wants(self, happening: OutboxEvent) -> bool:
        return (
            self.owner_id in happening.audience
            and is_wanted(happening.type, self.events.split())
            and self.session_id in ("", happening.session_id)
            and self.routing_name in ("", happening.routing_name)
            and (self.credential_id is None or self.credential_id in happening.credentials)
        )


def has_subscriptions() -> bool:
    """True if there is any subscription: most hubs have none, and then no events are written."""
    return bool(Subscription.objects.exists())


def record(happenings: Sequence[OutboxEvent]) -> int:
    """Queue a delivery of each event for each subscription that wants it; returns the number of deliveries. Call
    it in the transaction of the events.

    The function makes one query without subscriptions, one more for each 190 deliveries, and those of
    `credentials`.
    """
    audience = {user_id for happening in happenings for user_id in happening.audience}
    if not audience:
        return 0
    listeners = [_Subscriber(*row) for row in _SUBSCRIPTIONS.rows(audience)]
    pairs = [(one, happening) for happening in happenings for one in listeners if one.wants(happening)]
    return len(queue([(one.subscription_id, happening) for one, happening in pairs]))


def queue(deliveries: Sequence[tuple[int, OutboxEvent]]) -> list[str]:
    """Queue deliveries, and wake the senders after the commit; returns the ids of the events."""
    rows = [
        Delivery(
            subscription_id=subscription_id,
            event_id=new_event_id(),
            type=happening.type,
            agent_handle=str(happening.payload.get("handle") or "")[:MAX_HANDLE_CHARS],
            payload=as_json(happening.payload),
            traceparent=happening.traceparent,
            queued_at=Now(),
            next_attempt_at=Now(),
        )
        for subscription_id, happening in deliveries
    ]
    Delivery.objects.bulk_create(rows, batch_size=ROWS_AT_ONCE)
    if rows:
        # Not earlier: a sender that is woken before the commit finds nothing, and waits for its schedule.
        transaction.on_commit(wake)
    return [row.event_id for row in rows]


def on_queued(waker: Waker) -> None:
    """Register a function to call after each commit that queued a delivery; it must return at once."""
    if waker not in _commit_callbacks:
        _commit_callbacks.append(waker)


def wake() -> None:
    """Wake the senders, because a row waits. Without a waker the schedule finds the row within seconds."""
    for waker in _commit_callbacks:
        waker()


def new_event_id() -> str:
    """An id by which a receiver recognises repetitions."""
    return f"evt_{time_ordered()}"


def as_json(payload: Mapping[str, Any]) -> str:
    """A payload as JSON that every database and receiver accepts: without NaN and lone surrogates.

    A part that is already JSON text may be in the payload as `msgspec.Raw`.
    """
    try:
        return msgspec.json.encode(payload).decode("utf-8")
    except UnicodeEncodeError:  # a lone surrogate
        text = json.dumps(payload, ensure_ascii=False, default=_parsed).encode("utf-8", "replace")
        return msgspec.json.encode(json.loads(text, parse_constant=lambda _: None)).decode("utf-8")


def _parsed(part: msgspec.Raw) -> Any:
    return json.loads(bytes(part))


def pause_sending(reason: str = "") -> tuple[SendingPause, bool]:
    """Pause sending in all processes; attempts that have begun end. Returns the pause, and True if it is new."""
    made: tuple[SendingPause, bool] = SendingPause.objects.get_or_create(
        pk=SendingPause.ONLY, defaults={"paused_at": db_now(), "reason": reason[:MAX_REASON_CHARS]}
    )
    return made


def resume_sending() -> bool:
    """Resume sending with the rows that waited; False if sending was not paused."""
    return bool(SendingPause.objects.filter(pk=SendingPause.ONLY).delete()[0])


def find_pause() -> SendingPause | None:
    """The pause, while there is one."""
    return SendingPause.objects.filter(pk=SendingPause.ONLY).first()
