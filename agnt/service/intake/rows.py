"""The rows of the intake, by plain SQL: its statements run with every envelope (docs/adr/0005).

The caller holds the lock of the networks (`lock_networks`), so that what is found stays as it is until the
transaction ends, in every process.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

import msgspec
from django.db import connection
from msgspec import Struct

from agnt.models import Interaction, KeyUsage, SeenEnvelope, SeenSignature
from agnt.wire.errors import Json
from kit import sql

SIGNATURES_KEPT = timedelta(seconds=360)
SOURCE = "external_agent"
MAX_INTENT_CHARS = 32
_LOCKS = 2_011_642  # the class of the advisory locks of networks; any number that no other lock has

_encode = msgspec.json.Encoder().encode


class Event(NamedTuple):
    """The name of an envelope within the hub: equal ones are answered once. `customer`: of the key."""

    network_id: int
    customer: str
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


class NewInteraction(NamedTuple):
    """A row to be written, in the order of its columns; `metadata` holds neither a key nor a signature."""

    network_id: int
    key_id: int
    at: datetime
    sender: str
    recipient: str
    intent: str
    status: str
    http_status: int
    latency_ms: int
    venue_id: int | None
    booking_id: int | None
    metadata: Json


def lock_networks(network_ids: Collection[int]) -> None:
    """Have the batches of these networks run one after another in all processes, until the transaction ends.

    SQLite has one write lock. PostgreSQL: advisory locks, which no other writer of these rows waits for.
    """
    if connection.vendor == "postgresql":
        locks = [sql.Query("SELECT pg_advisory_xact_lock(%s, %s)", [_LOCKS, one]) for one in sorted(network_ids)]
        sql.rows_of_each(locks)


def count_calls(calls: Mapping[int, int], day: date) -> dict[int, int]:
    """Count calls by key; the new totals of that day. Call it in a transaction: keys are locked in their order."""
    if not calls:
        return {}
    on = connection.ops.adapt_datefield_value(day)
    marks = ", ".join(["(%s, %s, %s)"] * len(calls))
    statement = _COUNT.format(table=KeyUsage._meta.db_table, rows=marks)
    values = [value for key_id in sorted(calls) for value in (key_id, on, calls[key_id])]
    return dict(sql.rows(statement, values))


def find_seen(events: Collection[Event]) -> dict[Event, Seen]:
    """The stored events among these, expired ones too."""
    if not events:
        return {}
    marks = ", ".join(["(%s, %s, %s, %s, %s)"] * len(events))
    statement = _FIND_SEEN.format(table=SeenEnvelope._meta.db_table, rows=marks)
    found = sql.rows(statement, [value for event in events for value in event])
    done = SeenEnvelope.State.DONE.value
    return {
        Event(*row[:5]): Seen(row[5], row[6], row[7] == done, row[8], row[9] or 0, _read_time(row[10]))
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
    marks = ", ".join([f"({', '.join(['%s'] * 11)})"] * len(rows))
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


def write_interactions(rows: Sequence[NewInteraction]) -> None:
    """Add rows to the log."""
    if not rows:
        return
    values: list[object] = []
    for row in rows:
        values += (row.network_id, row.key_id, sql.moment(row.at), SOURCE, row.sender, row.recipient)
        values += (row.intent[:MAX_INTENT_CHARS], row.status, row.http_status, row.latency_ms, row.venue_id)
        values += (row.booking_id, _encode(row.metadata).decode())
    sql.rows(
        _WRITE_INTERACTIONS.format(table=Interaction._meta.db_table, rows=", ".join([_INTERACTION] * len(rows))),
        values,
    )


def _read_time(value: datetime) -> datetime:
    """A time as the driver gives it: SQLite's is in UTC, and does not say so."""
    return value if value.tzinfo else value.replace(tzinfo=UTC)


# Joins, not IN: for IN with several columns SQLite reads the whole index. CROSS: it keeps the order of the tables.
_FIND_SEEN = (
    "SELECT network_id, customer, sender, intent, timestamp, id, payload_digest, state, answer, http_status,"
    " expires_at FROM (VALUES {rows}) AS given CROSS JOIN {table} WHERE network_id = given.column1"
    " AND customer = given.column2 AND sender = given.column3 AND intent = given.column4"
    " AND timestamp = given.column5"
)
_WRITE_SEEN = (
    "INSERT INTO {table} (network_id, customer, sender, intent, timestamp, payload_digest, key_id, state, answer,"
    " http_status, expires_at) VALUES {rows} RETURNING id, network_id, customer, sender, intent, timestamp"
)
_FIND_SIGNATURES = (
    "SELECT network_id, signature, event_digest FROM (VALUES {rows}) AS given CROSS JOIN {table}"
    " WHERE network_id = given.column1 AND signature = given.column2 AND expires_at > %s"
)
_WRITE_SIGNATURES = (
    "INSERT INTO {table} (network_id, signature, event_digest, expires_at) VALUES {rows}"
    " ON CONFLICT (network_id, signature) DO UPDATE"
    " SET event_digest = excluded.event_digest, expires_at = excluded.expires_at"
)
_COUNT = (
    "INSERT INTO {table} (key_id, day, calls) VALUES {rows} ON CONFLICT (key_id, day)"
    " DO UPDATE SET calls = {table}.calls + excluded.calls RETURNING key_id, calls"
)
_WRITE_INTERACTIONS = (
    "INSERT INTO {table} (network_id, key_id, at, source, sender, recipient, intent, status, http_status,"
    " latency_ms, venue_id, booking_id, metadata) VALUES {rows}"
)
_INTERACTION = f"({', '.join(['%s'] * 13)})"
