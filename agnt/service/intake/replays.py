"""Events that came before: answered again, waited for, or refused; and signatures that were used before.

What an envelope adds, later envelopes of the batch see at once; the batch writes it at its end.
"""

import hashlib
from collections.abc import Collection, Mapping
from datetime import datetime, timedelta
from http import HTTPStatus

from agnt.models import Venue
from agnt.service.intake import rows as intake_rows
from agnt.service.intake.handlers import VenueName
from agnt.service.intake.rows import Event, NewSeen, Seen, UsedSignature
from agnt.service.keys import FoundKey
from agnt.wire.envelope import Envelope, read_moment
from agnt.wire.errors import EnvelopeRefused, ErrorCode, Json
from agnt.wire.fields import SIGNATURE_KEYS
from agnt.wire.signing import MAX_AGE_S, canonical_json

CONFIRMATIONS_KEPT = timedelta(days=1)
READS_KEPT = timedelta(seconds=300)
LEASE_GRACE = timedelta(seconds=5)  # after its time to live, an envelope that is not answered is run again


class KnownEvents:
    """The known events and used signatures that a batch needs. `is_stored` False: nothing is read or written."""

    def __init__(self, now: datetime, *, is_stored: bool) -> None:
        self._now = now
        self._is_stored = is_stored
        self._seen: dict[Event, Seen] = {}
        self._venues: Mapping[VenueName, Venue] = {}
        self._signatures: dict[UsedSignature, str] = {}
        self._new_seen: dict[Event, NewSeen] = {}
        self._new_signatures: dict[UsedSignature, str] = {}
        self._finished: list[Seen] = []
        self._freed: list[int] = []

    def load(self, came: Collection[tuple[FoundKey, Envelope]], venues: Mapping[VenueName, Venue]) -> None:
        """Read what is known of these envelopes. `venues`: those that the envelopes name."""
        self._venues = venues
        if not self._is_stored:
            return
        events, signatures = set(), set()
        for key, envelope in came:
            if envelope.timestamp:
                events.add(event_of(key, envelope))
            if isinstance(signature := envelope.payload.get("_sig"), str):
                signatures.add(UsedSignature(key.network_id, signature))
        self._seen = intake_rows.find_seen(events)
        self._signatures = intake_rows.find_signatures(signatures, self._now)

    def use_signature(self, key: FoundKey, envelope: Envelope, signature: str, *, is_late: bool) -> None:
        """Remember a signature with its event; a late one is not served unless its event is known.

        Raises:
            EnvelopeRefused: `invalid_signature`, it came with another event.
        """
        used, digest = UsedSignature(key.network_id, signature), _digest_event(event_of(key, envelope))
        known = self._signatures.get(used)
        if known is not None and known != digest:
            raise EnvelopeRefused(ErrorCode.INVALID_SIGNATURE, "this signature came with another envelope")
        if known is None and not is_late:
            self._signatures[used] = self._new_signatures[used] = digest

    def find(self, key: FoundKey, envelope: Envelope) -> Seen | None:
        """The known state of an event; None when it is new, or when its stored state has expired.

        Raises:
            EnvelopeRefused: `idempotency_conflict`, it came with another payload.
        """
        event = event_of(key, envelope)
        seen = self._seen.get(event) if envelope.timestamp else None
        if seen is None:
            return None
        if seen.expires_at <= self._now:
            self._freed.append(seen.row_id)
            del self._seen[event]
            return None
        # The second digest: of an answer that was stored before slugs were resolved, or of a venue that is gone.
        if seen.digest not in (self._digest(key, envelope), _digest_payload(envelope.to, envelope.payload)):
            text = "another payload came with this from, intent and timestamp"
            raise EnvelopeRefused(ErrorCode.IDEMPOTENCY_CONFLICT, text)
        return seen

    def store(self, key: FoundKey, envelope: Envelope, body: bytes, running: Seen | None) -> None:
        """Keep an answer for requests with the same event. `running`: the event as it was claimed, if it was."""
        if not envelope.timestamp or not self._is_stored:
            return
        until = _kept_until(envelope, self._now)
        if running is None:
            self._add(
                key, envelope, Seen(0, self._digest(key, envelope), True, body.decode(), HTTPStatus.OK, until)
            )
            return
        running.is_done, running.http_status, running.expires_at = True, HTTPStatus.OK, until
        running.answer = body.decode()
        self._finished.append(running)

    def claim(self, key: FoundKey, envelope: Envelope) -> None:
        """Note that an event runs, so that others wait for it; until its lease ends, as its process may die."""
        if envelope.timestamp:
            until = self._now + timedelta(milliseconds=envelope.ttl_ms) + LEASE_GRACE
            self._add(key, envelope, Seen(0, self._digest(key, envelope), False, "", 0, until))

    def find_claim(self, key: FoundKey, envelope: Envelope, seen_id: int) -> Seen | None:
        """An event that was claimed, unless its lease ended and another request took it over."""
        seen = self._seen.get(event_of(key, envelope)) if seen_id else None
        return seen if seen is not None and seen.row_id == seen_id and not seen.is_done else None

    def free(self, key: FoundKey, envelope: Envelope, running: Seen) -> None:
        """Forget a claimed event that ended with an error."""
        self._freed.append(running.row_id)
        del self._seen[event_of(key, envelope)]

    def write(self) -> dict[Event, int]:
        """Write what was added and freed; the ids of new events."""
        intake_rows.forget_seen(self._freed)
        ids = intake_rows.write_seen(list(self._new_seen.values()))
        intake_rows.finish_seen(self._finished)
        intake_rows.write_signatures(self._new_signatures, self._now)
        return ids

    def _digest(self, key: FoundKey, envelope: Envelope) -> str:
        """The digest of an envelope with the id of its venue, however the envelope names the venue."""
        name, payload = envelope.payload.get("venue_id"), envelope.payload
        if isinstance(name, str) and (venue := self._venues.get(VenueName(key.network_id, name))):
            payload = payload | {"venue_id": str(venue.public_id)}
        return _digest_payload(envelope.to, payload)

    def _add(self, key: FoundKey, envelope: Envelope, seen: Seen) -> None:
        event = event_of(key, envelope)
        self._seen[event] = seen
        self._new_seen[event] = NewSeen(event, seen, key.key_id)


def event_of(key: FoundKey, envelope: Envelope) -> Event:
    """The name of an envelope within a network: two customers may send the same `from` and `timestamp`."""
    return Event(key.network_id, key.customer, *envelope.event)


def _digest_payload(to: str, payload: Json) -> str:
    """A digest that differs between envelopes with the same event: of the recipient, and the payload unsigned."""
    unsigned = {name: value for name, value in payload.items() if name not in SIGNATURE_KEYS}
    return hashlib.sha256(to.encode() + b"\n" + canonical_json(unsigned)).hexdigest()


def _digest_event(event: Event) -> str:
    """An event as it is stored with a signature."""
    return hashlib.sha256("\n".join((event.sender, event.intent, event.timestamp)).encode()).hexdigest()


def _kept_until(envelope: Envelope, now: datetime) -> datetime:
    """When the answer of an envelope may be dropped: a read's not before its timestamp is too old."""
    if envelope.intent == "booking.confirm":
        return now + CONFIRMATIONS_KEPT
    sent_at = read_moment(envelope.timestamp)
    return max(now + READS_KEPT, sent_at + timedelta(seconds=MAX_AGE_S)) if sent_at else now + READS_KEPT
