"""Runs one envelope from its arrival to its answer, within its time to live."""

import asyncio
import logging
import time
from asyncio import Semaphore
from collections import Counter
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar
from weakref import WeakValueDictionary

import msgspec
from msgspec import Struct

from accounts.open_requests import OpenRequests
from agents.core.ports import Clock
from agnt.service.figures import AgntCounts
from agnt.service.intake.arrivals import Answered, Arrival, EnvelopeAnswer, PendingAsk, make_answer, make_refusal
from agnt.service.intake.intake import RETRY_SOON_S, Intake
from agnt.service.keys import FoundKey, find_key
from agnt.service.networks import AskVenue
from clawbridge.agnt.fields import NETWORK, EnvelopeRefused, ErrorCode, Json, build_envelope
from kit.async_db import DbThread, db_call
from kit.newest import NewestEntries
from kit.tasks import TaskSet

logger = logging.getLogger(__name__)

LOOK_AFTER_S = 0.05
LOOK_EVERY_S = 0.4  # the longest pause: each look is a transaction
OF_A_NETWORK = 8  # envelopes in the queue of the thread
MAX_WAITING = 1_024  # of a network
MAX_KEYS = 10_000  # whose networks are remembered
UNKNOWN = 0  # the network of keys that were not used here, or are none
END_WITHIN_S = 5.0
STILL_RUNS = "the first request with this from, intent and timestamp is still being answered"

R = TypeVar("R")


class KeyCaller(Struct, frozen=True):
    """A caller with a live AGNT key. `digest`: of the key (`accounts.authn.digest`)."""

    digest: str
    key: FoundKey
    user_agent: str = ""


