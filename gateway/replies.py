"""What a message says as text, and the frame of its reply."""

import msgspec

from agents.core.types import SettledTurn
from agents.core.waiting import RunningTurn
from agents.models.choices import Outcome
from agents.transcript.pieces import ArtifactPiece
from gateway.envelope import Envelope, Json
from gateway.errors import refuse_failed
from gateway.frames import make_frame


def text_of(envelope: Envelope) -> str:
    """The content of a message as text."""
    content = envelope.content["content"]
    return content if isinstance(content, str) else msgspec.json.encode(content).decode()


def make_reply(key: str, envelope: Envelope, running: RunningTurn, settled: SettledTurn, sender: str) -> Json:
    """The reply to a message that wants a response. `key`: its correlation id; `sender`: who gets the reply.

    Raises:
        FrameRefused: the turn ended without one.
    """
    if settled.outcome is not Outcome.COMPLETED:
        raise refuse_failed(settled.reason, settled.own_words)
    metadata = {"correlationId": key} | ({"parentId": envelope.id} if envelope.id else {})
    if thread := envelope.metadata.get("threadId"):
        metadata["threadId"] = thread
    session = {"sessionId": envelope.session_id} if envelope.session_id else {}
    content = {"role": "agent", "content": content_of(running, settled)}
    head = {"from": envelope.agent, "agent": sender, "id": reply_id(running), **session}
    return make_frame("message", content, metadata) | head


def content_of(running: RunningTurn, settled: SettledTurn) -> object:
    """The reply as a seat gave it: text, or the object that it sent."""
    if settled.text:
        return settled.text
    pieces = [one for one in running.pieces if isinstance(one, ArtifactPiece)]
    found = [part.data for piece in pieces for part in piece.parts if part.data is not msgspec.UNSET]
    return found[-1] if found else ""


def reply_id(running: RunningTurn) -> str:
    """The id of the frame of a reply."""
    return f"msg-{running.turn.ask.chat_id}-reply"
