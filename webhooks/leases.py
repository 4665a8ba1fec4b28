"""Taking deliveries to send and writing down what became of them; several programs may do so at once."""

import random
from collections import Counter
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
from webhooks.queues import Queue, Request
from webhooks.subscriptions import EACH_SUBSCRIPTION, WEBHOOKS

LEASE = timedelta(seconds=seconds(60.0, at_least_s=15.0))
JITTER = 0.2
LOOK_AT = 200
MAX_ERROR_CHARS = 200
AT_ONCE = 32
EACH_OWNER = 8
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


class SendLimits:
    """How many deliveries one sender has under way: in all, to one receiver, of one owner.

    So no receiver and no owner holds up the others.
    """

    def __init__(
        self, in_all: int = AT_ONCE, each_receiver: int = EACH_SUBSCRIPTION, each_owner: int = EACH_OWNER
    ) -> None:
        self._left = in_all
        self._each_receiver = each_receiver
        self._each_owner = each_owner
        self._receivers: Counter[int] = Counter()
        self._owners: Counter[int] = Counter()

    @property
    def left(self) -> int:
        """How many more in all."""
        return self._left

    def enter(self, receiver_id: int, owner_id: int) -> bool:
        """Count one more, if the limits allow it."""
        if (
            self._left == 0
            or self._receivers[receiver_id] >= self._each_receiver
            or self._owners[owner_id] >= self._each_owner
        ):
            return False
        self._count(receiver_id, owner_id, 1)
        return True

    def leave(self, receiver_id: int, owner_id: int) -> None:
        """Count one less."""
        self._count(receiver_id, owner_id, -1)

    def full_receivers(self) -> list[int]:
        """Those that are at their limit now."""
        return [key for key, taken in self._receivers.items() if taken >= self._each_receiver]

    def full_owners(self) -> list[int]:
        """Those that are at their limit now."""
        return [key for key, taken in self._owners.items() if taken >= self._each_owner]

    def _count(self, receiver_id: int, owner_id: int, by: int) -> None:
        self._left -= by
        self._receivers[receiver_id] += by
        self._owners[owner_id] += by


def lease(limits: SendLimits, queue: Queue = WEBHOOKS) -> list[Leased]:
    """Due deliveries within the limits, the longest due first: ours for 60 s, then any sender's again."""
    leased: list[Leased] = []
    while limits.left and (found := _lease_some(limits, queue)):
        leased += found
    return leased


def settle(leased: Leased, outcome: Outcome) -> bool:
    """Write down how an attempt ended; False when the lease ran out before, and the row is somebody else's now."""
    now = db_now()
    queue, rows = leased.queue, leased.queue.rows._default_manager
    # The end of the lease tells leases apart: a sender that took the row over wrote a later one.
    mine = rows.filter(pk=leased.delivery.pk, status=Status.SENDING, next_attempt_at=leased.until)
    changes = _changes(leased.delivery.attempts, outcome, now, queue.retry_after_s)
    is_exhausted = changes["status"] == Status.FAILED
    with transaction.atomic():
        # The receiver first, as whoever deletes it with its deliveries: nobody waits in a circle.
        queue.note(leased.delivery, now, is_success=outcome.is_success, is_exhausted=is_exhausted)
        if mine.update(last_status=outcome.status, last_error=outcome.error[:MAX_ERROR_CHARS], **changes):
            return True
        # The lease is lost: what `note` wrote of the receiver is taken back with it.
        transaction.set_rollback(True)
    return False


def send_again(delivery: Delivery) -> bool:
    """Start a delivery over, under the same id; False while it is being sent."""
    idle = Delivery.objects.filter(pk=delivery.pk).exclude(status=Status.SENDING)
    if not idle.update(status=Status.PENDING, attempts=0, next_attempt_at=db_now(), delivered_at=None):
        return False
    transaction.on_commit(wake)
    return True


def _lease_some(limits: SendLimits, queue: Queue) -> list[Leased]:
    """A look at the head of the queue. The next look leaves out receivers and owners that are at their limit."""
    now = db_now()
    if not _candidates(now, limits, queue).exists():  # before a transaction, which is a writer's on SQLite
        return []
    with transaction.atomic():
        rows = _candidates(now, limits, queue).select_for_update(skip_locked=True, of=("self",))[:LOOK_AT]
        taken = [row for row in rows if limits.enter(_id(row, queue.receiver), _id(row, queue.owner))]
        until = db_now() + LEASE
        ids = [row.pk for row in taken]
        # Counted here, not when it ends: an attempt whose process dies is
        # used up, so it is not repeated for ever.
        sending = {"status": Status.SENDING, "next_attempt_at": until, "attempts": F("attempts") + 1}
        queue.rows._default_manager.filter(pk__in=ids).update(**sending)
    for row in taken:
        row.attempts += 1
    return [Leased(row, until, queue.request(row, now), queue) for row in taken]


def _candidates(now: datetime, limits: SendLimits, queue: Queue) -> QuerySet[Any]:
    due = queue.candidates(now)
    due = due.exclude(**{f"{queue.receiver}__in": limits.full_receivers()})
    due = due.exclude(**{f"{queue.owner}__in": limits.full_owners()})
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
