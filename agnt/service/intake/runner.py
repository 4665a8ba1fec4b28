"""Runs one envelope from its arrival to its answer, within its time to live."""

import asyncio
import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from accounts.open_requests import OpenRequests
from agents.core.ports import Clock
from agnt.service.intake.answers import Answer, make_answer, make_refusal
from agnt.service.intake.arrivals import (
    Answered,
    Arrival,
    AskVenue,
    Expiry,
    InProgress,
    Outcome,
    Refused,
    Settlement,
    Work,
)
from agnt.service.intake.thread import Intake
from agnt.service.keys import FoundKey
from agnt.service.metrics import OK, AgntCounts
from agnt.service.ports import VenueAsks
from agnt.wire.errors import EnvelopeRefused, ErrorCode

logger = logging.getLogger(__name__)

LOOK_AFTER_S = 0.05
LOOK_EVERY_S = 0.4  # the longest pause: each look takes a part of a batch from all networks
TOO_LATE = "the answer took longer than ttl_ms"
STILL_RUNS = "the first request with this from, intent and timestamp is still being answered"


class EnvelopeRunner:
    """Answers envelopes, however they came. `callers`: cuts off those whose key is revoked."""

    def __init__(
        self,
        intake: Intake,
        venue_asks: VenueAsks,
        counts: AgntCounts,
        callers: OpenRequests,
        *,
        clock: Clock = time.monotonic,
    ) -> None:
        self._intake = intake
        self._venue_asks = venue_asks
        self._counts = counts
        self._callers = callers
        self._clock = clock
        self.open_asks = 0

    @property
    def waiting(self) -> int:
        """How many pieces of work wait for the intake."""
        return self._intake.waiting

    async def run(self, arrival: Arrival) -> Answer:
        """The answer to a request, at its deadline at the latest."""
        try:
            answered = await self._answer(arrival)
            answer = make_answer(arrival, answered)
            if answered.has_charged:
                self._counts.note_charge()
        except EnvelopeRefused as refused:
            answer = make_refusal(arrival, refused, elapsed_s=self._clock() - arrival.began)
        if arrival.is_envelope:
            self._counts.note_envelope(
                arrival.heading.intent, arrival.key.tier if arrival.key else "", answer.code
            )
        return answer

    async def close(self) -> None:
        """Finish what is being written."""
        await self._intake.close()

    async def _answer(self, arrival: Arrival) -> Answered:
        late = EnvelopeRefused(ErrorCode.TTL_EXCEEDED, TOO_LATE)
        while True:
            await self._decide(arrival, late)
            outcome = arrival.outcome
            if outcome is None:  # the batch had no time for it
                continue
            if isinstance(outcome, InProgress):
                late = EnvelopeRefused(ErrorCode.IN_PROGRESS, STILL_RUNS, retry_after_s=1)
                await self._pause(arrival, outcome, late)
            elif isinstance(outcome, AskVenue):
                return await self._ask(arrival, outcome)
            else:
                return _get_answered(outcome)

    async def _decide(self, arrival: Arrival, late: EnvelopeRefused) -> None:
        """Have the intake decide; at the deadline the caller is answered, and the intake goes on.

        Raises:
            EnvelopeRefused: `late`, the time is up.
        """
        arrival.outcome = None
        if not await self._wait(arrival, arrival, lambda: self._abandon(arrival, late)):
            raise late

    async def _wait(self, arrival: Arrival, work: Work, on_late: Callable[[], None]) -> bool:
        """Whether the intake has done a piece of work by the deadline of a request.

        `on_late` runs when the intake does it after the deadline, or after the caller has left (MCP clients may).
        """
        done: set[asyncio.Future[None]] = set()
        doing = self._intake.submit(work)
        try:
            done, _ = await asyncio.wait({doing}, timeout=self._left_s(arrival))
        finally:
            if not done:
                doing.add_done_callback(lambda _: on_late())
        if done:
            doing.result()
        return bool(done)

    def _abandon(self, arrival: Arrival, late: EnvelopeRefused) -> None:
        """Log what the caller was told, unless the intake did; free an event that was claimed after that."""
        outcome = arrival.outcome
        if isinstance(outcome, AskVenue):
            self._intake.submit(Settlement(arrival=arrival, asked=outcome, refusal=late))
        elif isinstance(outcome, InProgress):
            self._intake.submit(Expiry(arrival=arrival, key=outcome.key, refusal=late))
        elif outcome is None and arrival.key is not None:
            self._intake.submit(Expiry(arrival=arrival, key=arrival.key, refusal=late))
        else:
            self._count_late(arrival, outcome)

    def _count_late(self, arrival: Arrival, outcome: Outcome | None) -> None:
        """Count a booking that stands, though the intake committed it after the caller left or its time was up."""
        if isinstance(outcome, Answered) and outcome.has_charged and arrival.key is not None:
            self._counts.note_charge()
            self._counts.note_envelope(arrival.heading.intent, arrival.key.tier, OK)

    async def _pause(self, arrival: Arrival, running: InProgress, late: EnvelopeRefused) -> None:
        """Wait before the next look at a request with the same event.

        Raises:
            EnvelopeRefused: `late`, the time is up.
        """
        left_s, waited_s = self._left_s(arrival), self._clock() - arrival.began
        pause_s = min(max(LOOK_AFTER_S, waited_s / 4), LOOK_EVERY_S)
        with self._logged(arrival, running.key, late):
            await asyncio.sleep(min(left_s, pause_s))
            if left_s <= pause_s:
                raise late

    @contextmanager
    def _logged(self, arrival: Arrival, key: FoundKey, late: EnvelopeRefused) -> Iterator[None]:
        """Log a request whose time is up meanwhile, or whose caller leaves."""
        try:
            yield
        except (asyncio.CancelledError, EnvelopeRefused):
            self._intake.submit(Expiry(arrival=arrival, key=key, refusal=late))
            raise

    async def _ask(self, arrival: Arrival, asked: AskVenue) -> Answered:
        """Ask a venue and write how it ended."""
        settlement = Settlement(arrival=arrival, asked=asked)
        await self._ask_venue(settlement, asked)
        if not await self._wait(arrival, settlement, lambda: self._count_late(arrival, settlement.outcome)):
            raise settlement.refusal or EnvelopeRefused(ErrorCode.TTL_EXCEEDED, TOO_LATE)
        return _get_answered(settlement.outcome)

    async def _ask_venue(self, settlement: Settlement, asked: AskVenue) -> None:
        """Set what the venue answered, or why it did not."""
        arrival, credential_id = settlement.arrival, asked.key.credential_id
        task = self._callers.enter(credential_id)
        self.open_asks += 1
        try:
            async with asyncio.timeout(self._left_s(arrival)):
                settlement.answer = await self._venue_asks.ask(asked, arrival.deadline)
        except EnvelopeRefused as refused:
            settlement.refusal = refused
        except TimeoutError:
            settlement.refusal = EnvelopeRefused(ErrorCode.TTL_EXCEEDED, "the venue did not answer within ttl_ms")
        except asyncio.CancelledError:
            if not self._callers.was_dismissed(task):
                settlement.refusal = EnvelopeRefused(ErrorCode.TTL_EXCEEDED, "the caller waited no longer")
                self._intake.submit(settlement)
                raise
            settlement.refusal = EnvelopeRefused(ErrorCode.UNAUTHORIZED, "this key was revoked")
        except Exception:
            logger.exception("agnt.ask_failed", extra={"venue": str(asked.venue.public_id)})
            settlement.refusal = EnvelopeRefused(ErrorCode.INTERNAL_ERROR, "internal error")
        finally:
            self.open_asks -= 1
            self._callers.leave(credential_id, task)

    def _left_s(self, arrival: Arrival) -> float:
        return max(0.0, arrival.deadline - self._clock())


def _get_answered(outcome: object) -> Answered:
    """The answer, if there is one.

    Raises:
        EnvelopeRefused: what it is refused with.
    """
    if isinstance(outcome, Refused):
        raise outcome.refusal
    if not isinstance(outcome, Answered):
        raise EnvelopeRefused(ErrorCode.INTERNAL_ERROR, "internal error")
    return outcome
