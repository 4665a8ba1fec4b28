"""Outboxes: tables of rows that any process sends under a lease.

An app writes a row in the transaction that causes it. A sender leases due rows, sends many of them at once outside
any transaction, and stores how each attempt ended; a row whose attempt failed becomes due again. Several programs
may send at once: the end of the lease in a row says which of them has the row.
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
from django.db.models import F, Model, Q, QuerySet

from kit.clock import db_now
from kit.durations import seconds

logger = logging.getLogger(__name__)

LEASE = timedelta(seconds=seconds(60.0, at_least_s=15.0))
JITTER = 0.2
RUN_FOR_S = seconds(5.0)
STOP_WITHIN_S = 2.0
SETTLE_TRIES = 5
SETTLE_AGAIN_S = 0.5
LOOK_EVERY_S = 0.5
TOGETHER_S = 0.1  # ends of this time are stored together, and the next rows are leased then


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptResult:
    """The result of one attempt: status and beginning of the receiver's answer, or a sentence why there is no
    answer.
    """

    is_success: bool
    status: int | None = None
    response: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class AttemptEnd:
    """The state of a row after an attempt. `retry_at`: when the next attempt is due; None: there is none."""

    row: Any
    outcome: AttemptResult
    at: datetime
    retry_at: datetime | None

    @property
    def is_given_up(self) -> bool:
        """True if the attempt failed and was the last one."""
        return not self.outcome.is_success and self.retry_at is None


class Outbox(ABC):
    """One table whose rows are sent, each to one receiver.

    Each row has `next_attempt_at` (when the row is due; while a sender has the row, the end of the lease) and
    `attempts` (how many began).

    `name`: of the sender's threads and log events. `receiver`: the column that tells receivers apart, as a path
    from a row. `at_once`: the most rows that one sender sends at once. `shares`: by the path of a column, how many
    of these rows may have the same value, so that no receiver and no owner holds up the others; a row without a
    value does not count. `lease`: longer than an attempt usually takes. `retry_after_s`: the waits between
    attempts; when all were used, the row is given up.
    `columns_while_sent`: values that a lease writes into further columns. `interrupted`: fits due rows whose
    sender ended before it stored the end; each run of a sender begins with them, as they have waited for the end
    of the lease.
    """

    name: ClassVar[str]
    rows: ClassVar[type[Model]]
    receiver: ClassVar[str]
    at_once: ClassVar[int] = 32
    shares: ClassVar[Mapping[str, int]] = {}
    lease: ClassVar[timedelta] = LEASE
    retry_after_s: ClassVar[Sequence[float]]
    columns_while_sent: ClassVar[Mapping[str, Any]] = {}
    interrupted: ClassVar[Q | None] = None

    @abstractmethod
    def find_sendable(self) -> QuerySet[Any]:
        """The rows that may be sent when they are due, with the related rows that `prepare` needs."""

    @abstractmethod
    def prepare(self, row: Any, now: datetime) -> Any:
        """Make the argument of `send`, signed now. Runs in the thread that uses the database."""

    @abstractmethod
    def send(self, prepared: Any) -> AttemptResult:
        """Make one attempt, in a thread of its own and without the database."""

    @abstractmethod
    def store_end(self, leased: QuerySet[Any], end: AttemptEnd) -> int:
        """Update or delete the leased row; return the number of rows.

        If the result is 0, `settle` rolls everything back.

        An outbox that also updates the receiver's row does so first: a deletion, too, locks the receiver before
        its rows.
        """


class SendLimits:
    """Counts the rows that are being sent now, and says whether another row fits the limits.

    Of one sender, or of all senders that a process runs one after the other: these also count the attempts that
    take longer than the sender that began them.
    """

    def __init__(self, outbox: Outbox | type[Outbox]) -> None:
        self.left = outbox.at_once
        self._shares = outbox.shares
        self._taken: Counter[tuple[str, Any]] = Counter()
        self._counting = threading.Lock()

    def enter(self, row: Any) -> bool:
        """Count a row that the sender begins to send; False: the limits do not allow it."""
        keys = self._keys(row)
        with self._counting:
            if self.left == 0 or any(self._taken[key] >= self._shares[key[0]] for key in keys):
                return False
            self.left -= 1
            self._taken.update(keys)
            return True

    def leave(self, row: Any) -> None:
        """Stop counting a row."""
        keys = self._keys(row)
        with self._counting:
            self.left += 1
            self._taken.subtract(keys)
            for key in keys:
                if not self._taken[key]:
                    del self._taken[key]

    def without_full(self, rows: QuerySet[Any]) -> QuerySet[Any]:
        """Leave out the rows of receivers and owners that are at their limit now."""
        with self._counting:
            counts = dict(self._taken)
        for path, share in self._shares.items():
            full = [value for (of, value), taken in counts.items() if of == path and taken >= share]
            rows = rows.exclude(**{f"{path}__in": full})
        return rows

    def _keys(self, row: Any) -> list[tuple[str, Any]]:
        pairs = [(path, _value(row, path)) for path in self._shares]
        return [(path, value) for path, value in pairs if value is not None]


@dataclass(frozen=True, slots=True)
class Leased:
    """A row that this sender alone may send until `until`. `prepared`: the argument of `Outbox.send`."""

    row: Any
    until: datetime
    prepared: Any


def lease(outbox: Outbox, limits: SendLimits, which: Q | None = None) -> list[Leased]:
    """Lease due rows within the limits, those that are due longest first, until `Outbox.lease` has passed.

    `which`: only rows that fit it.
    """
    leased: list[Leased] = []
    try:
        while limits.left and (found := _lease_some(outbox, limits, which or Q())):
            leased += found
    except BaseException:
        for one in leased:
            limits.leave(one.row)
        raise
    return leased


def settle(outbox: Outbox, leased: Leased, outcome: AttemptResult) -> bool:
    """Store how an attempt ended; False if nothing was stored: another sender has the row, or it was deleted."""
    now, retry_at = db_now(), None
    if not outcome.is_success and leased.row.attempts <= len(outbox.retry_after_s):
        wait_s = outbox.retry_after_s[leased.row.attempts - 1]
        retry_at = now + timedelta(seconds=wait_s * random.uniform(1 - JITTER, 1 + JITTER))  # noqa: S311  spreads load
    # The end of the lease identifies the lease: a sender that took over the row has stored a later end.
    mine = outbox.rows._default_manager.filter(pk=leased.row.pk, next_attempt_at=leased.until)
    with transaction.atomic():
        if outbox.store_end(mine, AttemptEnd(leased.row, outcome, now, retry_at)):
            return True
        transaction.set_rollback(True)
    return False


class Sender:
    """Sends the due rows of an outbox for 5 s. The thread that calls `run` uses the database, the others send.

    If an attempt takes longer, its own thread stores its end: `run` waits for no receiver that hangs, and the next
    run leases other rows. If the process ends before that, the row stays leased, and a later run sends it again.

    `limits`: of all senders that the process runs one after the other; None: of this one alone, so that attempts
    which have an end of their own soon hold up no later run.
    """

    def __init__(
        self, outbox: Outbox, stopping: threading.Event | None = None, limits: SendLimits | None = None
    ) -> None:
        self._outbox = outbox
        self._stopping = stopping or threading.Event()
        self._limits = limits or SendLimits(outbox)
        self._under_way = 0
        self._ended: SimpleQueue[tuple[Leased, AttemptResult]] = SimpleQueue()
        self._handing_over = threading.Lock()
        self._has_left = False

    def run(self) -> int:
        """Send, and return the number of attempts whose ends were stored. Call it once."""
        count = 0
        leave_at = time.monotonic() + RUN_FOR_S
        if self._outbox.interrupted is not None and not self._stopping.is_set():
            self._start_due(self._outbox.interrupted)
        while True:
            if self._stopping.is_set():
                leave_at = min(leave_at, time.monotonic() + STOP_WITHIN_S)
            else:
                self._start_due()
            if not self._under_way or time.monotonic() > leave_at:
                return count + self._leave()
            count += self._settle_next()

    def _leave(self) -> int:
        """Let each open attempt store its own end; store those that have ended, and return their number."""
        with self._handing_over:
            self._has_left = True
        return self._settle_next() if not self._ended.empty() else 0

    def _start_due(self, which: Q | None = None) -> None:
        for leased in lease(self._outbox, self._limits, which):
            self._under_way += 1
            threading.Thread(target=self._send, args=(leased,), name=self._outbox.name, daemon=True).start()

    def _send(self, leased: Leased) -> None:
        try:
            outcome = self._outbox.send(leased.prepared)
        except Exception:
            event = f"{self._outbox.name}.failed"
            logger.exception(event, extra={"delivery": str(leased.row)})
            outcome = AttemptResult(is_success=False, error="the hub could not send it")
        # Under the lock: without it `_leave` could run between the check of `_has_left` and the `put`, and miss
        # this end.
        with self._handing_over:
            if not self._has_left:
                self._ended.put((leased, outcome))
                return
        try:
            self._settle_alone(leased, outcome)
        finally:
            self._limits.leave(leased.row)

    def _settle_alone(self, leased: Leased, outcome: AttemptResult) -> None:
        """Store an end over this thread's connection.

        If the statement fails, the lease ends and the row is sent again.
        """
        for _ in range(SETTLE_TRIES):
            try:
                settle(self._outbox, leased, outcome)
                return
            # A Celery child closes its pool after each job, and this thread may run longer.
            except OperationalError:
                event = f"{self._outbox.name}.settle_failed"
                logger.warning(event, extra={"delivery": str(leased.row)})
            # Each thread has a connection of its own, which Django does not close when the thread ends.
            finally:
                connection.close()
            time.sleep(SETTLE_AGAIN_S)

    def _settle_next(self) -> int:
        """Store the attempts that have ended by now, in one transaction; return their number.

        Rows are taken in the order of receivers, whose rows are written too: two senders then lock these rows in
        the same order.
        """
        ended = sorted(self._ended_by_now(), key=lambda one: _value(one[0].row, self._outbox.receiver))
        try:
            with transaction.atomic():
                for leased, outcome in ended:
                    settle(self._outbox, leased, outcome)
        except OperationalError:  # for example one receiver is being deleted: the other ends are stored alone
            for leased, outcome in ended:
                self._settle_alone(leased, outcome)
        finally:
            for leased, _ in ended:
                self._under_way -= 1
                self._limits.leave(leased.row)
        return len(ended)

    def _ended_by_now(self) -> list[tuple[Leased, AttemptResult]]:
        """The attempts that have ended. A receiver that answers at once does not make a transaction of each."""
        ended: list[tuple[Leased, AttemptResult]] = []
        try:
            ended.append(self._ended.get(timeout=LOOK_EVERY_S))
            self._stopping.wait(TOGETHER_S)
            while True:
                ended.append(self._ended.get_nowait())
        except Empty:
            return ended


def _lease_some(outbox: Outbox, limits: SendLimits, which: Q) -> list[Leased]:
    """Lease rows from the head of the queue. The next call leaves out receivers and owners at their limits."""
    now = db_now()
    due = limits.without_full(outbox.find_sendable().filter(which, next_attempt_at__lte=now))
    if not due.exists():  # without a transaction, which would take the write lock of SQLite
        return []
    taken: list[Any] = []
    try:
        with transaction.atomic():
            rows = due.order_by("next_attempt_at", "pk").select_for_update(skip_locked=True, of=("self",))
            for row in rows[: limits.left]:
                if limits.enter(row):
                    taken.append(row)  # noqa: PERF401  the rows that were counted are known if a later one fails
            until = db_now() + outbox.lease
            # An attempt counts when it begins, also if its process dies then: so no row is retried for ever.
            sent = {"next_attempt_at": until, "attempts": F("attempts") + 1, **outbox.columns_while_sent}
            outbox.rows._default_manager.filter(pk__in=[row.pk for row in taken]).update(**sent)
        for row in taken:
            row.attempts += 1
        return [Leased(row, until, outbox.prepare(row, now)) for row in taken]
    except BaseException:
        for row in taken:
            limits.leave(row)
        raise


def _value(row: Any, path: str) -> Any:
    """The value of a column, by its path from a row."""
    return attrgetter(path.replace("__", "."))(row)
