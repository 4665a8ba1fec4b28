"""Entries that are committed with their message, before the recorder adds them to a session (docs/adr/0153)."""

import logging
from collections.abc import Collection, Iterator
from typing import NamedTuple

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from accounts.sealing import Unreadable
from agents.models import Process
from agents.models.session import alive_since
from gateway.models import HeldEntry
from gateway.service.sessions.entries import Entry, Place, Record, open_content, seal_content
from kit import sql
from kit.clock import db_now

logger = logging.getLogger(__name__)

READ_AT_ONCE = 200
_are_held = sql.AnyRow(HeldEntry.objects.all())
_COLUMNS = ("owner_id", "key", "process_id", "about", "content")
_INSERT = (
    "INSERT INTO gateway_heldentry (owner_id, key, process_id, about, content)"
    " VALUES (%s, %s, %s, %s, %s) ON CONFLICT (key) DO NOTHING"
)


class _About(Struct, frozen=True):
    """`HeldEntry.about`."""

    place: Place
    timestamp_ms: int
    role: str
    id: str


class HeldRecord(NamedTuple):
    """A record with its `HeldEntry`, as `query` for the ledger's transaction and as `row` for that of a letter."""

    record: Record
    query: sql.Query

    @property
    def row(self) -> HeldEntry:
        """The unsaved `HeldEntry`."""
        return HeldEntry(**dict(zip(_COLUMNS, self.query.values, strict=True)))


def hold(record: Record, key: str, process_id: str) -> HeldRecord:
    """Make the `HeldEntry` of a record. `key`: no other record has this key."""
    entry, sealed = record.entry, seal_content(record.entry.content)
    about = _About(record.place, entry.timestamp_ms, entry.role, entry.id)
    values = (record.place.owner_id, key, process_id, msgspec.json.encode(about).decode(), sealed)
    return HeldRecord(replace(record, key=key, sealed=sealed), sql.Query(_INSERT, values))


def release(keys: Collection[str]) -> set[str]:
    """Delete held entries whose records are written in this transaction; the keys that existed.

    An entry without a row is in its sessions already: another process took this process for dead, and wrote it.
    """
    if not keys:
        return set()
    rows = HeldEntry.objects.filter(key__in=keys)
    there = set(rows.select_for_update().values_list("key", flat=True))
    rows.delete()
    return there


def drop(keys: Collection[str]) -> None:
    """Delete the records that can be written to no session."""
    HeldEntry.objects.filter(key__in=keys).delete()


def read_orphaned_records(process_id: str, *, is_alone: bool) -> Iterator[list[Record]]:
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


def _find_record(row: HeldEntry) -> Record | None:
    """The record of a row; None when the row is damaged, or has the form of another version."""
    try:
        about = msgspec.json.decode(row.about, type=_About)
        content = open_content(row.content)
    except (Unreadable, msgspec.DecodeError):
        logger.warning("gateway.held_entry_unreadable", extra={"entry": row.pk})
        return None
    entry = Entry(timestamp_ms=about.timestamp_ms, role=about.role, content=content, id=about.id)
    return Record(about.place, entry, row.key, row.content)
