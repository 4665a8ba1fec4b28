"""What networks have received: events that run or were answered, and signatures that were used.

The caller holds the lock of the networks (`lock_networks`), so that what is found here stays as it is until the
transaction ends, in every process.
"""

import hashlib
from collections.abc import Collection, Sequence
from datetime import UTC, datetime, timedelta
from typing import NamedTuple

from django.db import connection
from msgspec import Struct

from agnt.envelope import Envelope, read_moment
from agnt.models import SeenEnvelope, SeenSignature
from agnt.signing import MAX_AGE_S, canonical_json
from agnt.wire import SIGNATURE_KEYS
from kit import sql

CONFIRMATIONS_KEPT = timedelta(days=1)
READS_KEPT = timedelta(seconds=300)
SIGNATURES_KEPT = timedelta(seconds=360)
LEASE_GRACE = timedelta(seconds=5)  # after its time to live, an envelope that is not answered is run again
_LOCKS = 2_011_642  # the class of the advisory locks of networks; any number that no other lock has


class Event(NamedTuple):
    """What names an envelope within the hub: equal ones are answered once."""

    network_id: int
    sender: str
    intent: str
    timestamp: str


class Seen(Struct):
    """A stored event. `answer`: the text of the response, empty while it runs. `row_id` 0: not written yet."""

    row_id: int
    digest: str
    is_done: bool
    answer: str
    http_status: int
    expires_at: datetime


class UsedSignature(NamedTuple):
    """A signature of a network."""

    network_id: int
    signature: str


class NewSeen(NamedTuple):
    """A row to be written."""

    event: Event
    seen: Seen
    key_id: int


def lock_networks(network_ids: Collection[int]) -> None:
    """Have the batches of these networks run one after another in all processes, until the transaction ends.

    SQLite has one write lock. PostgreSQL: advisory locks, which no other writer of these rows waits for.
    """
    if connection.vendor == "postgresql":
        locks = [sql.Query("SELECT pg_advisory_xact_lock(%s, %s)", [_LOCKS, one]) for one in sorted(network_ids)]
        sql.rows_of_each(locks)


def digest_payload(envelope: Envelope) -> str:
    """What tells envelopes with the same event apart: the recipient, and the payload without its signature."""
    payload = {name: value for name, value in envelope.payload.items() if name not in SIGNATURE_KEYS}
    return hashlib.sha256(envelope.to.encode() + b"\n" + canonical_json(payload)).hexdigest()


def digest_event(event: Event) -> str:
    """An event as it is stored with a signature."""
    return hashlib.sha256("\n".join((event.sender, event.intent, event.timestamp)).encode()).hexdigest()


def find_seen(events: Collection[Event]) -> dict[Event, Seen]:
    """The stored events among these, expired ones too."""
    if not events:
        return {}
    marks = ", ".join(["(%s, %s, %s, %s)"] * len(events))
    statement = _FIND_SEEN.format(table=SeenEnvelope._meta.db_table, rows=marks)
    found = sql.rows(statement, [value for event in events for value in event])
    done = SeenEnvelope.State.DONE.value
    return {
        Event(*row[:4]): Seen(row[4], row[5], row[6] == done, row[7], row[8] or 0, _read_time(row[9]))
        for row in found
    }


def find_signatures(used: Collection[UsedSignature], now: datetime) -> dict[UsedSignature, str]:
    """The event of each signature that is remembered."""
    if not used:
        return {}
    marks = ", ".join(["(%s, %s)"] * len(used))
    statement = _FIND_SIGNATURES.format(table=SeenSignature._meta.db_table, rows=marks)
    found = sql.rows(statement, [*(value for one in used for value in one), sql.moment(now)])
    return {UsedSignature(network_id, signature): digest for network_id, signature, digest in found}


def write_seen(rows: Sequence[NewSeen]) -> dict[Event, int]:
    """Add events; their ids."""
    if not rows:
        return {}
    states = {True: SeenEnvelope.State.DONE.value, False: SeenEnvelope.State.RUNNING.value}
    values = [
        value
        for event, seen, key_id in rows
        for value in (
            *event,
            seen.digest,
            key_id,
            states[seen.is_done],
            seen.answer,
            seen.http_status or None,
            sql.moment(seen.expires_at),
        )
    ]
    marks = ", ".join([f"({', '.join(['%s'] * 10)})"] * len(rows))
    written = sql.rows(_WRITE_SEEN.format(table=SeenEnvelope._meta.db_table, rows=marks), values)
    return {Event(*row[1:]): row[0] for row in written}


def finish_seen(rows: Collection[Seen]) -> None:
    """Store the answers of events that ran."""
    for seen in rows:
        SeenEnvelope.objects.filter(pk=seen.row_id).update(
            state=SeenEnvelope.State.DONE,
            answer=seen.answer,
            http_status=seen.http_status,
            expires_at=seen.expires_at,
        )


def forget_seen(row_ids: Collection[int]) -> None:
    """Free events: those that ended with an error, and expired ones."""
    if row_ids:
        SeenEnvelope.objects.filter(pk__in=row_ids).delete()


def write_signatures(used: dict[UsedSignature, str], now: datetime) -> None:
    """Remember signatures with their events; an expired row is replaced."""
    if not used:
        return
    until = sql.moment(now + SIGNATURES_KEPT)
    marks = ", ".join(["(%s, %s, %s, %s)"] * len(used))
    values = [value for one, digest in used.items() for value in (*one, digest, until)]
    sql.rows(_WRITE_SIGNATURES.format(table=SeenSignature._meta.db_table, rows=marks), values)


def kept_until(envelope: Envelope, now: datetime) -> datetime:
    """When the answer of an envelope may be dropped: a read's not before its timestamp is too old."""
    if envelope.intent == "booking.confirm":
        return now + CONFIRMATIONS_KEPT
    sent_at = read_moment(envelope.timestamp)
    return max(now + READS_KEPT, sent_at + timedelta(seconds=MAX_AGE_S)) if sent_at else now + READS_KEPT


def leased_until(envelope: Envelope, now: datetime) -> datetime:
    """Until when an envelope that waits for a venue counts as running; then its process is dead."""
    return now + timedelta(milliseconds=envelope.ttl_ms) + LEASE_GRACE


def _read_time(value: datetime) -> datetime:
    """A time as the driver gives it: SQLite's is in UTC, and does not say so."""
    return value if value.tzinfo else value.replace(tzinfo=UTC)


_FIND_SEEN = (
    "SELECT network_id, sender, intent, timestamp, id, payload_digest, state, answer, http_status, expires_at"
    " FROM {table} WHERE (network_id, sender, intent, timestamp) IN (VALUES {rows})"
)
_WRITE_SEEN = (
    "INSERT INTO {table} (network_id, sender, intent, timestamp, payload_digest, key_id, state, answer,"
    " http_status, expires_at) VALUES {rows} RETURNING id, network_id, sender, intent, timestamp"
)
_FIND_SIGNATURES = (
    "SELECT network_id, signature, event_digest FROM {table}"
    " WHERE (network_id, signature) IN (VALUES {rows}) AND expires_at > %s"
)
_WRITE_SIGNATURES = (
    "INSERT INTO {table} (network_id, signature, event_digest, expires_at) VALUES {rows}"
    " ON CONFLICT (network_id, signature) DO UPDATE"
    " SET event_digest = excluded.event_digest, expires_at = excluded.expires_at"
)
