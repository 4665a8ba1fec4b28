"""An outbox: rows that are written in the transaction that causes them, and sent by any process under a lease.

Due rows are leased, sent many at once outside any transaction, tried again after a failure, and ended once.
Several programs may send at once; the end of a lease tells which of them a row belongs to.
"""

import logging
import random
import threading
import time
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from operator import attrgetter
from queue import Empty, SimpleQueue
from typing import Any, ClassVar

from django.db import OperationalError, connection, transaction
from django.db.models import F, Model, QuerySet

from kit.clock import db_now
from kit.durations import seconds

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=seconds(60.0, at_least_s=15.0))
JITTER = 0.2
CANDIDATES_PER_QUERY = 200
RUN_FOR_S = seconds(10.0)
STOP_WITHIN_S = 2.0
SETTLE_TRIES = 5
SETTLE_AGAIN_S = 0.5
LOOK_EVERY_S = 0.5


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How one attempt ended: the answer's status and the beginning of its body, or the sentence why none came."""

    is_success: bool
    status: int | None = None
    response: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """What becomes of a row after an attempt. `retry_at`: when the next attempt is due, if there is one."""

    row: Any
    outcome: Outcome
    at: datetime
    retry_at: datetime | None

    @property
    def is_given_up(self) -> bool:
        """Whether the attempt failed and was the last one."""
        return not self.outcome.is_success and self.retry_at is None


class Outbox(ABC):
    """One table whose rows are sent, each to one receiver.

    The columns of a row that the outbox uses: `next_attempt_at`, when the row is due, and while it is sent the end
    of the sender's lease; `attempts`, how many were begun.

    `name`: of the sender's threads and log events. `receiver`: the column that tells receivers apart, as a path
    from a row. `at_once`: how many rows one sender has under way. `shares`: how many of these may have the same
    value in a column, by its path, so that no receiver and no owner holds up the others. `retry_after_s`: the
    waits between attempts; a row without another wait is given up. `columns_while_sent`: further columns of a
    leased row.
    """

    name: ClassVar[str]
    rows: ClassVar[type[Model]]
    receiver: ClassVar[str]
    at_once: ClassVar[int] = 32
    shares: ClassVar[Mapping[str, int]] = {}
    retry_after_s: ClassVar[Sequence[float]]
    columns_while_sent: ClassVar[Mapping[str, Any]] = {}

    @abstractmethod
    def find_sendable(self) -> QuerySet[Any]:
        """The rows that may be sent as soon as they are due, with what `prepare` needs."""

    @abstractmethod
    def prepare(self, row: Any, now: datetime) -> Any:
        """Make what `send` gets, signed now. Called in the thread that uses the database."""

    @abstractmethod
    def send(self, prepared: Any) -> Outcome:
        """Make one attempt, in a thread of its own and without the database."""

    @abstractmethod
    def store_end(self, leased: QuerySet[Any], end: AttemptEnd) -> int:
        """Update the leased row, or delete it; returns how many rows that were.

        Before that, update what is known of the receiver, whose row is locked first as when it is deleted with its
        rows. If the lease is lost, all of it is rolled back.
        """


