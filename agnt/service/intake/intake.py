"""Decides about envelopes in the database: one transaction for each, in the order of the protocol.

Each rule is a function of another module; this module has their order. One thread of each process calls it.
"""

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from http import HTTPStatus
from typing import TypeGuard

import msgspec

from agents.core.ports import Clock
from agnt.models import Booking, Interaction, Venue
from agnt.service.bookings import describe_booking, describe_state, make_booking, record_booking
from agnt.service.cancellations import Reason, hold_order, owe_order, release_order
from agnt.service.figures import DUPLICATE, OK
from agnt.service.intake.arrivals import Answered, Arrival, Outcome, PendingAsk
from agnt.service.intake.events import DONE, KnownEvent, free, hold, repeat
from agnt.service.intake.rows import (
    answer_read,
    cancel_booking,
    check_recipient,
    count_call,
    find_live_key,
    find_venue,
    insert,
    make_venue_error,
    run_in_transaction,
)
from agnt.service.key_checks import (
    Rate,
    check_hops,
    check_permission,
    check_rate,
    check_signature,
    make_key_error,
)
from agnt.service.keys import FoundKey
from agnt.service.venues.search import VenueSearch
from agnt.wire.envelope import Envelope, check_timestamp, describe_result
from agnt.wire.payloads import (
    AgntBookingOrder,
    AgntConfirmOrder,
    AgntListOrder,
    AgntSearchOrder,
    Order,
    read_payload,
)
from clawbridge.agnt import describe_response
from clawbridge.agnt.fields import ACTING_INTENTS, NETWORK, EnvelopeRefused, ErrorCode, Json
from kit import sql
from kit.clock import approximate_now
from kit.failpoints import reach

logger = logging.getLogger(__name__)

RETRY_SOON_S = 2
SOURCE = "external_agent"
MAX_INTENT_CHARS = 32

_encode = msgspec.json.Encoder().encode


