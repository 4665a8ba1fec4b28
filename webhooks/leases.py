"""Taking deliveries to send and writing down what became of them; several programs may do so at once."""

import random
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from typing import Any

from django.db import transaction
from django.db.models import F, QuerySet

from kit.clock import db_now
from kit.durations import seconds
from webhooks.models import Delivery, Sendable
from webhooks.outbox import wake
from webhooks.pausing import find_pause
from webhooks.places import Places
from webhooks.queues import Queue, Request
from webhooks.subscriptions import WEBHOOKS

LEASE = timedelta(seconds=seconds(60.0, at_least_s=15.0))
JITTER = 0.2
LOOK_AT = 200
MAX_ERROR_CHARS = 200
Status = Sendable.Status


@dataclass(frozen=True, slots=True)
class Leased:
    """A delivery that is ours to send until `until`. Without `request` nobody can sign it any more."""

    delivery: Sendable
    until: datetime
    request: Request | None
    queue: Queue

    @property
    def receiver_id(self) -> int:
        """To whom it goes."""
        return _id(self.delivery, self.queue.receiver)

    @property
    def owner_id(self) -> int:
        """For whom it goes there."""
        return _id(self.delivery, self.queue.owner)


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one attempt ended: the status that came, or the sentence why none did."""

    status: int | None
    error: str = ""

    @property
    def is_success(self) -> bool:
        """Any 2xx."""
        return self.status is not None and 200 <= self.status < 300


def lease(places: Places, queue: Queue = WEBHOOKS) -> list[Leased]:
    """Due deliveries there are places for, the longest due first: ours for 60 s, then anybody's again.

    None while sending is paused.
    """
    leased: list[Leased] = []
    while places.left and (found := _lease_some(places, queue)):
        leased += found
    return leased


def settle(leased: Leased, outcome: Outcome) -> bool:
    """Write down how an attempt ended; False when the lease ran out before, and the row is somebody else's now."""
    now = db_now()
    queue, rows = leased.queue, leased.queue.rows._default_manager
    mine = rows.filter(pk=leased.delivery.pk, status=Status.SENDING, next_attempt_at=leased.until)
    changes = _changes(leased.delivery.attempts, outcome, now, queue.retry_after_s)
    is_exhausted = changes["status"] == Status.FAILED
    with transaction.atomic():
        # The receiver first, as whoever deletes it with its deliveries: nobody waits in a circle.
        queue.note(leased.delivery, now, is_success=outcome.is_success, is_exhausted=is_exhausted)
        if mine.update(last_status=outcome.status, last_error=outcome.error[:MAX_ERROR_CHARS], **changes):
            return True
        transaction.set_rollback(True)
    return False


def send_again(delivery: Delivery) -> bool:
    """Start a delivery over, under the same id; False while it is being sent."""
    idle = Delivery.objects.filter(pk=delivery.pk).exclude(status=Status.SENDING)
    if not idle.update(status=Status.PENDING, attempts=0, next_attempt_at=db_now(), delivered_at=None):
        return False
    transaction.on_commit(wake)
    return True


def _lease_some(places: Places, queue: Queue) -> list[Leased]:
    """A look at the head of the queue. Whoever has no place left is left out of the next look."""
    now = db_now()
    if not _candidates(now, places, queue).exists():  # before a transaction, which is a writer's on SQLite
        return []
    if find_pause() is not None:
        return []
    with transaction.atomic():
        rows = _candidates(now, places, queue).select_for_update(skip_locked=True, of=("self",))[:LOOK_AT]
        taken = [row for row in rows if places.enter(_id(row, queue.receiver), _id(row, queue.owner))]
        until = db_now() + LEASE
        ids = [row.pk for row in taken]
        sending = {"status": Status.SENDING, "next_attempt_at": until, "attempts": F("attempts") + 1}
        queue.rows._default_manager.filter(pk__in=ids).update(**sending)
    for row in taken:
        row.attempts += 1
    return [Leased(row, until, queue.request(row, now), queue) for row in taken]


def _candidates(now: datetime, places: Places, queue: Queue) -> QuerySet[Any]:
    due = queue.candidates(now)
    due = due.exclude(**{f"{queue.receiver}__in": places.full_receivers()})
    due = due.exclude(**{f"{queue.owner}__in": places.full_owners()})
    return due.order_by("next_attempt_at", "pk")


def _id(row: Sendable, path: str) -> int:
    found: int = attrgetter(path.replace("__", "."))(row)
    return found


def _changes(attempts: int, outcome: Outcome, now: datetime, retry_after_s: Sequence[float]) -> dict[str, Any]:
    if outcome.is_success:
        return {"status": Status.DELIVERED, "delivered_at": now, "next_attempt_at": None}
    if attempts > len(retry_after_s):
        return {"status": Status.FAILED, "next_attempt_at": None}
    wait_s = retry_after_s[attempts - 1] * random.uniform(1 - JITTER, 1 + JITTER)  # noqa: S311  spreads load
    return {"status": Status.PENDING, "next_attempt_at": now + timedelta(seconds=wait_s)}
