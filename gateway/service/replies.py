"""The text of a message, and the frame of its reply."""

import msgspec

from agents.core.types import SettledTurn
from agents.core.waiting import RunningTurn, left_out_of
from agents.models.choices import Outcome
from agents.transcript.pieces import LEFT_OUT, ArtifactPiece, Part
from gateway.wire.errors import FrameRefused, refuse_failed
from gateway.wire.frames import Envelope, Json, error_frame, make_frame


def text_of(envelope: Envelope) -> str:
    """The content of a message as text."""
    said = envelope.said
    return said if isinstance(said, str) else msgspec.json.encode(said).decode()


def make_reply(key: str, envelope: Envelope, running: RunningTurn, settled: SettledTurn, sender: str) -> Json:
    """The reply to a message that wants a response. `key`: its correlation id; `sender`: who gets the reply.

    Raises:
        FrameRefused: the turn ended without one.
    """
    if settled.outcome is not Outcome.COMPLETED:
        raise refuse_failed(settled.reason, settled.own_words)
    metadata: Json = {"correlationId": key} | ({"parentId": envelope.id} if envelope.id else {})
    if thread := envelope.metadata.get("threadId"):
        metadata["threadId"] = thread
    session = {"sessionId": envelope.session_id} if envelope.session_id else {}
    head = {"from": envelope.agent, "agent": sender, "id": reply_id(running), **session}
    said = content_of(running, settled)
    if left_out := left_out_of(running.pieces, [] if settled.text else _data_of(running)[-1:]):
        metadata[LEFT_OUT] = left_out
    if envelope.type == "request":
        return make_frame("response", {"result": said}, metadata) | head
    return make_frame("message", {"role": "agent", "content": said}, metadata) | head


def make_refusal(envelope: Envelope, refused: FrameRefused) -> Json:
    """The frame that says why there is no reply: of a request a `response` with an error, else an `error`."""
    frame = error_frame(refused)
    if envelope.type != "request":
        return frame
    return make_frame("response", {"error": frame["content"]}, frame["metadata"])


def content_of(running: RunningTurn, settled: SettledTurn) -> object:
    """The reply as a seat gave it: text, or the object that it sent."""
    if settled.text:
        return settled.text
    found = _data_of(running)
    return found[-1].data if found else ""


def _data_of(running: RunningTurn) -> list[Part]:
    pieces = [one for one in running.pieces if isinstance(one, ArtifactPiece)]
    return [part for piece in pieces for part in piece.parts if part.data is not msgspec.UNSET]


def reply_id(running: RunningTurn) -> str:
    """The id of the frame of a reply."""
    return f"msg-{running.turn.ask.chat_id}-reply"
