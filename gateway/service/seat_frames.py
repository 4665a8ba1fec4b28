"""The frames with which a seat is asked, and the frames of its reply."""

from collections.abc import Sequence
from typing import Any

import msgspec

from agents.core.post import PostedPrompt
from agents.core.types import SettledTurn
from agents.core.waiting import RunningTurn, left_out_of
from agents.links.channel.payloads import MAX_TEXT_BYTES, Reply, TaskArtifact, TaskStatus
from agents.models.choices import Outcome
from agents.transcript.pieces import LEFT_OUT, ArtifactPiece, Part
from gateway.wire.errors import FrameRefused, failed_turn_error
from gateway.wire.frame_types import is_agent_name
from gateway.wire.frames import Envelope, Json, error_frame, make_frame, new_id, now_ms
from kit.names import make_slug

ENVELOPE_TYPE = "application/vnd.a2a-v1+json"
RESULT_ARTIFACT = "result"


def carry_envelope(envelope: Envelope, sender: str, caller: str) -> Json:
    """An envelope as an ask to a seat carries it, so that nothing of it is lost.

    `sender`: its name, checked, as the seat sees it; `caller`: the login of a sender of another owner, else empty.
    """
    metadata = envelope.metadata
    if "caller" in metadata:  # senders cannot set this field
        metadata = {key: value for key, value in metadata.items() if key != "caller"}
    return {
        "type": envelope.type,
        "id": envelope.id or new_id(),
        "from": sender,
        "sessionId": envelope.session_id,
        "timestamp": envelope.timestamp_ms or now_ms(),
        "content": envelope.content,
        "metadata": {**metadata, "caller": caller} if caller else metadata,
        "extra": envelope.extra,
    }


def parts_of(carried: Json) -> tuple[Part, ...]:
    """A carried envelope as the parts of an ask."""
    return (Part(data=carried, media_type=ENVELOPE_TYPE),)


def read_carried(carried: Json, agent: str) -> Envelope:
    """The envelope of a message that was carried, or that a seat sent. `agent`: its recipient."""
    return Envelope(
        type="message",
        content=carried["content"],
        metadata=carried["metadata"],
        id=carried["id"],
        agent=agent,
        session_id=carried.get("sessionId", ""),
        timestamp_ms=carried.get("timestamp"),
        extra=carried.get("extra", {}),
    )


def address_frame(carried: Json, agent: str) -> Json:
    """The frame for an agent that a carried envelope becomes."""
    return {
        **carried["extra"],
        "type": carried["type"],
        "id": carried["id"],
        "from": carried["from"],
        "agent": agent,
        **({"sessionId": carried["sessionId"]} if carried["sessionId"] else {}),
        "timestamp": carried["timestamp"],
        "content": carried["content"],
        "metadata": carried["metadata"],
    }


def make_message(prompt: PostedPrompt, name: str) -> Json:
    """The frame by which a seat is asked."""
    given = _find_envelope(prompt)
    carried = {key: value for key, value in given.items() if value}
    metadata = {**carried.get("metadata", {}), "requiresResponse": not prompt.tells}
    if not prompt.tells:
        metadata.setdefault("correlationId", prompt.chat_id)
    elif carried.get("metadata", {}).get("requiresResponse") is None:
        del metadata["requiresResponse"]
    if not given:
        metadata["caller"] = prompt.asker
    if prompt.traceparent:
        metadata.setdefault("traceparent", prompt.traceparent)
    parts = [msgspec.to_builtins(part) for part in prompt.parts]
    made: Json = {
        "type": "message",
        "id": f"msg-{prompt.chat_id}",
        "from": name_of_asker(prompt.asker),
        "sessionId": prompt.context_id,
        "timestamp": now_ms(),
        "content": {"role": "user", "content": {"text": prompt.text, "parts": parts} if parts else prompt.text},
        "extra": {},
    }
    return address_frame(made | carried | {"metadata": metadata}, name)


def read_reply(chat_id: str, envelope: Envelope) -> Sequence[Reply | TaskArtifact | TaskStatus]:
    """The frame of a seat that answers, as a link reports it: text as text, an object as data."""
    content = envelope.content
    if envelope.type == "error" or content.get("error") is not None:
        error = content.get("error")
        said = error.get("message") if isinstance(error, dict) else None
        text = as_text(said or content.get("message") or error or "")
        return [TaskStatus(chat_id, "failed", text.encode()[:MAX_TEXT_BYTES].decode(errors="ignore"))]
    value = content.get("result") if envelope.type == "response" else content.get("content")
    if isinstance(value, str):
        return [Reply(chat_id, value)]
    return [
        TaskArtifact(chat_id, RESULT_ARTIFACT, (Part(data=value),), last_chunk=True),
        TaskStatus(chat_id, "completed"),
    ]


def _find_envelope(prompt: PostedPrompt) -> Json:
    """The envelope that a prompt carries.

    An envelope of a caller over A2A is a part like any other, as the caller has a task.
    """
    if prompt.task_id or len(prompt.parts) != 1 or prompt.parts[0].media_type != ENVELOPE_TYPE:
        return {}
    carried: Json = prompt.parts[0].data
    return carried


def name_of_asker(login: str) -> str:
    """A caller without a seat as a name that the reply may have as its `agent`."""
    name = make_slug(login)
    return name if is_agent_name(name) else f"caller-{name}"[:64]


def as_text(said: Any) -> str:
    """The words of a message as text; an object as JSON."""
    return said if isinstance(said, str) else msgspec.json.encode(said).decode()


def make_reply(key: str, envelope: Envelope, running: RunningTurn, settled: SettledTurn, sender: str) -> Json:
    """The reply to a message that wants a response. `key`: its correlation id; `sender`: who gets the reply.

    Raises:
        FrameRefused: the turn ended without one.
    """
    if settled.outcome is not Outcome.COMPLETED:
        raise failed_turn_error(settled.reason, settled.own_words)
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
    return f"msg-{running.ask.chat_id}-reply"
