"""One transaction of the intake: decides about envelopes in the order of the protocol, and writes what follows.

Each rule is a function of another module; this module has their order. The batch collects what envelopes cause and
writes it at the end; later envelopes of the batch see it before that. No work item changes before the commit.
"""

import time
from collections import Counter
from collections.abc import Sequence
from datetime import UTC, datetime
from http import HTTPStatus

import msgspec

from accounts.models import Credential
from agents.core.ports import Clock
from agnt.models import Venue
from agnt.service.bookings import NewBooking, describe_booking, make_booking, record_bookings
from agnt.service.intake import rows as intake_rows
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
from agnt.service.intake.handlers import (
    VenueName,
    answer_read,
    find_venues,
    get_recipient,
    get_venue,
    name_venues,
    refuse_unknown_venue,
)
from agnt.service.intake.replays import KnownEvents, event_of
from agnt.service.intake.rows import Event, NewInteraction, Seen, count_calls, write_interactions
from agnt.service.key_checks import (
    Rate,
    check_hops,
    check_permission,
    check_rate,
    check_signature,
    make_rate,
    refuse_key,
)
from agnt.service.keys import FoundKey
from agnt.service.metrics import DUPLICATE, OK
from agnt.service.ports import VenueAnswer
from agnt.service.venues.search import VenueSearch
from agnt.wire.envelope import Envelope, check_timestamp, describe_result, respond
from agnt.wire.errors import EnvelopeRefused, ErrorCode, Json
from agnt.wire.fields import NETWORK
from agnt.wire.payloads import Confirm, Order, read_payload

RETRY_SOON_S = 2
DECIDE_WITHIN_S = 0.1  # while the locks are held

_encode = msgspec.json.Encoder().encode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


