"""The database thread of a process: whatever waits together is served together (group commit).

Asks beyond MAX_WAITING are refused; a settle never is. A batch that fails is tried again, then one by one, so
that one bad row cannot fail its neighbours.
"""

import asyncio
import logging
import queue
import random
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, cast
from uuid import UUID

from django.db import DatabaseError, InterfaceError, connection

from agents.announcing import Addressed, Carrier
from agents.errors import Denied, Unavailable
from agents.ledger import lookup
from agents.ledger.batch import commit
from agents.ledger.lookup import Wanted
from agents.ledger.work import Admit, Also, Deny, Record, Release, Result, Settle, Touch, Withdraw, Work
from agents.transcript.recording import NewEvent
from agents.types import Ask, Ending, Failure, Found, OpenTurn, Outcome, SettledTurn
from kit import sql
from kit.tasks import read_failure

logger = logging.getLogger(__name__)

MAX_BATCH = 128
MAX_WAITING = 1024
TRIES = 3
SETTLE_TRIES = 30
RETRY_PAUSE_S = 1.0
LOCK_FAILURES = frozenset({"40P01", "55P03"})
OnBatch = Callable[[int], None]  # how many pieces of work were taken at once; called by the thread


@dataclass(slots=True)
class LookUp:
    """Whose token, which agent, which session. Result: Found."""

    wanted: Wanted


@dataclass(slots=True)
class Item:
    """A piece of work and whoever waits for it."""

    work: Work | LookUp
    loop: asyncio.AbstractEventLoop
    future: asyncio.Future[Any]
    tries: int = field(default=0)


class Ledger:
    """Admits and settles turns durably. All methods but `close` belong to the event loop."""

    def __init__(self, *, home: str, carry: Carrier | None = None, on_batch: OnBatch | None = None) -> None:
        self._home = home
        self._on_batch = on_batch
        self._carry = carry
        self._queue: queue.SimpleQueue[Item | None] = queue.SimpleQueue()
        self._postponed: list[Item] = []
        self._thread: threading.Thread | None = None

    @property
    def waiting(self) -> int:
        """How many pieces of work wait for the thread."""
        return self._queue.qsize()

    async def look_up(self, digest: str | None, handle: str | None, session: UUID | None = None) -> Found:
        """Find an identity, a published agent and the token's own session; each None when there is none.

        Raises:
            Unavailable: too many wait, or the database is out of reach.
        """
        found = cast(Found, await self._submit(LookUp(Wanted(digest, handle, session))))
        if found.identity and found.identity.is_stale:
            # One that is missed is made up by the next.
            self._post(Touch(found.identity.credential_id)).add_done_callback(read_failure)
        return found

    async def admit(self, ask: Ask) -> OpenTurn:
        """Decide an ask; it is durable, counted and holds its claim when this returns.

        An ask that is answered `Unavailable` although its commit happened is withdrawn when the database is back.

        Raises:
            Denied, NotPublished: refused; the audit row of a Denied is durable too.
            AlreadyAsked: an identical message is open; nothing was written.
            Unavailable: nothing was decided.

        When this is cancelled nobody will see the turn through: what is admitted all the same is withdrawn.
        """
        decided = self._submit(Admit(ask))
        try:
            return cast(OpenTurn, await asyncio.shield(decided))
        except asyncio.CancelledError:
            decided.add_done_callback(lambda _: self._withdraw(ask, decided))
            raise

    async def deny(self, ask: Ask, denied: Denied) -> None:
        """Audit a refusal decided elsewhere."""
        await self._submit(Deny(ask, denied))

    async def settle(self, turn: OpenTurn, ending: Ending, also: Also | None = None) -> SettledTurn:
        """End a turn; the first ending stands, and this returns the one that stands.

        `also`: see `Settle`.

        Raises:
            Unavailable: the database stayed out of reach; the turn's lease will end it.
        """
        return cast(SettledTurn, await self._post(Settle(turn, ending, also)))

    async def release_turn(self, chat_id: str, late: str = "") -> None:
        """Free the lingering claim of an ended turn: its agent finished after all, perhaps with a late reply."""
        await self._post(Release(chat_id=chat_id, late=late))

    async def record(self, event: NewEvent) -> None:
        """Write an event of a session; it is durable when this returns.

        Raises:
            Unavailable: too many wait, or the database is out of reach.
        """
        await self._submit(Record(event))

    async def release_session(self, session_id: int) -> None:
        """Free every lingering claim of a session: its agent's turn is over."""
        await self._post(Release(session_id=session_id))

    def close(self) -> None:
        """Serve what waits, then end the thread."""
        if self._thread is not None:
            self._queue.put(None)
            self._thread.join(timeout=10)
            self._thread = None

    def _withdraw(self, ask: Ask, decided: asyncio.Future[Any]) -> None:
        if not decided.cancelled() and decided.exception() is None:
            self._post(Withdraw(ask)).add_done_callback(read_failure)

    def _submit(self, work: Work | LookUp) -> asyncio.Future[Any]:
        if self._queue.qsize() >= MAX_WAITING:
            raise Unavailable("too many asks wait")
        return self._post(work)

    def _post(self, work: Work | LookUp) -> asyncio.Future[Any]:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="ledger", daemon=True)
            self._thread.start()
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._queue.put(Item(work, loop, future))
        return future

    # In the thread from here on.

    def _run(self) -> None:
        while (items := self._take()) is not None:
            try:
                self._serve(items)
            except Exception:  # the thread outlives whatever a batch does
                logger.exception("ledger.broken", extra={"size": len(items)})
                self._answer_or_postpone(items, [Unavailable()] * len(items))
        connection.close()

    def _take(self) -> list[Item] | None:
        if self._postponed:
            time.sleep(RETRY_PAUSE_S)
        items, self._postponed = self._postponed, []
        if not items:
            first = self._queue.get()
            if first is None:
                return None
            items = [first]
        while len(items) < MAX_BATCH and not self._queue.empty():
            item = self._queue.get()
            if item is None:
                self._queue.put(None)
                break
            items.append(item)
        return items

    def _serve(self, items: Sequence[Item]) -> None:
        if self._on_batch is not None:
            self._on_batch(len(items))
        looks = [item for item in items if isinstance(item.work, LookUp)]
        works = [item for item in items if not isinstance(item.work, LookUp)]
        if looks:
            _answer(looks, self._look_up(looks))
        if works:
            self._answer_or_postpone(works, self._commit([cast(Work, item.work) for item in works]))

    def _look_up(self, items: Sequence[Item]) -> Sequence[Found | Exception]:
        wanted = [item.work.wanted for item in items if isinstance(item.work, LookUp)]
        for attempt in range(TRIES):
            try:
                return lookup.look_up(wanted)
            except (DatabaseError, InterfaceError) as failure:
                _recover("ledger.look_up_failed", failure, attempt)
        if len(items) == 1:
            return [Unavailable()]
        return [self._look_up([item])[0] for item in items]

    def _commit(self, batch: Sequence[Work], *, is_retry: bool = False) -> Sequence[Result]:
        """Commit a batch; one by one when a piece of it may be at fault, not at all when the database is away."""
        is_away = False
        for attempt in range(TRIES):
            try:
                committed = commit(batch, home=self._home, is_retry=is_retry or attempt > 0)
            except sql.AWAY as failure:
                is_away = not _is_lock_failure(failure)
                _recover("ledger.batch_failed", failure, attempt)
            except Exception:
                logger.exception("ledger.batch_broken", extra={"size": len(batch)})
                is_away = False
                break
            else:
                self._tell(committed.messages)
                return committed.results
        if not is_away and len(batch) == 1 and (less := _with_less(batch[0])):
            return self._commit([less], is_retry=True)
        if is_away or len(batch) == 1:
            return [Unavailable()] * len(batch)
        return [self._commit([work], is_retry=True)[0] for work in batch]

    def _tell(self, messages: Sequence[Addressed]) -> None:
        if messages and self._carry is not None:
            self._carry(messages)

    def _answer_or_postpone(self, items: Sequence[Item], results: Sequence[Result]) -> None:
        answered: list[Item] = []
        answers: list[Result] = []
        for item, result in zip(items, results, strict=True):
            must_happen = isinstance(item.work, Settle | Withdraw)
            if isinstance(result, Unavailable) and must_happen and item.tries < SETTLE_TRIES:
                item.tries += 1
                self._postponed.append(item)
                continue
            if isinstance(result, Unavailable) and isinstance(item.work, Admit):
                self._postponed.append(Item(Withdraw(item.work.ask), item.loop, item.loop.create_future()))
            answered.append(item)
            answers.append(result)
        _answer(answered, answers)


