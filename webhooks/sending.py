"""The sender: leases what is due, sends many at once outside any transaction, and stores each outcome.

Several programs may do so at once; the end of a lease tells whose a delivery is.
"""

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from queue import Empty, SimpleQueue
from typing import Any

from django.db import OperationalError, connection, transaction
from django.db.models import F, QuerySet

from kit.async_db import release_before_waiting
from kit.clock import db_now
from kit.durations import seconds
from kit.safe_http import NotPublic, NotSent, Rules, SafeHttp, Unanswered
from webhooks import settings
from webhooks.models import Delivery, Sendable
from webhooks.outbox import wake
from webhooks.queues import EACH_SUBSCRIPTION, WEBHOOKS, Queue, Request, find_pause

LEASE = timedelta(seconds=seconds(60.0, at_least_s=15.0))
JITTER = 0.2
CANDIDATES_PER_QUERY = 200
MAX_ERROR_CHARS = 200
MAX_RESPONSE_BYTES = 1_024
AT_ONCE = 32
EACH_OWNER = 8
Status = Sendable.Status


@dataclass(frozen=True, slots=True)
class Leased:
    """A delivery that is ours to send until `until`. Without `request` it cannot be signed any more."""

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
    """How one attempt ended: the status that came with the beginning of the body, or the sentence why none did."""

    status: int | None
    error: str = ""
    response: str = ""

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
    """Due deliveries within the limits, the longest due first: ours for 60 s, then any sender's again.

    None while sending is paused.
    """
    leased: list[Leased] = []
    while limits.left and (found := _lease_some(limits, queue)):
        leased += found
    return leased


def settle(leased: Leased, outcome: Outcome) -> bool:
    """Write down how an attempt ended; False when the lease had expired, and another sender may have the row."""
    now = db_now()
    queue, rows = leased.queue, leased.queue.rows._default_manager
    # The end of the lease tells leases apart: a sender that took the row over wrote a later one.
    mine = rows.filter(pk=leased.delivery.pk, status=Status.SENDING, next_attempt_at=leased.until)
    changes = _changes(leased.delivery.attempts, outcome, now, queue.retry_after_s)
    changes |= queue.response_columns(outcome.response)
    is_exhausted = changes["status"] == Status.FAILED
    with transaction.atomic():
        # Lock the receiver first, as deleting it with its deliveries does: no deadlock.
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
    if find_pause() is not None:
        return []
    with transaction.atomic():
        rows = _candidates(now, limits, queue).select_for_update(skip_locked=True, of=("self",))[
            :CANDIDATES_PER_QUERY
        ]
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


logger = logging.getLogger(__name__)

RUN_FOR_S = seconds(10.0)
STOP_WITHIN_S = 2.0
SETTLE_TRIES = 5
SETTLE_AGAIN_S = 0.5
LOOK_EVERY_S = 0.5
ALLOWED_BY = "the operator of the hub can allow such addresses with WEBHOOK_ALLOW_PRIVATE=1"


def client() -> SafeHttp:
    """How receivers are reached, by the operator's settings."""
    return SafeHttp(Rules(ports=settings.WEBHOOK_PORTS, allows_private=settings.WEBHOOK_ALLOW_PRIVATE))


def check_url(url: str) -> None:
    """Look at a receiver's URL as sending would now. It may take seconds, in which no database connection is held.

    Raises:
        NotSent: it is not allowed; the text says which setting would allow it.
    """
    release_before_waiting()
    try:
        client().check(url)
    except NotPublic as refused:
        raise NotSent(f"{refused}; {ALLOWED_BY}") from None


def send_delivery(http: SafeHttp, leased: Leased) -> Outcome:
    """Send one delivery once."""
    request = leased.request
    if request is None:
        return Outcome(None, leased.queue.unreadable)
    try:
        answer = http.send("POST", request.url, headers=request.headers, body=request.body)
    except (NotSent, Unanswered) as failure:
        return Outcome(None, str(failure))
    return Outcome(answer.status, response=_text_of(answer.body[:MAX_RESPONSE_BYTES]))


