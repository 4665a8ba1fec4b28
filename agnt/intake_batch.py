"""One transaction of the intake: decides about envelopes in the order of the protocol, and writes what follows.

Each rule is a function of its own module; this one has their order. What an envelope causes is collected, and
written at the end: those after it in the batch see it before. Nothing of a work item changes before the commit.
"""

import time
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

import msgspec

from accounts.models import Credential
from agnt import replays
from agnt.arrivals import (
    Answered,
    Arrival,
    AskVenue,
    InProgress,
    Outcome,
    Refused,
    Settlement,
    VenuesChanged,
    Work,
)
from agnt.confirming import NewBooking, describe_booking, make_booking, write_bookings
from agnt.envelope import Envelope, check_timestamp, describe_result, respond
from agnt.errors import EnvelopeRefused, ErrorCode, Json
from agnt.handlers.confirm import get_recipient, get_venue, name_venues, refuse_unknown_venue
from agnt.handlers.ping import answer_ping
from agnt.handlers.search import answer_search
from agnt.handlers.venues import answer_list
from agnt.interactions import NewInteraction, write_interactions
from agnt.keys import FoundKey
from agnt.limits import Rate, check_rate, count_calls, make_rate
from agnt.models import Venue
from agnt.payloads import Confirm, Order, Ping, Search, VenueList, read_payload
from agnt.permissions import check_permission
from agnt.ports import NetworkRef, VenueAnswer
from agnt.replays import Event, NewSeen, Seen, UsedSignature
from agnt.signature_checks import check_signature
from agnt.venue_index import VenueIndex, VenueIndexes
from agnt.venue_lookup import VenueName, find_venues, refer_to
from agnt.wire import NETWORK

RETRY_SOON_S = 2
OK, DUPLICATE = "ok", "duplicate"
Clock = Callable[[], float]

_encode = msgspec.json.Encoder().encode