def _is_lock_failure(failure: Exception) -> bool:
    """Whether a deadlock or a lock timeout failed the batch: one of its sessions, not the database."""
    return getattr(failure.__cause__, "sqlstate", None) in LOCK_FAILURES


def _with_less(work: Work) -> Settle | None:
    """The same end without what may be at fault: what its surface writes, then what the database refuses to keep.

    A turn that cannot end would be tried for long.
    """
    if not isinstance(work, Settle):
        return None
    if work.also is not None:
        return replace(work, also=None, has_also=False)
    if work.ending.outcome is not Outcome.COMPLETED:
        return None
    ending = replace(work.ending, outcome=Outcome.FAILED, reason=Failure.NOT_RECORDED, text="")
    return replace(work, ending=ending)


def _recover(event: str, failure: Exception, attempt: int) -> None:
    logger.warning(event, extra={"attempt": attempt, "failure": type(failure).__name__})
    connection.close()
    time.sleep(random.uniform(0.01, 0.05) * 2**attempt)  # noqa: S311  spreads retries, guards nothing


def _answer(items: Sequence[Item], results: Sequence[object]) -> None:
    """Wake the waiters of each loop by one call."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[asyncio.Future[Any], object]]] = {}
    for item, result in zip(items, results, strict=True):
        by_loop.setdefault(item.loop, []).append((item.future, result))
    for loop, pairs in by_loop.items():
        try:
            loop.call_soon_threadsafe(_resolve, pairs)
        except RuntimeError:
            logger.warning("ledger.loop_gone", extra={"answers": len(pairs)})


def _resolve(pairs: Sequence[tuple[asyncio.Future[Any], object]]) -> None:
    for future, result in pairs:
        if future.done():
            continue
        if isinstance(result, Exception):
            future.set_exception(result)
        else:
            future.set_result(result)