def _text_of(body: bytes) -> str:
    """As text every database takes; what is no UTF-8 is replaced."""
    return body.decode("utf-8", "replace").replace("\0", "\ufffd")


class Sender:
    """Takes what is due for 10 s. One thread talks to the database, the others send.

    What is still under way then is ended by its own thread: no caller waits for a receiver that hangs, and the
    next run takes what is due. When the process must stop, such a delivery stays leased, and the next run sends it
    again.
    """

    def __init__(self, http: SafeHttp, stopping: threading.Event | None = None, queue: Queue = WEBHOOKS) -> None:
        self._http = http
        self._deliveries = queue
        self._stopping = stopping or threading.Event()
        self._limits = SendLimits(each_receiver=queue.each_receiver)
        self._under_way = 0
        self._ended: SimpleQueue[tuple[Leased, Outcome]] = SimpleQueue()
        self._handing_over = threading.Lock()
        self._has_left = False

    def run(self) -> int:
        """How many attempts were made and written down; once for each sender."""
        count = 0
        leave_at = time.monotonic() + RUN_FOR_S
        while True:
            if self._stopping.is_set():
                leave_at = min(leave_at, time.monotonic() + STOP_WITHIN_S)
            else:
                self._start_due()
            if not self._under_way or time.monotonic() > leave_at:
                return count + self._leave()
            count += self._settle_next()

    def _leave(self) -> int:
        """From now on each attempt stores its own result; returns how many had ended before."""
        with self._handing_over:
            self._has_left = True
        return self._settle_next() if not self._ended.empty() else 0

    def _start_due(self) -> None:
        for leased in lease(self._limits, self._deliveries):
            self._under_way += 1
            threading.Thread(target=self._send, args=(leased,), name="webhook", daemon=True).start()

    def _send(self, leased: Leased) -> None:
        try:
            outcome = send_delivery(self._http, leased)
        except Exception:
            logger.exception("webhook.failed", extra={"delivery": str(leased.delivery)})
            outcome = Outcome(None, "the hub could not send it")
        # Under the lock: between a look at `_has_left` and the `put`, `_leave` would miss this one.
        with self._handing_over:
            if not self._has_left:
                self._ended.put((leased, outcome))
                return
        self._settle_alone(leased, outcome)

    def _settle_alone(self, leased: Leased, outcome: Outcome) -> None:
        """On a connection of this thread's own; when that fails the lease runs out, and it is sent again."""
        for _ in range(SETTLE_TRIES):
            try:
                settle(leased, outcome)
                return
            except OperationalError:  # a Celery child closes its pool after each job, this thread may outlast it
                logger.warning("webhook.settle_failed", extra={"delivery": str(leased.delivery)})
            # Each thread has a connection of its own, which Django does not close when the thread ends.
            finally:
                connection.close()
            time.sleep(SETTLE_AGAIN_S)

    def _settle_next(self) -> int:
        """Write down what has ended by now, in one transaction; how many that were.

        In the order of receivers, whose rows are written too: another sender may be at the same.
        """
        ended = sorted(self._ended_by_now(), key=lambda one: one[0].receiver_id)
        try:
            with transaction.atomic():
                for leased, outcome in ended:
                    settle(leased, outcome)
        except OperationalError:  # one of these webhooks is just being deleted: the others are not at fault
            for leased, outcome in ended:
                self._settle_alone(leased, outcome)
        for leased, _ in ended:
            self._under_way -= 1
            self._limits.leave(leased.receiver_id, leased.owner_id)
        return len(ended)

    def _ended_by_now(self) -> list[tuple[Leased, Outcome]]:
        ended: list[tuple[Leased, Outcome]] = []
        try:
            ended.append(self._ended.get(timeout=LOOK_EVERY_S))
            while True:
                ended.append(self._ended.get_nowait())
        except Empty:
            return ended
