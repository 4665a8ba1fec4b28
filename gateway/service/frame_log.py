"""The audit of frames: a record for each frame of a signed-in client, without content and tokens.

Records are written in batches by another thread. When the log cannot keep up, clients wait before their next frame
is read: no record is dropped.
"""

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter

from django.db import DatabaseError, IntegrityError, transaction
from msgspec import Struct

from agents.core.ledger.database import thread_database
from agents.core.ledger.texts import insert
from agents.core.ports import Clock
from gateway.models import FrameRecord
from gateway.wire.errors import FrameRefused
from gateway.wire.frames import GATEWAY, Envelope
from kit.batch_writer import RETRY_S, BatchWriter
from kit.clock import approximate_now

logger = logging.getLogger(__name__)

MAX_WAITING = 5_000  # records
GATHER_S = 0.1  # between two batches, so that batches are few and large
AT_ONCE = 500
ALL_AGENTS = "*"
SERVED, REFUSED, DROPPED, FAILED = "served", "refused", "dropped", "failed"


class FrameRow(Struct, gc=False):
    """The columns of a new record; PostgreSQL gets them by their names."""

    owner_id: int | None
    at: object
    message_id: str
    source: str
    destination: str
    type: str
    outcome: str
    error_code: int
    bytes: int
    latency_ms: int
    session_id: str


INSERT_ROWS = insert(FrameRecord._meta.db_table, FrameRow.__struct_fields__)
values_of = attrgetter(*FrameRow.__struct_fields__)


def insert_rows(notes: "Sequence[FrameNote]") -> None:
    """One statement inserts all rows: a model for each row costs more than the rest of a frame that is passed
    on.
    """
    database = thread_database()
    rows = [values_of(note) for note in notes]
    stored = [FrameRow(owner_id, database.moment(at), *others) for owner_id, at, *others in rows]
    with transaction.atomic(), database:
        database.insert(INSERT_ROWS, stored)


def find_frames(team_id: int, session_id: str, begin: datetime, end: datetime, most: int) -> list[FrameRecord]:
    """The records of a team's frames in one of its sessions between two moments, oldest first."""
    rows = FrameRecord.objects.filter(owner=team_id, at__gte=begin, at__lte=end, session_id=session_id)
    return list(rows.order_by("at", "pk")[:most])


def _note_refused(note: "FrameNote", failure: DatabaseError) -> None:
    if isinstance(failure, IntegrityError):
        logger.warning("gateway.frame_of_no_team", extra={"user_id": note.owner_id})
    else:
        logger.error("gateway.frame_not_written", exc_info=failure)


class FrameLog(BatchWriter["FrameNote"]):
    """Writes the records of the clients of one process."""

    def __init__(
        self, write: "Callable[[Sequence[FrameNote]], None]" = insert_rows, retry_s: float = RETRY_S
    ) -> None:
        super().__init__(
            "frame log",
            write,
            at_once=AT_ONCE,
            pause_s=GATHER_S,
            most_waiting=MAX_WAITING,
            retry_s=retry_s,
            refused=_note_refused,
        )


@dataclass(slots=True)
class FrameNote:
    """The notes on one frame while it is handled; `finish` writes them once, as a row of `FrameRecord`.

    `owner_id`: the team of the client; None before it signed in, then the frame has a line in the log alone.
    `is_deferred`: the handler of the frame calls `finish` later, when the outcome is known.
    """

    log: FrameLog
    clock: Clock
    bytes: int
    began: float
    at: datetime
    owner_id: int | None = None
    source: str = ""
    type: str = ""
    message_id: str = ""
    destination: str = ""
    session_id: str = ""
    outcome: str = SERVED
    error_code: int = 0
    latency_ms: int = 0
    is_deferred: bool = False
    is_finished: bool = False

    def read(self, envelope: Envelope) -> None:
        """Note the fields of a checked frame."""
        self.type, self.message_id, self.session_id = envelope.type, envelope.id, envelope.session_id
        is_for_all = envelope.type == "broadcast" or envelope.agent == "broadcast"
        self.destination = ALL_AGENTS if is_for_all else envelope.agent or GATEWAY

    def finish(self, refused: FrameRefused | None = None, *, has_failed: bool = False) -> None:
        """Write the record, once. `refused`: why the frame was not served; `has_failed`: the hub could not."""
        if self.is_finished:
            return
        self.is_finished = True
        if refused is not None:
            self.error_code, self.outcome = int(refused.code), REFUSED
            self.type = self.type or refused.frame_type
            self.message_id = self.message_id or refused.frame_id
        elif has_failed:
            self.outcome = FAILED
        if self.owner_id is None:
            about = {"type": self.type, "outcome": self.outcome, "code": self.error_code, "bytes": self.bytes}
            logger.info("gateway.frame_before_sign_in", extra=about)
            return
        self.latency_ms = int((self.clock() - self.began) * 1000)
        self.log.put(self)


def begin_note(log: FrameLog, clock: Clock, size: int) -> FrameNote:
    """Begin the notes on a frame of `size` bytes that has just arrived."""
    return FrameNote(log=log, clock=clock, bytes=size, began=clock(), at=approximate_now())
