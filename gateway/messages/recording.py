"""Adds messages and their replies to the sessions in which they belong."""

from collections.abc import Sequence

from agents.core.types import SettledTurn
from agents.core.waiting import RunningTurn
from agents.models.choices import Outcome
from gateway.messages.replies import content_of, reply_id
from gateway.sessions.entries import Entry, Place, Record
from gateway.sessions.held_entries import Held, hold
from gateway.sessions.recorder import SessionRecorder
from gateway.wire.envelope import Envelope
from gateway.wire.frames import now_ms
from kit import sql


class Recording:
    """One message. `place`: None, it belongs in no session. `key`: that no other message has.

    What `hold_message` and `hold_reply` return is written with the commit of what they are of; then `add_message`
    and `add_reply` pass it on to the recorder. `running`: its turn, once it is committed.
    """

    running: RunningTurn

    def __init__(self, recorder: SessionRecorder, place: Place | None, envelope: Envelope, key: str) -> None:
        self._recorder = recorder
        self._place = place
        self._envelope = envelope
        self._key = key
        self._message: Held | None = None
        self._reply: Held | None = None

    def hold_message(self) -> Held | None:
        """The message as it is held; None when it belongs in no session."""
        envelope = self._envelope
        role = envelope.content.get("role", "user")
        self._message = self._hold("message", role, envelope.said, envelope.id, envelope.timestamp_ms)
        return self._message

    async def add_message(self) -> None:
        """The message was accepted, and what holds it is committed."""
        await self._add(self._message)

    def hold_reply(self, settled: SettledTurn) -> Sequence[sql.Query]:
        """What holds its reply. See `agents.core.ledger.ExtraWrites`."""
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
    ) -> Held | None:
        if self._place is None:
            return None
        stamp = now_ms() if timestamp_ms is None else timestamp_ms
        entry = Entry(timestamp_ms=stamp, role=role, content=content, id=entry_id)
        return hold(Record(self._place, entry), f"{self._key}-{part}", self._recorder.process_id)

    async def _add(self, held: Held | None) -> None:
        if held is not None:
            await self._recorder.add(held.record, len(held.record.sealed))
