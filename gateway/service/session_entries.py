"""An entry of a session: as a line of `session.jsonl`, sealed as a row, and held until it is in its session.

Entries are committed with their message, before the recorder adds them to a session (docs/adr/0153).
"""

import logging
from collections.abc import Collection, Iterator
from hashlib import sha256
from typing import Any

import msgspec
from msgspec import Struct

from accounts import sealing
from accounts.sealing import SecretUnreadable
from agents.models import Process
from agents.models.session import alive_since
from gateway.models import HeldEntry, SessionEntry
from gateway.wire.errors import FrameRefused, GatewayErrorCode
from kit import sql
from kit.clock import db_now

PURPOSE = b"a2a-v1 sessions"
PAIR_CHARS = 20
logger = logging.getLogger(__name__)

READ_AT_ONCE = 200
_are_held = sql.AnyRow(HeldEntry.objects.all())
_INSERT = (
    "INSERT INTO gateway_heldentry (owner_id, key, process_id, about, content)"
    " VALUES (%s, %s, %s, %s, %s) ON CONFLICT (key) DO NOTHING"
)


class LogEntry(Struct, frozen=True, kw_only=True):
    """The content of one message. `content`: text or an object. `id`: empty for a message without an id."""

    timestamp_ms: int
    role: str
    content: Any
    id: str = ""

    def show(self, session_id: str) -> dict[str, Any]:
        """The entry in the form of a line of a session."""
        shown = {
            "timestamp": self.timestamp_ms,
            "role": self.role,
            "content": self.content,
            "sessionId": session_id,
        }
        return {**shown, "id": self.id} if self.id else shown

    def line(self, session_id: str) -> bytes:
        """The line of the entry in `session.jsonl`."""
        return msgspec.json.encode(self.show(session_id)) + b"\n"


class Place(Struct, frozen=True):
    """The sessions of a message of a team and its reply: those of `agents`, its sender and its recipient.

    `writer`: the name of the sender's seat, or `@login`. `session_id` empty: the session that the gateway
    keeps for this pair of writer and recipient.
    """

    owner_id: int
    agents: tuple[str, ...]
    writer: str
    recipient: str
    session_id: str

    @property
    def base_id(self) -> str:
        """The id of its session; the first one that it may have, where the gateway chose it."""
        if self.session_id:
            return self.session_id
        pair = f"{self.writer} {self.recipient}"
        return f"auto-{sha256(pair.encode()).hexdigest()[:PAIR_CHARS]}"


class PlacedEntry(Struct, frozen=True):
    """An entry and its place. `key`: that of its `HeldEntry`. `sealed`: the encrypted content."""

    place: Place
    entry: LogEntry
    key: str
    sealed: str


def make_place(owner_id: int, login: str, sender: str, recipient: str, session_id: str) -> Place:
    """The `Place` of a message of one team. `sender`: the name of its seat; empty: a client sent it."""
    agents = (recipient,) if sender in ("", recipient) else (sender, recipient)
    return Place(owner_id, agents, sender or f"@{login}", recipient, session_id)


def make_row(log_id: int, session_id: str, entry: LogEntry, sealed: str) -> SessionEntry:
    """An entry as a row that is not written yet."""
    return SessionEntry(
        log_id=log_id,
        entry_id=entry.id,
        timestamp_ms=entry.timestamp_ms,
        role=entry.role,
        content=sealed,
        bytes=len(entry.line(session_id)),
    )


def read_row(row: SessionEntry) -> LogEntry:
    """The entry of a row.

    Raises:
        FrameRefused: 4004, it cannot be read.
    """
    try:
        content = open_content(row.content)
    except SecretUnreadable:
        text = "an entry of this session cannot be read"
        raise FrameRefused(GatewayErrorCode.SESSION_CORRUPT, text, reason="unreadable") from None
    return LogEntry(timestamp_ms=row.timestamp_ms, role=row.role, content=content, id=row.entry_id)


def seal_content(content: Any) -> str:
    """The content of an entry as it is stored."""
    return sealing.seal_json(content, PURPOSE)


def open_content(sealed: str) -> Any:
    """The content of an entry from its row.

    Raises:
        Unreadable: the content is damaged.
    """
    return sealing.open_json(sealed, PURPOSE)


def show_content(sealed: str) -> Any:
    """The content of an entry for an export of all rows; None when it is damaged."""
    try:
        return open_content(sealed)
    except SecretUnreadable:
        return None


def reseal_entries() -> tuple[int, int]:
    """Seal all entries anew with the newest key; how many were, and how many could not be read."""
    done, unreadable = sealing.reseal_all(SessionEntry.objects.all(), PURPOSE, "content")
    held_done, held_unreadable = sealing.reseal_all(HeldEntry.objects.all(), PURPOSE, "content")
    return done + held_done, unreadable + held_unreadable


class _About(Struct, frozen=True):
    """`HeldEntry.about`."""

    place: Place
    timestamp_ms: int
    role: str
    id: str


def hold(record: PlacedEntry, process_id: str) -> sql.Query:
    """The statement that writes the `HeldEntry` of a record, in the transaction of its message."""
    entry = record.entry
    about = _About(record.place, entry.timestamp_ms, entry.role, entry.id)
    about_text = msgspec.json.encode(about).decode()
    return sql.Query(_INSERT, (record.place.owner_id, record.key, process_id, about_text, record.sealed))


def write_held(statement: sql.Query) -> None:
    """Run the statement of `hold` in the transaction of the queue; the ledger runs those of turns itself."""
    sql.rows(*statement)


def release(keys: Collection[str]) -> set[str]:
    """Delete held entries whose records are written in this transaction; returns the keys that existed.

    An entry without a row is in its sessions already: another process took this process for dead, and wrote it.
    """
    if not keys:
        return set()
    rows = HeldEntry.objects.filter(key__in=keys)
    there = set(rows.select_for_update().values_list("key", flat=True))
    rows.delete()
    return there


def drop(keys: Collection[str]) -> None:
    """Delete records that cannot be written to any session."""
    HeldEntry.objects.filter(key__in=keys).delete()


def read_orphaned_records(process_id: str, *, is_alone: bool) -> Iterator[list[PlacedEntry]]:
    """The records of processes that have ended, oldest first. `is_alone`: there is no other process.

    A record that cannot be read is logged and deleted.
    """
    if not _are_held():
        return
    left = HeldEntry.objects.exclude(process_id=process_id)
    if not is_alone:
        living = Process.objects.filter(beat_at__gt=alive_since(db_now()))
        left = left.exclude(process_id__in=living.values("pk"))
    after = 0
    while rows := list(left.filter(pk__gt=after).order_by("pk")[:READ_AT_ONCE]):
        after = rows[-1].pk
        records = [record for row in rows if (record := _find_record(row)) is not None]
        drop({row.key for row in rows} - {record.key for record in records})
        if records:
            yield records


def _find_record(row: HeldEntry) -> PlacedEntry | None:
    """The record of a row; None when the row is damaged, or has the form of another version."""
    try:
        about = msgspec.json.decode(row.about, type=_About)
        content = open_content(row.content)
    except (SecretUnreadable, msgspec.DecodeError):
        logger.warning("gateway.held_entry_unreadable", extra={"entry": row.pk})
        return None
    entry = LogEntry(timestamp_ms=about.timestamp_ms, role=about.role, content=content, id=about.id)
    return PlacedEntry(about.place, entry, row.key, row.content)
