"""Decides about envelopes in the database: one thread of each process, in batches of one transaction."""

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from datetime import datetime
from functools import partial

from django.db import OperationalError, connection, transaction

from agents.core.ports import Clock
from agnt.service.intake.arrivals import Answered, Arrival, Refused, Work
from agnt.service.intake.batch import RETRY_SOON_S, Batch
from agnt.service.keys import FoundKey, find_keys
from agnt.service.venues.search import VenueSearch
from agnt.wire.errors import EnvelopeRefused, ErrorCode
from kit import sql
from kit.async_db import DbThread
from kit.batcher import Batcher
from kit.clock import approximate_now
from kit.failpoints import reach

logger = logging.getLogger(__name__)

AT_ONCE = 128
MOST_WAITING = 4_096
REST_SHARE = 0.25  # of the time of a batch, between two
TRIES = 3
LOCK_FAILURES = frozenset({"40P01", "40001", "55P03"})


class Intake:
    """Decides about the envelopes of one process, and writes what becomes of them.

    Envelopes of one network are decided one after another, in all processes: equal ones find each other.
    `clock`: for waits and deadlines. `now`: for days, ages and what is stored.
    """

    def __init__(
        self,
        *,
        clock: Clock = time.monotonic,
        now: Callable[[], datetime] = approximate_now,
    ) -> None:
        self._venue_search = VenueSearch()
        self._clock = clock
        self._now = now
        self._thread = DbThread("agnt")
        self._batcher: Batcher[Work] = Batcher(self._write, pause=self._rest)
        self._is_fair = connection.vendor == "postgresql"
        self._rest_until = 0.0

    @property
    def waiting(self) -> int:
        """How many pieces of work wait."""
        return self._batcher.waiting

    def submit(self, work: Work) -> "asyncio.Future[None]":
        """Have the outcome of a piece of work set with the next batch. The future must not be cancelled.

        The outcome of an arrival is None if its batch had no time for it: submit the arrival again.

        Raises:
            EnvelopeRefused: `internal_error`, too many requests wait; an end never is too many.
        """
        if isinstance(work, Arrival) and self._batcher.waiting >= MOST_WAITING:
            text = "too many envelopes wait here"
            raise EnvelopeRefused(ErrorCode.INTERNAL_ERROR, text, retry_after_s=RETRY_SOON_S)
        return self._batcher.put(work)

    async def close(self) -> None:
        """End the thread."""
        await self._thread.close()

    async def _rest(self) -> None:
        """Pause between batches on SQLite, whose one write lock is not fair: other writers would wait for long."""
        if not self._is_fair and (rest_s := self._rest_until - self._clock()) > 0:
            await asyncio.sleep(rest_s)

    async def _write(self, works: Sequence[Work]) -> None:
        for start in range(0, len(works), AT_ONCE):
            await self._rest()
            began = self._clock()
            await self._thread.call(partial(self._serve, works[start : start + AT_ONCE]))
            self._rest_until = self._clock() + (self._clock() - began) * REST_SHARE

    def _serve(self, works: Sequence[Work]) -> None:
        """Set the outcome of each piece of work; where one makes a batch fail, each gets a batch of its own."""
        try:
            self._run(works)
        except Exception:
            if len(works) > 1:
                for work in works:
                    self._serve([work])
                return
            logger.exception("agnt.intake_failed")
            refusal = EnvelopeRefused(ErrorCode.INTERNAL_ERROR, "internal error", retry_after_s=RETRY_SOON_S)
            works[0].outcome = Refused(refusal)

    def _run(self, works: Sequence[Work]) -> None:
        keys = _find_keys({work.digest for work in works if isinstance(work, Arrival) and work.digest})
        works = _put_few_first(works, keys)
        may_write = bool(keys) or not all(isinstance(work, Arrival) for work in works)
        try:
            # Without a live key nothing is written: no transaction, as on SQLite it takes the one write lock.
            batch = self._commit(works, keys) if may_write else self._run_read_only(works, keys)
        except sql.DATABASE_AWAY:  # the look-up succeeded: the database takes no writes
            logger.exception("agnt.intake_not_written", extra={"works": len(works)})
            batch = self._run_read_only(works, keys)
        for number, (work, outcome) in enumerate(zip(works, batch.outcomes, strict=True)):
            if isinstance(work, Arrival):
                work.key = keys.get(work.digest)
                work.rate = batch.rates.get(number, work.rate)
            work.outcome = outcome

    def _commit(self, works: Sequence[Work], keys: dict[str, FoundKey]) -> Batch:
        """Run a batch in a transaction; again when it lost a lock or its connection, and so wrote nothing."""
        for tries_left in reversed(range(TRIES)):
            batch, used, is_run = self._make(works, keys), connection.connection, False
            try:
                with transaction.atomic():
                    batch.run()
                    is_run = True
                break
            except OperationalError as failure:
                is_lost = not is_run and connection.connection is not used  # Django replaces one that has died
                if not tries_left or not (is_lost or sql.state_of(failure) in LOCK_FAILURES):
                    raise
        if reach and any(isinstance(one, Answered) and one.has_charged for one in batch.outcomes):
            reach("agnt-confirmed")
        return batch

    def _run_read_only(self, works: Sequence[Work], keys: dict[str, FoundKey]) -> Batch:
        """Run a batch that writes nothing."""
        batch = self._make(works, keys, is_read_only=True)
        batch.run()
        return batch

    def _make(self, works: Sequence[Work], keys: dict[str, FoundKey], *, is_read_only: bool = False) -> Batch:
        return Batch(works, keys, self._venue_search, self._now(), clock=self._clock, is_read_only=is_read_only)


def _find_keys(digests: Collection[str]) -> dict[str, FoundKey]:
    """The live keys; by a new connection where this thread's has died, as in a restart of PostgreSQL."""
    try:
        return find_keys(digests)
    except sql.DATABASE_AWAY:
        if connection.connection is None:  # there is no new one
            raise
        connection.close()
        return find_keys(digests)


def _put_few_first(works: Sequence[Work], keys: dict[str, FoundKey]) -> Sequence[Work]:
    """Sort work, that of networks with little work first: a batch may end before all its work is done."""

    def network_of(work: Work) -> int:
        key = keys.get(work.digest) if isinstance(work, Arrival) else work.arrival.key
        return key.network_id if key else 0

    of_each = Counter(map(network_of, works))
    return sorted(works, key=lambda work: of_each[network_of(work)]) if len(of_each) > 1 else works