class Batch:
    """Works through some pieces of work. `keys`: the live keys, by digest. `outcomes`: one for each piece.

    `is_degraded`: nothing can be written. Reads are answered then, without limits; a confirmation is refused.
    """

    def __init__(
        self,
        works: Sequence[Work],
        keys: dict[str, FoundKey],
        indexes: VenueIndexes,
        now: datetime,
        *,
        clock: Clock = time.monotonic,
        is_degraded: bool = False,
    ) -> None:
        self.outcomes: list[Outcome] = []
        self.rates: dict[int, Rate] = {}  # by the number of the work
        self._works = works
        self._keys = keys
        self._indexes = indexes
        self._now = now
        self._clock = clock
        self._is_degraded = is_degraded
        self._seen: dict[Event, Seen] = {}
        self._signatures: dict[UsedSignature, str] = {}
        self._venues: dict[VenueName, Venue] = {}
        self._new_seen: dict[Event, NewSeen] = {}
        self._new_signatures: dict[UsedSignature, str] = {}
        self._finished: list[Seen] = []
        self._freed: list[int] = []
        self._bookings: list[NewBooking] = []
        self._interactions: list[tuple[NewInteraction, NewBooking | None]] = []
        self._asked: list[tuple[int, Event | None]] = []

    def run(self) -> None:
        """Decide and write; call it in a transaction, unless nothing can be written."""
        if not self._is_degraded:
            replays.lock_networks({key.network_id for key in map(self._key_of, self._works) if key})
            self._count_calls()
        self._load()
        for number, work in enumerate(self._works):
            if isinstance(work, Settlement):
                self.outcomes.append(self._settle(work))
            else:
                self.outcomes.append(self._decide(number, work))
        if not self._is_degraded:
            self._write()

    def _key_of(self, work: Work) -> FoundKey | None:
        return work.arrival.key if isinstance(work, Settlement) else self._keys.get(work.digest)

    def _count_calls(self) -> None:
        """Count each call once, whatever becomes of it; a request that looks again was counted."""
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
        events, signatures, names = set(), set(), set()
        for work in self._works:
            key = self._key_of(work)
            envelope = (work.arrival if isinstance(work, Settlement) else work).envelope
            if key is None or envelope is None:
                continue
            if envelope.timestamp:
                events.add(_event_of(key, envelope))
            if isinstance(signature := envelope.payload.get("_sig"), str):
                signatures.add(UsedSignature(key.network_id, signature))
            if envelope.to != NETWORK or envelope.intent == "booking.confirm":
                names.update(name_venues(key.network_id, envelope))
        if not self._is_degraded:
            self._seen = replays.find_seen(events)
            self._signatures = replays.find_signatures(signatures, self._now)
        self._venues = find_venues(names)

    def _decide(self, number: int, arrival: Arrival) -> Outcome:
        """The outcome of a request, by the first rule that refuses it."""
        key = self._keys.get(arrival.digest)
        rate = self.rates.get(number, arrival.rate)
        try:
            if arrival.is_body_refused and arrival.refusal:
                raise arrival.refusal
            if key is None:
                raise EnvelopeRefused(ErrorCode.UNAUTHORIZED, "want a live AGNT key as Bearer token")
            if arrival.refusal:
                raise arrival.refusal
            envelope = arrival.envelope
            assert envelope is not None  # noqa: S101  for the type checker: without one there is a refusal
            return self._serve(number, arrival, key, envelope, rate)
        except EnvelopeRefused as refused:
            if key is not None:
                self._log(arrival, key, refused.code.value, refused.status)
            return Refused(refused)

    def _serve(
        self, number: int, arrival: Arrival, key: FoundKey, envelope: Envelope, rate: Rate | None
    ) -> Outcome:
        if arrival.is_envelope:
            check_permission(key, envelope)
        if rate is not None:
            check_rate(rate, self._now)
        signed_late = self._check_signature(arrival, key, envelope)
        event = _event_of(key, envelope) if envelope.timestamp else None
        if event is not None and (known := self._answer_known(arrival, key, envelope, event)):
            return known
        if signed_late:
            raise signed_late
        if arrival.is_envelope:
            check_timestamp(envelope, now_s=self._now.timestamp(), is_strict=key.is_strict)
        order, dropped = read_payload(envelope, is_strict=key.is_strict)
        if self._clock() >= arrival.deadline:
            raise EnvelopeRefused(ErrorCode.TTL_EXCEEDED, "the envelope waited for longer than its ttl_ms")
        if self._is_degraded and (isinstance(order, Confirm) or envelope.to != NETWORK):
            raise refuse_writing()
        if envelope.to != NETWORK or isinstance(order, Confirm):
            return self._serve_venue(number, arrival, key, envelope, order, dropped)
        index = self._indexes.find(key.network_id, key.venues_version)
        if index is None:
            return VenuesChanged(key.network_id, key.venues_version)
        result = _read(index, order, key, envelope, self._now)
        body = self._answer(arrival, result)
        self._store(key, envelope, body)
        self._log(arrival, key, OK, 200, dropped=dropped)
        return Answered(body)

    def _serve_venue(
        self, number: int, arrival: Arrival, key: FoundKey, envelope: Envelope, order: Order, dropped: list[str]
    ) -> Outcome:
        """What an envelope gets that is about one venue."""
        network = refer_to_network(key)
        if isinstance(order, Confirm):
            venue = get_venue(key.network_id, envelope, order, self._venues)
        else:
            venue = get_recipient(key.network_id, envelope, self._venues)
        asked = refer_to(venue)
        if asked.is_asked:
            self._claim(number, key, envelope)
            return AskVenue(seen_id=0, network=network, venue=asked, order=order, dropped=dropped)
        if not isinstance(order, Confirm):
            raise EnvelopeRefused(ErrorCode.VENUE_UNREACHABLE, "this venue has no agent that answers")
        return self._book(arrival, key, envelope, venue, order, VenueAnswer(), dropped=dropped)

    def _book(
        self,
        arrival: Arrival,
        key: FoundKey,
        envelope: Envelope,
        venue: Venue,
        order: Confirm,
        answer: VenueAnswer,
        *,
        dropped: Sequence[str],
        running: Seen | None = None,
    ) -> Outcome:
        network = refer_to_network(key)
        made = make_booking(network, key.customer, envelope.sender, venue, order, self._now, answer)
        self._bookings.append(made)
        body = self._answer(arrival, describe_booking(made.booking, answer.note))
        self._store(key, envelope, body, running=running)
        self._log(arrival, key, OK, 200, dropped=dropped, venue_id=venue.pk, booking=made)
        return Answered(body, has_charged=True)

    def _settle(self, settlement: Settlement) -> Outcome:
        """Write how a venue ask ended; its event is freed, unless it succeeded in time."""
        arrival, asked = settlement.arrival, settlement.asked
        key, envelope = arrival.key, arrival.envelope
        assert key is not None  # noqa: S101  for the type checker: it was admitted with one
        venue_id = asked.venue.venue_id if asked else None
        running = self._find_claim(key, envelope, asked)
        try:
            if settlement.refusal:
                raise settlement.refusal
            assert asked is not None and envelope is not None  # noqa: S101, PT018  for the type checker
            if self._is_degraded:
                raise refuse_writing()
            if self._clock() >= arrival.deadline or (asked.seen_id and running is None):
                raise EnvelopeRefused(ErrorCode.TTL_EXCEEDED, "the venue answered too late")
            if isinstance(asked.order, Confirm):
                venue = Venue.objects.filter(pk=asked.venue.venue_id).first()
                if venue is None:
                    raise refuse_unknown_venue()
                answer = settlement.answer or VenueAnswer()
                return self._book(
                    arrival, key, envelope, venue, asked.order, answer, dropped=asked.dropped, running=running
                )
            body = self._answer(arrival, settlement.result or {})
            self._store(key, envelope, body, running=running)
            self._log(arrival, key, OK, 200, dropped=asked.dropped, venue_id=venue_id)
            return Answered(body)
        except EnvelopeRefused as refused:
            if running is not None:
                self._freed.append(running.row_id)
                self._seen = {event: seen for event, seen in self._seen.items() if seen is not running}
            self._log(arrival, key, refused.code.value, refused.status, venue_id=venue_id)
            return Refused(refused)

    def _check_signature(self, arrival: Arrival, key: FoundKey, envelope: Envelope) -> EnvelopeRefused | None:
        """Check signatures and remember that of the payload; the refusal of an old one, which may be known."""
        if not arrival.is_envelope:
            return None
        signed = check_signature(
            key,
            envelope,
            header=arrival.body_signature,
            body=arrival.body,
            text=arrival.text,
            now_s=self._now.timestamp(),
        )
        if signed.signature:
            used = UsedSignature(key.network_id, signed.signature)
            digest = replays.digest_event(_event_of(key, envelope))
            known = self._signatures.get(used)
            if known is None and signed.late is None:
                self._signatures[used] = self._new_signatures[used] = digest
            elif known is not None and known != digest:
                raise EnvelopeRefused(ErrorCode.INVALID_SIGNATURE, "this signature came with another envelope")
        return signed.late

    def _answer_known(self, arrival: Arrival, key: FoundKey, envelope: Envelope, event: Event) -> Outcome | None:
        """What an event gets that came before; None when it is new, or what was stored has expired."""
        seen = self._seen.get(event)
        if seen is None:
            return None
        if seen.expires_at <= self._now:
            self._freed.append(seen.row_id)
            del self._seen[event]
            return None
        if seen.digest != replays.digest_payload(envelope):
            text = "another payload came with this from, intent and timestamp"
            raise EnvelopeRefused(ErrorCode.IDEMPOTENCY_CONFLICT, text)
        if not seen.is_done:
            return InProgress()
        self._log(arrival, key, DUPLICATE, seen.http_status)
        return Answered(seen.answer.encode(), is_replay=True)

    def _store(self, key: FoundKey, envelope: Envelope, body: bytes, running: Seen | None = None) -> None:
        """Keep an answer for requests with the same event."""
        if not envelope.timestamp or self._is_degraded:
            return
        until = replays.kept_until(envelope, self._now)
        if running is not None:
            running.is_done, running.answer, running.http_status, running.expires_at = (
                True,
                body.decode(),
                200,
                until,
            )
            self._finished.append(running)
            return
        seen = Seen(0, replays.digest_payload(envelope), True, body.decode(), 200, until)
        self._add(key, envelope, seen)

    def _claim(self, number: int, key: FoundKey, envelope: Envelope) -> None:
        """Note that an event runs, so that others wait for it."""
        if not envelope.timestamp:
            return
        until = replays.leased_until(envelope, self._now)
        self._add(key, envelope, Seen(0, replays.digest_payload(envelope), False, "", 0, until))
        self._asked.append((number, _event_of(key, envelope)))

    def _add(self, key: FoundKey, envelope: Envelope, seen: Seen) -> None:
        event = _event_of(key, envelope)
        self._seen[event] = seen
        self._new_seen[event] = NewSeen(event, seen, key.key_id)

    def _find_claim(self, key: FoundKey, envelope: Envelope | None, asked: AskVenue | None) -> Seen | None:
        """The running event of a settlement, unless its lease ended and another request took it over."""
        if envelope is None or asked is None or not asked.seen_id:
            return None
        seen = self._seen.get(_event_of(key, envelope))
        return seen if seen is not None and seen.row_id == asked.seen_id and not seen.is_done else None

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
        replays.forget_seen(self._freed)
        write_bookings(self._bookings)
        ids = replays.write_seen(list(self._new_seen.values()))
        replays.finish_seen(self._finished)
        replays.write_signatures(self._new_signatures, self._now)
        write_interactions(
            [row._replace(booking_id=made.booking.pk) if made else row for row, made in self._interactions]
        )
        if stale := {key.credential_id for key in self._keys.values() if key.is_stale}:
            Credential.touch(stale)
        for number, event in self._asked:
            asked = self.outcomes[number]
            assert isinstance(asked, AskVenue) and event is not None  # noqa: S101, PT018  for the type checker
            self.outcomes[number] = msgspec.structs.replace(asked, seen_id=ids[event])


def refer_to_network(key: FoundKey) -> NetworkRef:
    """The network of a key."""
    return NetworkRef(
        network_id=key.network_id,
        owner_id=key.owner_id,
        service_user_id=key.service_user_id,
        key_id=key.key_id,
        is_strict=key.is_strict,
    )


def refuse_writing() -> EnvelopeRefused:
    """The error for what has to be stored while the database takes no writes; nothing was done."""
    return EnvelopeRefused(ErrorCode.INTERNAL_ERROR, "the hub takes no bookings now", retry_after_s=RETRY_SOON_S)


def _event_of(key: FoundKey, envelope: Envelope) -> Event:
    return Event(key.network_id, *envelope.event)


def _read(index: VenueIndex, order: Order, key: FoundKey, envelope: Envelope, now: datetime) -> Json:
    """What a read answers."""
    match order:
        case Ping():
            return answer_ping(index, tier=key.tier, sender=envelope.sender)
        case VenueList():
            return answer_list(index, order)
        case Search():
            return answer_search(index, order, now)
    raise TypeError(order)
