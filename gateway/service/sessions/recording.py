"""Adds messages and their replies to the sessions in which they belong, in batches in a thread (docs/adr/0138).

The database has each record before (docs/adr/0153): a process that is killed loses none.
"""

from collections.abc import Callable, Sequence

from agents.core.types import SettledTurn
from agents.core.waiting import RunningTurn
from agents.models.choices import Outcome
from gateway.service.seats.seat_frames import content_of, reply_id
from gateway.service.sessions.entries import Entry, HeldRecord, Place, Record, hold
from gateway.service.sessions.writing import write_or_log
from gateway.wire.frames import Envelope, now_ms
from kit import sql
from kit.batch_writer import RETRY_S, BatchWriter

PAUSE_S = 0.25  # on SQLite each batch takes the one write lock, which turns need, too
MOST_WAITING_BYTES = 33_554_432
MOST_AT_ONCE = 200  # messages of a transaction


class SessionRecorder(BatchWriter[Record]):
    """The messages of one process that are yet to be written; the size of an item is in bytes.

    A process that ends while the database is away leaves the rest to another process.
    """

    def __init__(
        self,
        process_id: str,
        write_records: Callable[[Sequence[Record]], object] = write_or_log,
        retry_s: float = RETRY_S,
    ) -> None:
        super().__init__(
            "sessions",
            write_records,
            at_once=MOST_AT_ONCE,
            pause_s=PAUSE_S,
            most_waiting=MOST_WAITING_BYTES,
            retry_s=retry_s,
        )
        self.process_id = process_id


class Recording:
    """One message. `place`: None, the message belongs in no session. `key`: no other message has this key.

    The ledger or the letter queue writes the row that `hold_message` or `hold_reply` makes, in the transaction of
    the message or reply; then `add_message` or `add_reply` passes the record on to the recorder. `running`: the
    turn of the message, once it is committed.
    """

    running: RunningTurn

    def __init__(self, recorder: SessionRecorder, place: Place | None, envelope: Envelope, key: str) -> None:
        self._recorder = recorder
        self._place = place
        self._envelope = envelope
        self._key = key
        self._message: HeldRecord | None = None
        self._reply: HeldRecord | None = None

    def hold_message(self) -> HeldRecord | None:
        """Make the record and the row of the message; None when it belongs in no session."""
        envelope = self._envelope
        role = envelope.content.get("role", "user")
        self._message = self._hold("message", role, envelope.said, envelope.id, envelope.timestamp_ms)
        return self._message

    async def add_message(self) -> None:
        """Pass the message on to the recorder, after the commit of its row."""
        await self._add(self._message)

    def hold_reply(self, settled: SettledTurn) -> Sequence[sql.Query]:
        """Make the row of the reply. See `agents.core.ledger.ExtraWrites`."""
        self._reply = None
        if self._envelope.wants_response and settled.outcome is Outcome.COMPLETED:
            self._reply = self._hold("reply", "agent", content_of(self.running, settled), reply_id(self.running))
        return [self._reply.query] if self._reply is not None else []

    async def add_reply(self, settled: SettledTurn) -> None:
        """Its turn has ended, as stored. The reply is sent by the task that waits for it."""
        if settled.has_extra_writes:
            await self._add(self._reply)

    def _hold(
        self, part: str, role: str, content: object, entry_id: str, timestamp_ms: int | None = None
    ) -> HeldRecord | None:
        if self._place is None:
            return None
        stamp = now_ms() if timestamp_ms is None else timestamp_ms
        entry = Entry(timestamp_ms=stamp, role=role, content=content, id=entry_id)
        return hold(Record(self._place, entry), f"{self._key}-{part}", self._recorder.process_id)

    async def _add(self, held: HeldRecord | None) -> None:
        if held is not None:
            self._recorder.put(held.record, len(held.record.sealed))
            await self._recorder.wait_for_room()
