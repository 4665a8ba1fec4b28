"""What a message says as text, and the frame of its reply."""

import msgspec

from agents.core.types import SettledTurn
from agents.core.waiting import RunningTurn
from agents.models.choices import Outcome
from agents.transcript.pieces import LEFT_OUT, ArtifactPiece, describe_left_out, plain_text_in
from gateway.wire.envelope import Envelope, Json
from gateway.wire.errors import FrameRefused, refuse_failed
from gateway.wire.frames import error_frame, make_frame


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
    if left_out := _left_out(running, settled):
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
    pieces = [one for one in running.pieces if isinstance(one, ArtifactPiece)]
    found = [part.data for piece in pieces for part in piece.parts if part.data is not msgspec.UNSET]
    return found[-1] if found else ""


def _left_out(running: RunningTurn, settled: SettledTurn) -> list[str]:
    """A line for each part of the agent's artifacts that is not in the content of the reply."""
    made = [(one, part) for one in running.pieces if isinstance(one, ArtifactPiece) for part in one.parts]
    shown = [part for one, part in made if one.lead is not None and plain_text_in([part])]
    if not settled.text:
        shown += [part for _, part in made if part.data is not msgspec.UNSET][-1:]
    others = [(one, part) for one, part in made if not any(part is each for each in shown)]
    return [describe_left_out(f"artifact {one.artifact_id}", part) for one, part in others]


def reply_id(running: RunningTurn) -> str:
    """The id of the frame of a reply."""
    return f"msg-{running.turn.ask.chat_id}-reply"
