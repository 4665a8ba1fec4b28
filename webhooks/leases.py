"""Taking deliveries to send and writing down what became of them; several programs may do so at once."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from kit.clock import db_now
from webhooks.keyring import Unreadable, unseal
from webhooks.models import Delivery, Subscription
from webhooks.outbox import wake
from webhooks.places import Places

LEASE = timedelta(seconds=60)
RETRY_AFTER_S = (10, 60, 300, 1800, 7200, 21600)
JITTER = 0.2
LOOK_AT = 200
MAX_ERROR_CHARS = 200
Status = Delivery.Status


@dataclass(frozen=True, slots=True)
class Leased:
    """A delivery that is ours to send until `until`. Without `secrets` nobody can sign it any more."""

    delivery: Delivery
    until: datetime
    secrets: Sequence[str]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended: the status that came, or the sentence why none did."""

    status: int | None
    error: str = ""

    @property
    def is_success(self) -> bool:
        """Any 2xx."""
        return self.status is not None and 200 <= self.status < 300


def lease(places: Places) -> list[Leased]:
    """Due deliveries there are places for, the longest due first: ours for 60 s, then anybody's again."""
    leased: list[Leased] = []
    while places.left and (found := _lease_some(places)):
        leased += found
    return leased


def settle(leased: Leased, outcome: Outcome) -> bool:
    """Write down how an attempt ended; False when the lease ran out before, and the row is somebody else's now."""
    now = db_now()
    mine = Delivery.objects.filter(pk=leased.delivery.pk, status=Status.SENDING, next_attempt_at=leased.until)
    changes = _changes(leased.delivery.attempts, outcome, now)
    with transaction.atomic():
        if not mine.update(last_status=outcome.status, last_error=outcome.error[:MAX_ERROR_CHARS], **changes):
            return False
        receiver = Subscription.objects.filter(pk=leased.delivery.subscription_id)
        if outcome.is_success:
            receiver.note_success(now)
        else:
            receiver.note_failure(exhausted=changes["status"] == Status.FAILED)
    return True


def send_again(delivery: Delivery) -> bool:
    """Start a delivery over, under the same id; False while it is being sent."""
    idle = Delivery.objects.filter(pk=delivery.pk).exclude(status=Status.SENDING)
    if not idle.update(status=Status.PENDING, attempts=0, next_attempt_at=db_now(), delivered_at=None):
        return False
    transaction.on_commit(wake)
    return True


def _lease_some(places: Places) -> list[Leased]:
    """A look at the head of the queue. Whoever has no place left is left out of the next look."""
    now = db_now()
    if not _candidates(now, places).exists():  # before a transaction, which is a writer's on SQLite
        return []
    with transaction.atomic():
        rows = _candidates(now, places).select_for_update(skip_locked=True, of=("self",))[:LOOK_AT]
        taken = [row for row in rows if places.enter(row.subscription_id, row.subscription.owner_id)]
        until = db_now() + LEASE
        ids = [row.pk for row in taken]
        sending = {"status": Status.SENDING, "next_attempt_at": until, "attempts": F("attempts") + 1}
        Delivery.objects.filter(pk__in=ids).update(**sending)
    for row in taken:
        row.attempts += 1
    return [Leased(row, until, _secrets(row.subscription, now)) for row in taken]


def _candidates(now: datetime, places: Places) -> QuerySet[Delivery]:
    due: QuerySet[Delivery] = Delivery.objects.due(now).filter(subscription__owner__is_active=True)
    due = due.exclude(subscription__in=places.full_subscriptions())
    due = due.exclude(subscription__owner__in=places.full_owners())
    return due.select_related("subscription").order_by("next_attempt_at", "pk")


def _secrets(subscription: Subscription, now: datetime) -> list[str]:
    try:
        return [unseal(sealed) for sealed in subscription.sealed_secrets(now)]
    except Unreadable:
        return []


def _changes(attempts: int, outcome: Outcome, now: datetime) -> dict[str, Any]:
    if outcome.is_success:
        return {"status": Status.DELIVERED, "delivered_at": now, "next_attempt_at": None}
    if attempts > len(RETRY_AFTER_S):
        return {"status": Status.FAILED, "next_attempt_at": None}
    wait_s = RETRY_AFTER_S[attempts - 1] * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  spreads load
    return {"status": Status.PENDING, "next_attempt_at": now + timedelta(seconds=wait_s)}