class EnvelopeRunner:
    """Answers envelopes from HTTP and from this process. `callers`: disconnects the callers whose key is revoked.

    One thread writes, one envelope after another. Of one network few are in its queue: those of another network
    wait for these few at most.
    """

    def __init__(
        self,
        intake: Intake,
        ask_venue: AskVenue,
        counts: AgntCounts,
        callers: OpenRequests,
        *,
        clock: Clock = time.monotonic,
    ) -> None:
        self._intake = intake
        self._send_ask = ask_venue
        self._counts = counts
        self._callers = callers
        self._clock = clock
        self._running = TaskSet()
        self._asking: set[asyncio.Task[EnvelopeAnswer]] = set()
        self._thread = DbThread("agnt")
        self._networks: NewestEntries[str, int] = NewestEntries(MAX_KEYS)  # of the keys used here, by digest
        self._rooms: WeakValueDictionary[int, Semaphore] = WeakValueDictionary()  # by network
        self._waiting: Counter[int] = Counter()  # by network

    @property
    def waiting(self) -> int:
        """The number of envelopes that wait for the database, or use it."""
        return self._waiting.total()

    @property
    def open_asks(self) -> int:
        """The number of envelopes that wait for a venue."""
        return len(self._asking)

    async def run(self, arrival: Arrival) -> EnvelopeAnswer:
        """The answer to a request, at its deadline at the latest; what the hub writes goes on after that."""
        running = self._running.keep(self._run(arrival), name="envelope")
        try:
            await asyncio.wait({running}, timeout=self._left_s(arrival))
        except asyncio.CancelledError:  # the caller disconnects
            arrival.has_left = True
            if running in self._asking:
                running.cancel()
            raise
        return running.result() if running.done() else self._refuse(arrival, arrival.late)

    async def find_caller(self, token: str, digest: str, user_agent: str) -> KeyCaller | None:
        """The caller with this key; None: the key is not live. The look-up counts as no call."""
        key = await db_call(find_key)(token)
        return KeyCaller(digest, key, user_agent) if key else None

    async def call(
        self, caller: KeyCaller, intent: str, payload: Json, *, sender: str, timestamp: str = "", ttl_ms: int
    ) -> Json:
        """The response envelope to an envelope that this process writes itself. No `timestamp`: now.

        The envelope is counted, limited, stored and logged as one that came over HTTP.
        """
        began = time.monotonic()
        fields = build_envelope(
            sender=sender,
            to=NETWORK,
            intent=intent,
            payload=payload,
            agent_context={},
            ttl_ms=ttl_ms,
            timestamp=timestamp or datetime.now(UTC).isoformat().replace("+00:00", "Z"),
        )
        arrival = Arrival.begin(caller.digest, began, caller.user_agent)
        arrival.body = msgspec.json.encode(fields)
        arrival.text = arrival.body.decode()
        arrival.read_fields(fields)
        response: Json = msgspec.json.decode((await self.run(arrival)).body)
        return response

    async def close(self) -> None:
        """Cancel the asks of venues, and wait for the writes that have started."""
        for task in self._asking:
            task.cancel()
        await self._running.wait(END_WITHIN_S)
        await self._thread.close()

    async def _run(self, arrival: Arrival) -> EnvelopeAnswer:
        try:
            answered = await self._answer(arrival)
            answer = make_answer(arrival, answered)
            self._counts.metered_events += answered.has_charged
        except EnvelopeRefused as refused:
            answer = self._refuse(arrival, refused)
        except Exception:
            logger.exception("agnt.intake_failed")
            failed = EnvelopeRefused(ErrorCode.INTERNAL_ERROR, "internal error", retry_after_s=RETRY_SOON_S)
            answer = self._refuse(arrival, failed)
        if arrival.is_envelope:
            tier = arrival.key.tier if arrival.key else ""
            self._counts.note_envelope(arrival.heading.intent, tier, answer.code)
        return answer

    async def _answer(self, arrival: Arrival) -> Answered:
        """The answer of the hub or of a venue.

        Raises:
            EnvelopeRefused: what the request is refused with.
        """
        if self._waiting[self._networks.get(arrival.digest, UNKNOWN)] >= MAX_WAITING:
            text = "too many envelopes wait here"
            raise EnvelopeRefused(ErrorCode.INTERNAL_ERROR, text, retry_after_s=RETRY_SOON_S)
        while True:
            outcome = await self._write(arrival, partial(self._intake.decide, arrival))
            if isinstance(outcome, PendingAsk):
                result = await self._ask_venue(arrival, outcome)
                # Not behind other envelopes of the network: the time of the caller is nearly over.
                outcome = await self._thread.call(partial(self._intake.settle, arrival, outcome, result))
            if isinstance(outcome, EnvelopeRefused):
                raise outcome
            if isinstance(outcome, Answered):
                return outcome
            await self._pause(arrival)

    async def _write(self, arrival: Arrival, work: Callable[[], R]) -> R:
        """Run work in the database thread, when it is the turn of the key's network."""
        network = self._networks.get(arrival.digest, UNKNOWN)
        room = self._rooms.setdefault(network, Semaphore(OF_A_NETWORK))
        self._waiting[network] += 1
        try:
            async with room:
                return await self._thread.call(work)
        finally:
            self._waiting[network] -= 1
            if not self._waiting[network]:
                del self._waiting[network]
            if arrival.key is not None:
                self._networks[arrival.digest] = arrival.key.network_id

    async def _pause(self, arrival: Arrival) -> None:
        """Wait before the next look at a request with the same event.

        Raises:
            EnvelopeRefused: the time is up; the refusal is logged.
        """
        arrival.late = EnvelopeRefused(ErrorCode.IN_PROGRESS, STILL_RUNS, retry_after_s=1)
        left_s, waited_s = self._left_s(arrival), self._clock() - arrival.began
        pause_s = min(max(LOOK_AFTER_S, waited_s / 4), LOOK_EVERY_S)
        if arrival.has_left or left_s <= pause_s:
            await asyncio.sleep(0 if arrival.has_left else left_s)
            await self._write(arrival, partial(self._intake.refuse, arrival, arrival.late))
            raise arrival.late
        await asyncio.sleep(pause_s)

    async def _ask_venue(self, arrival: Arrival, asked: PendingAsk) -> Json | EnvelopeRefused:
        """The venue's answer, or the error that says why there is none."""
        left = EnvelopeRefused(ErrorCode.TTL_EXCEEDED, "the caller waited no longer")
        if arrival.has_left:
            return left
        if asked.venue.agent_id is not None:
            arrival.asked = asked
        task = self._callers.enter(asked.network.credential_id)
        self._asking.add(task)
        try:
            async with asyncio.timeout(self._left_s(arrival)):
                return await self._send_ask(asked, arrival.deadline)
        except EnvelopeRefused as refused:
            return refused
        except TimeoutError:
            failure = EnvelopeRefused(ErrorCode.TTL_EXCEEDED, "the venue did not answer within ttl_ms")
        except asyncio.CancelledError:
            is_revoked = self._callers.was_dismissed(task)
            failure = EnvelopeRefused(ErrorCode.UNAUTHORIZED, "this key was revoked") if is_revoked else left
            if not is_revoked:
                task.uncancel()
        except Exception:
            logger.exception("agnt.ask_failed", extra={"venue": str(asked.venue.public_id)})
            failure = EnvelopeRefused(ErrorCode.INTERNAL_ERROR, "internal error")
        finally:
            self._asking.discard(task)
            self._callers.leave(asked.network.credential_id, task)
        failure.may_be_booked = True
        return failure

    def _refuse(self, arrival: Arrival, refused: EnvelopeRefused) -> EnvelopeAnswer:
        return make_refusal(arrival, refused, elapsed_s=self._clock() - arrival.began)

    def _left_s(self, arrival: Arrival) -> float:
        return max(0.0, arrival.deadline - self._clock())
