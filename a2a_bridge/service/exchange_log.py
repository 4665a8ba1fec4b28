"""The record of requests and responses: written in batches by another thread, bounded, and deleted with its asks.

An ask never waits for its record: when the writer cannot keep up, exchanges are left out (docs/adr/0198).
"""

import logging
import time
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta

from django.db import DatabaseError
from django.db.models import Count, Exists, OuterRef
from msgspec import UNSET, Struct, UnsetType

from a2a_bridge import settings
from a2a_bridge.models import RecordedExchange
from a2a_bridge.service.exchange_notes import ExchangeNote
from a2a_bridge.wire.recorded_text import keep_body, keep_request_headers, keep_response_headers
from agents.core.ledger.database import Database, thread_database
from agents.core.ledger.state import lock_open_accounts
from agents.core.ledger.texts import insert
from agents.models import Turn
from kit import batches, sql
from kit.batch_writer import RETRY_S, BatchWriter
from kit.clock import db_now

logger = logging.getLogger(__name__)

MAX_WAITING = 2_000  # notes
GATHER_S = 0.25  # between two batches: of many asks few transactions
AT_ONCE = 50
MOST_SHARE = 0.1  # of the time: under more load, notes are left out instead of delaying asks
DELETE_AT_ONCE = 500
UNWRITTEN = timedelta(minutes=1)  # an exchange of a turn that the ledger is still writing is younger
MAX_PATH_CHARS = 400


class ExchangeLog(BatchWriter[ExchangeNote]):
    """Writes the exchanges of one process."""

    def __init__(self, retry_s: float = RETRY_S) -> None:
        super().__init__(
            "exchange log",
            write_exchanges,
            at_once=AT_ONCE,
            pause_s=GATHER_S,
            most_waiting=MAX_WAITING,
            most_share=MOST_SHARE,
            retry_s=retry_s,
            refused=_note_refused,
        )
        self._left_out = 0

    def record(self, note: ExchangeNote) -> None:
        """Write the note of an exchange that has ended; leave it out if too many wait to be written."""
        if self.is_full:
            self._left_out += 1
            if self._left_out & (self._left_out - 1) == 0:  # the 1st, 2nd, 4th, 8th, …
                logger.warning("exchange.left_out", extra={"count": self._left_out})
            return
        note.ended_at = time.time()
        self.put(note)


class ExchangeRow(Struct, gc=False):
    """The columns of a new exchange."""

    chat_id: str
    caller_id: int
    agent_id: int | None
    protocol: str
    method: str
    path: str
    request_headers: str
    request_body: str
    request_bytes: int
    status: int
    response_headers: str
    response_body: str
    response_bytes: int
    frames: int
    received_at: object
    ended_at: object


INSERT_ROWS = insert(RecordedExchange._meta.db_table, ExchangeRow.__struct_fields__)


def write_exchanges(notes: Sequence[ExchangeNote]) -> None:
    """Insert a row for each note by one statement, without notes of accounts that were closed meanwhile.

    A model for each row would cost most of the record. The commit does not wait for the disk: on SQLite the ledger
    would wait, too.
    """
    database = thread_database()
    rows = [_row(note, database) for note in notes]
    with sql.atomic_unflushed(), database:
        callers = lock_open_accounts(database, {row.caller_id for row in rows})
        if written := [row for row in rows if row.caller_id in callers]:
            database.insert(INSERT_ROWS, written)


def _row(note: ExchangeNote, database: Database) -> ExchangeRow:
    is_in_pieces = note.response_bytes is not UNSET
    return ExchangeRow(
        note.chat_id,
        note.caller_id,
        note.agent_id,
        _name_protocol(note),
        note.method,
        note.path.replace("\0", "\ufffd")[:MAX_PATH_CHARS],
        keep_request_headers(note.headers),
        keep_body(note.request_body, is_whole=len(note.request_body) == note.request_bytes),
        note.request_bytes,
        note.status,
        keep_response_headers(note.response_headers),
        "".join(_response_texts(note, is_in_pieces=is_in_pieces)),
        len(note.response_body) if isinstance(note.response_bytes, UnsetType) else note.response_bytes,
        note.frames,
        database.moment(datetime.fromtimestamp(note.received_at, UTC)),
        database.moment(datetime.fromtimestamp(note.ended_at, UTC)),
    )


def _name_protocol(note: ExchangeNote) -> str:
    """The version and the binding; that of a surface with a single form is its binding."""
    if not note.dialect:
        return note.binding
    version = note.dialect if note.dialect.startswith("A2A") else f"{note.dialect} dialect"
    return f"{version} over {note.binding}"


def _response_texts(note: ExchangeNote, *, is_in_pieces: bool) -> Iterator[str]:
    body, most = note.response_body, note.most_bytes
    if not is_in_pieces:
        yield keep_body(body[:most], is_whole=len(body) <= most)
        return
    yield keep_body(body, is_whole=False)
    if note.last_frames:
        kept = len(body) + sum(map(len, note.last_frames))
        if isinstance(note.response_bytes, int) and kept < note.response_bytes:
            yield "\n…\n\n"
        yield keep_body(b"".join(note.last_frames), is_whole=False)


def _note_refused(note: ExchangeNote, failure: DatabaseError) -> None:
    """Log an exchange that the database refused, such as that of an account that was erased meanwhile."""
    logger.warning("exchange.not_written", extra={"chat_id": note.chat_id, "failure": type(failure).__name__})


def forget_old() -> int:
    """Delete exchanges that are too old, and those whose turn was deleted, or whose question is no longer kept."""
    now = db_now()
    old = RecordedExchange.objects.filter(received_at__lt=now - timedelta(days=settings.EXCHANGES_KEPT_DAYS))
    deleted = batches.delete(old, DELETE_AT_ONCE)
    # PostgreSQL makes a join of NOT EXISTS; NOT IN reads all turns again for each exchange.
    kept = Exists(Turn.objects.filter(chat_id=OuterRef("chat_id")).exclude(question=""))
    lost = RecordedExchange.objects.filter(~kept, received_at__lt=now - UNWRITTEN)
    return deleted + batches.delete(lost, DELETE_AT_ONCE)


def delete_exchanges(caller_id: int, agent_id: int, context_id: str) -> int:
    """Delete what was recorded of a caller's asks of an agent in one context; returns the number of exchanges.

    A caller has few exchanges (`EXCHANGES_PER_CALLER`), so their turns are looked up by the chat ids.
    """
    asks = Turn.objects.filter(chat_id=OuterRef("chat_id"), agent=agent_id, context_id=context_id)
    return batches.delete(RecordedExchange.objects.filter(Exists(asks), caller=caller_id), DELETE_AT_ONCE)


def trim() -> int:
    """Delete the oldest exchanges of callers with too many; returns the number of deleted rows."""
    most = settings.EXCHANGES_PER_CALLER
    counts = (
        RecordedExchange.objects.order_by().values("caller").annotate(count=Count("pk")).filter(count__gt=most)
    )
    deleted = 0
    for caller_id in list(counts.values_list("caller", flat=True)):
        mine = RecordedExchange.objects.filter(caller=caller_id)
        newest = mine.order_by("-pk").values_list("pk", flat=True)[most - 1 : most]
        for first in newest:
            deleted += batches.delete(mine.filter(pk__lt=first), DELETE_AT_ONCE)
    return deleted
