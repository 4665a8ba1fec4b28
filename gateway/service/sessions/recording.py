"""Adds messages and their replies to the sessions in which they belong."""

from collections.abc import Sequence

from agents.core.types import SettledTurn
from agents.core.waiting import RunningTurn
from agents.models.choices import Outcome
from gateway.service.seats.seat_frames import content_of, reply_id
from gateway.service.sessions.entries import Entry, Place, Record
from gateway.service.sessions.held_entries import HeldRecord, hold
from gateway.service.sessions.recorder import SessionRecorder
from gateway.wire.frames import Envelope, now_ms
from kit import sql


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
