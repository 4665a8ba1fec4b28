"""Envelopes whose event is known: the hub repeats the stored answer, waits for the answer, or refuses the
envelope.

An event has a row for each of its names: sender and timestamp; and where acting twice does harm, the signature of
its payload. By a unique constraint each name belongs to one event.
"""

import hashlib
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from functools import cached_property
from http import HTTPStatus
from typing import Any

import msgspec

from agnt.models import SeenEnvelope, Venue
from agnt.service.bookings import find_change
from agnt.service.intake.rows import find_named, insert
from agnt.service.keys import FoundKey
from agnt.wire.envelope import Envelope, read_moment
from clawbridge.agnt.fields import ACTING_INTENTS, CONFIRM, SIGNATURE_KEYS, EnvelopeRefused, ErrorCode, Json
from clawbridge.agnt.signing import MAX_AGE_S, canonical_json

ACTS_KEPT = timedelta(days=1)
READS_KEPT = timedelta(seconds=300)
# An envelope that has no answer so long after its time to live may be run again.
LEASE_GRACE = timedelta(seconds=5)
_encode = msgspec.json.Encoder().encode
_decode_fields = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode
RUNNING, DONE = SeenEnvelope.State.RUNNING.value, SeenEnvelope.State.DONE.value


class KnownEvent:
    """The event of an envelope. `signature`: of the payload, empty without one.

    Call it in a transaction; `is_stored` False: nothing is read or written.
    """

    def __init__(
        self, key: FoundKey, envelope: Envelope, signature: str, now: datetime, *, is_stored: bool = True
    ) -> None:
        sender, intent, timestamp = envelope.event
        self._event = {"network_id": key.network_id, "customer": key.customer, "intent": intent}
        self._names = [(sender, timestamp)] if timestamp and is_stored else []
        if signature and intent in ACTING_INTENTS and is_stored:
            self._names.append(("", signature))
        self._key, self._envelope, self._now = key, envelope, now

    def find(self, *, may_name: bool) -> SeenEnvelope | None:
        """The known state of the event; None when it is new, or when its stored state has expired.

        `may_name`: a signature with which a known event comes again names it from now on.

        Raises:
            EnvelopeRefused: `idempotency_conflict`, it came with another payload.
        """
        rows = self._load()
        if expired := [row.pk for row in rows if row.expires_at <= self._now]:
            # Not by the ids alone: the request that claimed them may have finished the event since they were read.
            SeenEnvelope.objects.filter(pk__in=expired, expires_at__lte=self._now).delete()
            rows = self._load()
        if not rows:
            return None
        seen = rows[0]
        # The second digest: of an answer that was stored before slugs were resolved, or of a venue that is gone.
        if seen.payload_digest not in (self._digest, _digest_payload(self._envelope.to, self._envelope.payload)):
            text = "another payload came with this from, intent and timestamp"
            raise EnvelopeRefused(ErrorCode.IDEMPOTENCY_CONFLICT, text)
        new = set(self._names) - {(row.sender, row.timestamp) for row in rows}
        if may_name and seen.state == DONE:
            self._add(sorted(new), DONE, seen.expires_at, seen.answer)
        return seen

    @property
    def lease_end(self) -> datetime:
        """The time until which other requests wait for an event that is claimed now; then its process counts as
        dead.
        """
        return self._now + timedelta(milliseconds=self._envelope.ttl_ms) + LEASE_GRACE

    def claim(self) -> list[int]:
        """Note that the event runs, so that others wait for it until its lease ends."""
        return self._add(self._names, RUNNING, self.lease_end)

    def store(self, answer: str, claim: Sequence[int] = ()) -> None:
        """Keep the answer for requests with the same event. `claim`: its rows, if it was claimed."""
        until = _kept_until(self._envelope, self._now)
        if claim:
            SeenEnvelope.objects.filter(pk__in=claim).update(
                state=DONE, answer=answer, http_status=HTTPStatus.OK, expires_at=until
            )
        else:
            self._add(self._names, DONE, until, answer)

    @cached_property
    def _digest(self) -> str:
        """The digest of the envelope with the id of its venue, however the envelope names the venue."""
        payload, venues = self._envelope.payload, Venue.objects.filter(network_id=self._key.network_id)
        name = payload.get("venue_id")
        if isinstance(name, str) and (venue := find_named(venues, name)):
            payload = payload | {"venue_id": str(venue.public_id)}
        return _digest_payload(self._envelope.to, payload)

    def _load(self) -> list[SeenEnvelope]:
        """The rows of the event, in the order of its names; expired ones too."""
        if not self._names:
            return []
        senders, timestamps = zip(*self._names, strict=True)
        found = SeenEnvelope.objects.filter(**self._event, sender__in=senders, timestamp__in=timestamps)
        rows = {(row.sender, row.timestamp): row for row in found}
        return [rows[name] for name in self._names if name in rows]

    def _add(self, names: Iterable[tuple[str, str]], state: str, until: datetime, answer: str = "") -> list[int]:
        """Add a row for each of these names; their ids. Another transaction may have added the event first."""
        return [
            insert(
                SeenEnvelope,
                **self._event,
                sender=sender,
                timestamp=timestamp,
                key_id=self._key.key_id,
                payload_digest=self._digest,
                state=state,
                answer=answer,
                http_status=HTTPStatus.OK.value if answer else None,
                expires_at=until,
            )
            for sender, timestamp in names
        ]


def repeat(answer: bytes, envelope: Envelope, network_id: int) -> bytes:
    """A stored answer. If another hop sent the event again, the answer names that hop and has its context.

    That of a confirm also has the `present` state of its booking, once that is another one.
    """
    fields: dict[str, Any] = _decode_fields(answer)
    changed: Json = {}
    if bytes(fields["to"]) != _encode(envelope.sender):
        changed = {"to": envelope.sender, "agent_context": envelope.agent_context}
    if envelope.intent == CONFIRM:
        payload: Json = msgspec.json.decode(fields["payload"])
        if present := find_change(network_id, payload.get("booking_id", ""), payload.get("status", "")):
            changed["payload"] = payload | {"present": present}
    return _encode(fields | changed) if changed else answer


def hold(claim: Sequence[int]) -> bool:
    """Lock the rows of a running event; whether it is still its claimant's: its lease may have ended."""
    ours = SeenEnvelope.objects.select_for_update().filter(pk__in=claim, state=RUNNING).values_list("pk")
    return len(ours) == len(claim)


def free(row_ids: Sequence[int]) -> None:
    """Forget an event that ended with an error. Call it while the rows are locked."""
    if row_ids:
        SeenEnvelope.objects.filter(pk__in=row_ids).delete()


def _digest_payload(to: str, payload: Json) -> str:
    """A digest that differs between envelopes with the same event: of the recipient, and the payload unsigned."""
    unsigned = {name: value for name, value in payload.items() if name not in SIGNATURE_KEYS}
    return hashlib.sha256(to.encode() + b"\n" + canonical_json(unsigned)).hexdigest()


def _kept_until(envelope: Envelope, now: datetime) -> datetime:
    """The time from which an envelope's answer may be dropped: a read's not before its timestamp is too old."""
    if envelope.intent in ACTING_INTENTS:
        return now + ACTS_KEPT
    sent_at = read_moment(envelope.timestamp)
    return max(now + READS_KEPT, sent_at + timedelta(seconds=MAX_AGE_S)) if sent_at else now + READS_KEPT
