"""Writes the log of envelopes: a row for each one that came with a live key."""

from collections.abc import Sequence
from datetime import datetime
from typing import NamedTuple

import msgspec

from agnt.errors import Json
from agnt.models import Interaction
from kit import sql

SOURCE = "external_agent"
MAX_INTENT_CHARS = 32
MAX_USER_AGENT_CHARS = 200
_WRITE = (
    "INSERT INTO {table} (network_id, key_id, at, source, sender, recipient, intent, status, http_status,"
    " latency_ms, venue_id, booking_id, metadata) VALUES {rows}"
)
_ROW = f"({', '.join(['%s'] * 13)})"
_encode = msgspec.json.Encoder().encode


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


def write_interactions(rows: Sequence[NewInteraction]) -> None:
    """Add rows to the log."""
    if not rows:
        return
    values: list[object] = []
    for row in rows:
        values += (row.network_id, row.key_id, sql.moment(row.at), SOURCE, row.sender, row.recipient)
        values += (row.intent[:MAX_INTENT_CHARS], row.status, row.http_status, row.latency_ms, row.venue_id)
        values += (row.booking_id, _encode(row.metadata).decode())
    sql.rows(_WRITE.format(table=Interaction._meta.db_table, rows=", ".join([_ROW] * len(rows))), values)
