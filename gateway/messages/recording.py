"""Adds messages and their replies to the sessions in which they belong."""

from agents.core.types import SettledTurn
from agents.core.waiting import RunningTurn
from agents.models.choices import Outcome
from gateway.messages.replies import content_of, reply_id
from gateway.sessions.entries import Entry, Place, Record
from gateway.sessions.recorder import SessionRecorder
from gateway.wire.envelope import Envelope
from gateway.wire.frames import now_ms


class Recording:
    """One message. `place`: None, it belongs in no session. `running`: its turn, once it is committed."""

    running: RunningTurn

    def __init__(self, recorder: SessionRecorder, place: Place | None, envelope: Envelope) -> None:
        self._recorder = recorder
        self._place = place
        self._envelope = envelope

    async def add_message(self) -> None:
        """The message was accepted."""
        envelope = self._envelope
        role = envelope.content.get("role", "user")
        await self._add(role, envelope.said, envelope.id, envelope.timestamp_ms)

    async def add_reply(self, settled: SettledTurn) -> None:
        """Its turn has ended, as stored. The reply is sent by the task that waits for it."""
        if self._envelope.wants_response and settled.outcome is Outcome.COMPLETED:
            await self._add("agent", content_of(self.running, settled), reply_id(self.running))

    async def _add(self, role: str, content: object, entry_id: str, timestamp_ms: int | None = None) -> None:
        if self._place is not None:
            stamp = now_ms() if timestamp_ms is None else timestamp_ms
            entry = Entry(timestamp_ms=stamp, role=role, content=content, id=entry_id)
            await self._recorder.add(Record(self._place, entry), len(str(content)))