class SendLimits:
    """What one sender of an outbox has under way, and whether that may become more."""

    def __init__(self, outbox: Outbox) -> None:
        self.left = outbox.at_once
        self._shares = outbox.shares
        self._taken: Counter[tuple[str, Any]] = Counter()

    def enter(self, row: Any) -> bool:
        """Count one more, if the limits allow it."""
        if self.left == 0 or any(self._taken[key] >= self._shares[key[0]] for key in self._keys(row)):
            return False
        self.left -= 1
        self._taken.update(self._keys(row))
        return True

    def leave(self, row: Any) -> None:
        """Count one less."""
        self.left += 1
        self._taken.subtract(self._keys(row))

    def without_full(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Leave out the rows of receivers and owners that are at their limit now."""
        for path, share in self._shares.items():
            full = [value for (of, value), taken in self._taken.items() if of == path and taken >= share]
            rows = rows.exclude(**{f"{path}__in": full})
        return rows

    def _keys(self, row: Any) -> list[tuple[str, Any]]:
        return [(path, _value(row, path)) for path in self._shares]


@dataclass(frozen=True, slots=True)
class Leased:
    """A row that this sender alone may send until `until`. `prepared`: what `Outbox.send` gets."""

    row: Any
    until: datetime
    prepared: Any


def lease(outbox: Outbox, limits: SendLimits) -> list[Leased]:
    """Lease rows that are due, the longest due first, within the limits. After 60 s any sender may lease them."""
    leased: list[Leased] = []
    while limits.left and (found := _lease_some(outbox, limits)):
        leased += found
    return leased


def settle(outbox: Outbox, leased: Leased, outcome: Outcome) -> bool:
    """Store how an attempt ended; False when the lease had expired, and another sender may have the row."""
    now, retry_at = db_now(), None
    if not outcome.is_success and leased.row.attempts <= len(outbox.retry_after_s):
        wait_s = outbox.retry_after_s[leased.row.attempts - 1]
        retry_at = now + timedelta(seconds=wait_s * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311  spreads load
    # The end of the lease tells leases apart: a sender that took the row over wrote a later one.
    mine = outbox.rows._default_manager.filter(pk=leased.row.pk, next_attempt_at=leased.until)
    with transaction.atomic():
        if outbox.store_end(mine, AttemptEnd(leased.row, outcome, now, retry_at)):
            return True
        transaction.set_rollback(True)
    return False


class Sender:
    """Sends the rows of an outbox that are due, for 10 s. One thread uses the database, the others send.

    The thread of an attempt that takes longer stores its end: the caller waits for no receiver that hangs, and the
    next run leases the other rows. When the process must stop, such a row stays leased, and a later run sends it
    again.
    """

    def __init__(self, outbox: Outbox, stopping: threading.Event | None = None) -> None:
        self._outbox = outbox
        self._stopping = stopping or threading.Event()
        self._limits = SendLimits(outbox)
        self._under_way = 0
        self._ended: SimpleQueue[tuple[Leased, Outcome]] = SimpleQueue()
        self._handing_over = threading.Lock()
        self._has_left = False

    def run(self) -> int:
        """Send, and return the number of attempts whose ends were stored. Call it once."""
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
        for leased in lease(self._outbox, self._limits):
            self._under_way += 1
            threading.Thread(target=self._send, args=(leased,), name=self._outbox.name, daemon=True).start()

    def _send(self, leased: Leased) -> None:
        try:
            outcome = self._outbox.send(leased.prepared)
        except Exception:
            event = f"{self._outbox.name}.failed"
            logger.exception(event, extra={"delivery": str(leased.row)})
            outcome = Outcome(is_success=False, error="the hub could not send it")
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
                settle(self._outbox, leased, outcome)
                return
            except OperationalError:  # a Celery child closes its pool after each job, this thread may outlast it
                event = f"{self._outbox.name}.settle_failed"
                logger.warning(event, extra={"delivery": str(leased.row)})
            # Each thread has a connection of its own, which Django does not close when the thread ends.
            finally:
                connection.close()
            time.sleep(SETTLE_AGAIN_S)

    def _settle_next(self) -> int:
        """Write down what has ended by now, in one transaction; how many that were.

        In the order of receivers, whose rows are written too: another sender may be at the same.
        """
        ended = sorted(self._ended_by_now(), key=lambda one: _value(one[0].row, self._outbox.receiver))
        try:
            with transaction.atomic():
                for leased, outcome in ended:
                    settle(self._outbox, leased, outcome)
        except OperationalError:  # a receiver of these is just being deleted: the others are not at fault
            for leased, outcome in ended:
                self._settle_alone(leased, outcome)
        for leased, _ in ended:
            self._under_way -= 1
            self._limits.leave(leased.row)
        return len(ended)

    def _ended_by_now(self) -> list[tuple[Leased, Outcome]]:
        ended: list[tuple[Leased, Outcome]] = []
        try:
            ended.append(self._ended.get(timeout=LOOK_EVERY_S))
            while True:
                ended.append(self._ended.get_nowait())
        except Empty:
            return ended


def _lease_some(outbox: Outbox, limits: SendLimits) -> list[Leased]:
    """Lease rows from the head of the queue. The next call leaves out what is at its limit then."""
    now = db_now()
    due = limits.without_full(outbox.find_sendable().filter(next_attempt_at__lte=now))
    if not due.exists():  # before a transaction, which is a writer's on SQLite
        return []
    most = CANDIDATES_PER_QUERY if outbox.shares else limits.left  # without shares no row has to wait for others
    with transaction.atomic():
        rows = due.order_by("next_attempt_at", "pk").select_for_update(skip_locked=True, of=("self",))[:most]
        taken = [row for row in rows if limits.enter(row)]
        until = db_now() + LEASE
        # Counted here, not when it ends: an attempt whose process dies is
        # used up, so it is not repeated for ever.
        sent = {"next_attempt_at": until, "attempts": F("attempts") + 1, **outbox.columns_while_sent}
        outbox.rows._default_manager.filter(pk__in=[row.pk for row in taken]).update(**sent)
    for row in taken:
        row.attempts += 1
    return [Leased(row, until, outbox.prepare(row, now)) for row in taken]


def _value(row: Any, path: str) -> Any:
    """The value of a column, by its path from a row."""
    return attrgetter(path.replace("__", "."))(row)