class Intake:
    """Decides about envelopes, and writes what becomes of them.

    A unique constraint makes equal envelopes one event, in all processes. `clock`: for deadlines. `now`: for days,
    ages and what is stored.
    """

    def __init__(self, *, clock: Clock = time.monotonic, now: Callable[[], datetime] = approximate_now) -> None:
        self._venue_search = VenueSearch()
        self._clock = clock
        self._now = now

    def decide(self, arrival: Arrival) -> Outcome:
        """Look up the key of a request, count the request, and answer it unless a venue has to be asked.

        While the database takes no writes, reads are answered without limits, and nothing else is.
        """
        envelope, found = arrival.envelope, find_live_key(arrival.digest)
        if found is None:
            if isinstance(envelope, EnvelopeRefused) and arrival.is_body_refused:
                return envelope
            return make_key_error()
        key = arrival.key = found
        is_read = _is_read(envelope)
        if _is_read(envelope):
            self._search_first(key, envelope)

        def decide() -> tuple[Rate, Outcome]:
            rate = self._count(arrival, key)
            try:
                return rate, self._answer(arrival, key, rate)
            except EnvelopeRefused as refused:
                self._log(arrival, key, refused)
                return rate, refused

        try:
            # A crash of the machine may undo the count and the log of a read.
            arrival.rate, outcome = run_in_transaction(decide, is_flushed=not is_read)
        except sql.DATABASE_UNAVAILABLE:  # the look-up of the key succeeded: the database takes no writes
            logger.exception("agnt.intake_not_written")
            try:
                return self._answer(arrival, key, None)
            except EnvelopeRefused as refused:
                return refused
        return _reached(outcome)

    def settle(self, arrival: Arrival, asked: PendingAsk, result: Json | EnvelopeRefused) -> Outcome:
        """Write how a venue ask ended, and free its event unless the ask succeeded in time."""
        try:
            return _reached(run_in_transaction(partial(self._settle, arrival, asked, result)))
        except sql.DATABASE_UNAVAILABLE:
            logger.exception("agnt.intake_not_written")
            return make_write_error()

    def refuse(self, arrival: Arrival, refused: EnvelopeRefused) -> None:
        """Write a refusal that was decided elsewhere, of a request with a live key."""
        key = arrival.key
        if key is None:
            return

        def refuse() -> Rate:
            self._log(arrival, key, refused)
            return self._count(arrival, key)

        try:
            arrival.rate = run_in_transaction(refuse)
        except sql.DATABASE_UNAVAILABLE:
            logger.exception("agnt.intake_not_written")

    def _search_first(self, key: FoundKey, envelope: Envelope) -> None:
        """Keep what a list or search finds, so that the search holds no lock of the transaction that counts it."""
        with suppress(EnvelopeRefused):
            order, _ = read_payload(envelope, is_strict=key.is_strict)
            if isinstance(order, AgntSearchOrder | AgntListOrder):
                self._venue_search.find(key.network_id, key.venues_version, order, self._now())

    def _count(self, arrival: Arrival, key: FoundKey) -> Rate:
        """Count a call once, whatever becomes of it; a request that looks again was counted before."""
        return arrival.rate or count_call(key, self._now())

    def _answer(self, arrival: Arrival, key: FoundKey, rate: Rate | None) -> Outcome:
        """The outcome of a request, by the first rule that refuses it; nothing is written before the last rule.

        `rate` None: the database takes no writes, and nothing is stored.

        Raises:
            EnvelopeRefused: the first rule that the request breaks.
        """
        envelope, now, is_stored = arrival.envelope, self._now(), rate is not None
        if isinstance(envelope, EnvelopeRefused) and arrival.is_body_refused:
            raise envelope
        if rate is not None:
            check_rate(rate, now)
        if isinstance(envelope, EnvelopeRefused):
            raise envelope
        signature, late = "", None
        if arrival.is_envelope:
            check_hops(key, envelope)
            check_permission(key, envelope)
            header, body, text = arrival.body_signature, arrival.body, arrival.text
            signature, late = check_signature(
                key, envelope, header=header, body=body, text=text, now_s=now.timestamp()
            )
        event = KnownEvent(key, envelope, signature, now, is_stored=is_stored)
        if known := event.find(may_name=not late):
            if known.state != DONE:
                return None
            self._log(arrival, key, DUPLICATE)
            return Answered(repeat(known.answer.encode(), envelope, key.network_id), is_replay=True)
        if late:
            raise late
        if arrival.is_envelope:
            check_timestamp(envelope, now_s=now.timestamp(), is_strict=key.is_strict)
        order, dropped = read_payload(envelope, is_strict=key.is_strict)
        check_recipient(envelope, order)
        if self._clock() >= arrival.deadline:
            raise EnvelopeRefused(ErrorCode.TTL_EXCEEDED, "the envelope waited for longer than its ttl_ms")
        if _is_read(envelope):
            result = answer_read(self._venue_search, key, order, sender=envelope.sender, now=now)
            return self._store(arrival, key, event, result, dropped, is_logged=is_stored)
        if not is_stored:
            raise make_write_error()
        if isinstance(order, AgntBookingOrder):
            booking = cancel_booking(key, order)
            return self._store(arrival, key, event, describe_state(booking), dropped, booking.venue_id, booking)
        return self._start_ask(arrival, key, event, envelope, order, dropped)

    def _start_ask(
        self,
        arrival: Arrival,
        key: FoundKey,
        event: KnownEvent,
        envelope: Envelope,
        order: Order,
        dropped: list[str],
    ) -> Answered | PendingAsk:
        """Claim an event whose venue has to be asked; a booking at a venue that takes every booking is written."""
        venue = find_venue(key.network_id, envelope, order)
        claim = event.claim() if venue.is_asked else []
        asked = PendingAsk(claim=claim, network=key, envelope=envelope, venue=venue, order=order, dropped=dropped)
        if not isinstance(order, AgntConfirmOrder):
            if not venue.is_asked:
                raise EnvelopeRefused(ErrorCode.VENUE_UNREACHABLE, "this venue has no agent that answers")
            return asked
        if not venue.is_asked:
            return self._finish(arrival, asked, event, {})
        held, was_asked = hold_order(key, envelope, venue, order, event.lease_end)
        return msgspec.structs.replace(asked, order_id=held.public_id, asked_at=held.asked_at, was_asked=was_asked)

    def _settle(self, arrival: Arrival, asked: PendingAsk, result: Json | EnvelopeRefused) -> Outcome:
        is_ours = hold(asked.claim)
        try:
            if isinstance(result, EnvelopeRefused):
                raise result
            if self._clock() >= arrival.deadline or not is_ours:
                raise EnvelopeRefused(ErrorCode.TTL_EXCEEDED, "the venue answered too late")
            if not Venue.objects.filter(pk=asked.venue.pk).exists():
                raise make_venue_error()
            if asked.order_id and not release_order(asked.order_id):
                raise EnvelopeRefused(ErrorCode.TTL_EXCEEDED, "the venue was told to cancel meanwhile")
        except EnvelopeRefused as refused:
            if is_ours:
                free(asked.claim)
                self._end_order(asked, refused, is_accepted=not isinstance(result, EnvelopeRefused))
            self._log(arrival, asked.network, refused, venue_id=asked.venue.pk)
            return refused
        return self._finish(arrival, asked, KnownEvent(asked.network, asked.envelope, "", self._now()), result)

    def _end_order(self, asked: PendingAsk, refused: EnvelopeRefused, *, is_accepted: bool) -> None:
        """Have the venue told to cancel an order that is no booking, if it may hold a reservation of it."""
        if asked.order_id is None:
            return
        if is_accepted or refused.may_be_booked or asked.was_asked:
            is_revoked = refused.code == ErrorCode.UNAUTHORIZED
            owe_order(asked.order_id, Reason.KEY_REVOKED if is_revoked else Reason.NO_ANSWER)
        else:
            release_order(asked.order_id)

    def _finish(self, arrival: Arrival, asked: PendingAsk, event: KnownEvent, result: Json) -> Answered:
        """Write the booking, or what the venue's agent answered, with the answer."""
        key, order, booking = asked.network, asked.order, None
        if isinstance(order, AgntConfirmOrder):
            booking = make_booking(
                key, asked.envelope.sender, asked.venue, order, self._now(), result, order_id=asked.order_id
            )
            record_booking(booking, key.owner_id, key.customer)
            result = describe_booking(booking)
        answered = self._store(arrival, key, event, result, asked.dropped, asked.venue.pk, booking, asked.claim)
        return msgspec.structs.replace(answered, has_charged=booking is not None)

    def _store(
        self,
        arrival: Arrival,
        key: FoundKey,
        event: KnownEvent,
        result: Json,
        dropped: Sequence[str],
        venue_id: int | None = None,
        booking: Booking | None = None,
        claim: Sequence[int] = (),
        *,
        is_logged: bool = True,
    ) -> Answered:
        """Write the response to a request that succeeded, for requests with the same event, and log it."""
        body = _encode(result)
        if arrival.is_envelope:
            elapsed_s, payload = self._clock() - arrival.began, describe_result(result)
            body = _encode(describe_response(arrival.heading, payload, elapsed_s=elapsed_s, now=self._now()))
        event.store(body.decode(), claim)
        if is_logged:
            self._log(arrival, key, OK, dropped=dropped, venue_id=venue_id, booking=booking)
        return Answered(body)

    def _log(
        self,
        arrival: Arrival,
        key: FoundKey,
        end: str | EnvelopeRefused,
        *,
        dropped: Sequence[str] = (),
        venue_id: int | None = None,
        booking: Booking | None = None,
    ) -> None:
        """Write an interaction. `end`: the status of a success, or the refusal."""
        if not arrival.is_envelope:
            return
        heading, status, http_status = arrival.heading, end, int(HTTPStatus.OK)
        about: Json = {"context_bytes": arrival.context_bytes, "user_agent": arrival.user_agent}
        if isinstance(end, EnvelopeRefused):
            status, http_status = end.code.value, end.status
            about |= {"reason": str(end)} | end.about
        if dropped:
            about["dropped"] = list(dropped)
        if heading.via:
            about |= {"origin": heading.origin, "via": [hop.agent for hop in heading.via]}
        insert(
            Interaction,
            source=SOURCE,
            intent=heading.intent[:MAX_INTENT_CHARS],
            metadata=_encode(about).decode(),
            network_id=key.network_id,
            key_id=key.key_id,
            at=arrival.at,
            sender=heading.sender,
            recipient=heading.to,
            status=status,
            http_status=int(http_status),
            latency_ms=max(0, round((self._clock() - arrival.began) * 1000)),
            venue_id=venue_id,
            booking_id=booking.pk if booking else None,
        )


def make_write_error() -> EnvelopeRefused:
    """The error for what has to be stored while the database takes no writes; nothing was done."""
    return EnvelopeRefused(ErrorCode.INTERNAL_ERROR, "the hub takes no bookings now", retry_after_s=RETRY_SOON_S)


def _is_read(envelope: Envelope | EnvelopeRefused) -> TypeGuard[Envelope]:
    if isinstance(envelope, EnvelopeRefused):
        return False
    return envelope.to == NETWORK and envelope.intent not in ACTING_INTENTS


def _reached(outcome: Outcome) -> Outcome:
    if reach and isinstance(outcome, Answered) and outcome.has_charged:
        reach("agnt-confirmed")
    return outcome