class Batch:
    """Works through some pieces of work. `keys`: the live keys, by digest. `outcomes`: one for each piece.

    `is_read_only`: nothing is written. Reads are answered then, without limits; a confirmation is refused.
    """

    def __init__(
        self,
        works: Sequence[Work],
        keys: dict[str, FoundKey],
        venue_search: VenueSearch,
        now: datetime,
        *,
        clock: Clock = time.monotonic,
        is_read_only: bool = False,
    ) -> None:
        self.outcomes: list[Outcome | None] = []  # None: the time was over, the request has to come again
        self.rates: dict[int, Rate] = {}  # by the number of the work
        self._works = works
        self._keys = keys
        self._venue_search = venue_search
        self._now = now
        self._clock = clock
        self._is_read_only = is_read_only
        self._known = KnownEvents(now, is_stored=not is_read_only)
        self._venues: dict[VenueName, Venue] = {}
        self._bookings: list[NewBooking] = []
        self._interactions: list[tuple[NewInteraction, NewBooking | None]] = []
        self._asked: list[tuple[int, Event]] = []

    def run(self) -> None:
        """Decide and write; call it in a transaction, unless nothing is to be written."""
        if not self._is_read_only:
            intake_rows.lock_networks({key.network_id for key in map(self._key_of, self._works) if key})
            self._count_calls()
        self._load()
        until = self._clock() + DECIDE_WITHIN_S
        for number, work in enumerate(self._works):
            if isinstance(work, Settlement):
                self.outcomes.append(self._settle(work))
            elif isinstance(work, Expiry):
                self._log(work.arrival, work.key, work.refusal.code.value, work.refusal.status)
                self.outcomes.append(Refused(work.refusal))
            elif number and self._clock() >= until:
                self.outcomes.append(None)
            else:
                self.outcomes.append(self._decide(number, work))
        if not self._is_read_only:
            self._write()

    def _key_of(self, work: Work) -> FoundKey | None:
        if isinstance(work, Arrival):
            return self._keys.get(work.digest)
        return work.asked.key if isinstance(work, Settlement) else work.key

    def _count_calls(self) -> None:
        """Count each call once, whatever becomes of the call; a request that looks again was counted before."""
        calls: Counter[int] = Counter()
        numbers: list[tuple[int, FoundKey, int]] = []
        for number, work in enumerate(self._works):
            if isinstance(work, Arrival) and work.rate is None and (key := self._keys.get(work.digest)):
                calls[key.key_id] += 1
                numbers.append((number, key, calls[key.key_id]))
        totals = count_calls(calls, self._now.astimezone(UTC).date())
        for number, key, nth in numbers:
            used = totals[key.key_id] - calls[key.key_id] + nth
            self.rates[number] = make_rate(key.tier, used, self._now)

    def _load(self) -> None:
        """Read the rows by which envelopes are decided, each kind in one query."""
        came: list[tuple[FoundKey, Envelope]] = []
        for work in self._works:
            key = self._key_of(work)
            envelope = (work if isinstance(work, Arrival) else work.arrival).envelope
            if key is not None and isinstance(envelope, Envelope):
                came.append((key, envelope))
        self._known.load(came)
        self._venues = find_venues(
            {name for key, envelope in came for name in name_venues(key.network_id, envelope)}
        )

    def _decide(self, number: int, arrival: Arrival) -> Outcome:
        """The outcome of a request, by the first rule that refuses it."""
        key, envelope = self._keys.get(arrival.digest), arrival.envelope
        rate = self.rates.get(number, arrival.rate)
        try:
            if isinstance(envelope, EnvelopeRefused) and (key is not None or arrival.is_body_refused):
                raise envelope
            if key is None or isinstance(envelope, EnvelopeRefused):
                raise refuse_key()
            return self._serve(number, arrival, key, envelope, rate)
        except EnvelopeRefused as refused:
            if key is not None:
                self._log(arrival, key, refused.code.value, refused.status)
            return Refused(refused)

    def _serve(
        self, number: int, arrival: Arrival, key: FoundKey, envelope: Envelope, rate: Rate | None
    ) -> Outcome:
        if arrival.is_envelope:
            check_hops(key, envelope)
            check_permission(key, envelope)
        if rate is not None:
            check_rate(rate, self._now)
        signed_late = self._check_signature(arrival, key, envelope) if arrival.is_envelope else None
        if known := self._known.find(key, envelope):
            if not known.is_done:
                return InProgress(key)
            self._log(arrival, key, DUPLICATE, known.http_status)
            return Answered(_repeat(known.answer.encode(), envelope), is_replay=True)
        if signed_late:
            raise signed_late
        if arrival.is_envelope:
            check_timestamp(envelope, now_s=self._now.timestamp(), is_strict=key.is_strict)
        order, dropped = read_payload(envelope, is_strict=key.is_strict)
        if self._clock() >= arrival.deadline:
            raise EnvelopeRefused(ErrorCode.TTL_EXCEEDED, "the envelope waited for longer than its ttl_ms")
        if self._is_read_only and (isinstance(order, Confirm) or envelope.to != NETWORK):
            raise refuse_writing()
        if envelope.to != NETWORK or isinstance(order, Confirm):
            return self._serve_venue(number, arrival, key, envelope, order, dropped)
        result = answer_read(self._venue_search, key, order, sender=envelope.sender, now=self._now)
        body = self._answer(arrival, result)
        self._known.store(key, envelope, body, None)
        self._log(arrival, key, OK, HTTPStatus.OK, dropped=dropped)
        return Answered(body)

    def _serve_venue(
        self, number: int, arrival: Arrival, key: FoundKey, envelope: Envelope, order: Order, dropped: list[str]
    ) -> Outcome:
        """Decide an envelope about one venue."""
        if isinstance(order, Confirm):
            venue = get_venue(key.network_id, envelope, order, self._venues)
        else:
            venue = get_recipient(key.network_id, envelope, self._venues)
        asked = AskVenue(seen_id=0, key=key, envelope=envelope, venue=venue, order=order, dropped=dropped)
        if venue.is_asked:
            self._known.claim(key, envelope)
            self._asked.append((number, event_of(key, envelope)))
            return asked
        if not isinstance(order, Confirm):
            raise EnvelopeRefused(ErrorCode.VENUE_UNREACHABLE, "this venue has no agent that answers")
        return self._book(arrival, asked, venue, order, VenueAnswer())

    def _book(
        self,
        arrival: Arrival,
        asked: AskVenue,
        venue: Venue,
        order: Confirm,
        answer: VenueAnswer,
        running: Seen | None = None,
    ) -> Outcome:
        key, envelope = asked.key, asked.envelope
        made = make_booking(key, envelope.sender, venue, order, self._now, answer)
        self._bookings.append(made)
        body = self._answer(arrival, describe_booking(made.booking, answer.note))
        self._known.store(key, envelope, body, running)
        self._log(arrival, key, OK, HTTPStatus.OK, dropped=asked.dropped, venue_id=venue.pk, booking=made)
        return Answered(body, has_charged=True)

    def _settle(self, settlement: Settlement) -> Outcome:
        """Write how a venue ask ended, and free its event unless the ask succeeded in time."""
        arrival, asked = settlement.arrival, settlement.asked
        key, envelope, venue_id = asked.key, asked.envelope, asked.venue.pk
        running = self._known.find_claim(key, envelope, asked.seen_id)
        try:
            if settlement.refusal:
                raise settlement.refusal
            if self._is_read_only:
                raise refuse_writing()
            if self._clock() >= arrival.deadline or (asked.seen_id and running is None):
                raise EnvelopeRefused(ErrorCode.TTL_EXCEEDED, "the venue answered too late")
            if isinstance(asked.order, Confirm):
                venue = Venue.objects.filter(pk=asked.venue.pk).first()
                if venue is None:
                    raise refuse_unknown_venue()
                answer = settlement.answer if isinstance(settlement.answer, VenueAnswer) else VenueAnswer()
                return self._book(arrival, asked, venue, asked.order, answer, running)
            body = self._answer(arrival, settlement.answer if isinstance(settlement.answer, dict) else {})
            self._known.store(key, envelope, body, running)
            self._log(arrival, key, OK, HTTPStatus.OK, dropped=asked.dropped, venue_id=venue_id)
            return Answered(body)
        except EnvelopeRefused as refused:
            if running is not None:
                self._known.free(key, envelope, running)
            self._log(arrival, key, refused.code.value, refused.status, venue_id=venue_id)
            return Refused(refused)

    def _check_signature(self, arrival: Arrival, key: FoundKey, envelope: Envelope) -> EnvelopeRefused | None:
        """Check the signatures; the refusal of an old one, whose event may be known."""
        signed = check_signature(
            key,
            envelope,
            header=arrival.body_signature,
            body=arrival.body,
            text=arrival.text,
            now_s=self._now.timestamp(),
        )
        if signed.signature:
            self._known.use_signature(key, envelope, signed.signature, is_late=signed.late is not None)
        return signed.late

    def _answer(self, arrival: Arrival, result: Json) -> bytes:
        """The body of a response that succeeded."""
        if not arrival.is_envelope:
            return _encode(result)
        elapsed_s = self._clock() - arrival.began
        return _encode(respond(arrival.heading, describe_result(result), elapsed_s=elapsed_s, now=self._now))

    def _log(
        self,
        arrival: Arrival,
        key: FoundKey,
        status: str,
        http_status: int,
        *,
        dropped: Sequence[str] = (),
        venue_id: int | None = None,
        booking: NewBooking | None = None,
    ) -> None:
        """Note an interaction."""
        if not arrival.is_envelope:
            return
        about: Json = {"context_bytes": arrival.context_bytes, "user_agent": arrival.user_agent}
        if dropped:
            about["dropped"] = list(dropped)
        heading = arrival.heading
        if isinstance(heading, Envelope) and heading.via:
            about |= {"origin": heading.origin, "via": [hop.agent for hop in heading.via]}
        row = NewInteraction(
            key.network_id,
            key.key_id,
            arrival.at,
            heading.sender,
            heading.to,
            heading.intent,
            status,
            http_status,
            max(0, round((self._clock() - arrival.began) * 1000)),
            venue_id,
            None,
            about,
        )
        self._interactions.append((row, booking))

    def _write(self) -> None:
        """Write what was decided."""
        record_bookings(self._bookings)
        ids = self._known.write()
        write_interactions(
            [row._replace(booking_id=made.booking.pk) if made else row for row, made in self._interactions]
        )
        if stale := {key.credential_id for key in self._keys.values() if key.is_stale}:
            Credential.touch(stale)
        for number, event in self._asked:
            asked = self.outcomes[number]
            if isinstance(asked, AskVenue) and event in ids:
                self.outcomes[number] = msgspec.structs.replace(asked, seen_id=ids[event])


def _repeat(answer: bytes, envelope: Envelope) -> bytes:
    """A stored answer. If another hop sent the event again, the answer names that hop and has its context."""
    fields = _decode_fields(answer)
    if bytes(fields["to"]) == _encode(envelope.sender):
        return answer
    return _encode(fields | {"to": envelope.sender, "agent_context": envelope.agent_context})


def refuse_writing() -> EnvelopeRefused:
    """The error for what has to be stored while the database takes no writes; nothing was done."""
    return EnvelopeRefused(ErrorCode.INTERNAL_ERROR, "the hub takes no bookings now", retry_after_s=RETRY_SOON_S)
