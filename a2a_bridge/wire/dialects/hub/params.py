"""Parameters of the hub's own dialect, checked."""

from functools import partial
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from a2a_bridge.wire.dialects.reading import (
    MAX_ID_CHARS,
    MAX_PARTS,
    check_content,
    invalid,
    read_params,
)
from a2a_bridge.wire.requests import Get, Send
from a2a_bridge.wire.task import Message, Role
from agents.transcript.pieces import LEFT_OUT, Json, Part, describe_left_out, question_of


class HubPart(Struct, frozen=True):
    """Exactly one of text, raw (base64), url, data."""

    text: str | UnsetType = UNSET
    raw: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    data: Any = UNSET
    metadata: Json | UnsetType = UNSET


class HubMessage(Struct, frozen=True, rename="camel"):
    """A question; at least one part must hold text. Data reaches the agent as JSON, of a file one line about it.

    `task_id` counts while that task asks to approve something, and the message then answers it.
    """

    message_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]
    role: Literal["ROLE_USER"]
    parts: Annotated[list[HubPart], Meta(min_length=1, max_length=MAX_PARTS)]
    metadata: Json | UnsetType = UNSET
    task_id: Any = UNSET


class SendMessageParams(Struct, frozen=True):
    """Parameters of SendMessage and SendStreamingMessage."""

    message: HubMessage


class GetTaskParams(Struct, frozen=True):
    """Parameters of GetTask."""

    id: str


def read_get(params: Any) -> Get:
    """GetTask."""
    return Get(task_id=read_params(GetTaskParams, params).id)


def read_send(params: Any, *, is_stream: bool = False) -> Send:
    """SendMessage and SendStreamingMessage."""
    message = read_params(SendMessageParams, params, role="ROLE_USER").message
    parts = _read_parts(message)
    said = Message(message.message_id, Role.USER, tuple(parts))
    are_files = [part.text is UNSET and part.data is UNSET for part in parts]
    left_out = [describe_left_out(f"message.parts[{i}]", part) for i, part in enumerate(parts) if are_files[i]]
    return Send(
        message=said,
        question=question_of(parts, "\n"),
        metadata={LEFT_OUT: left_out} if left_out else UNSET,
        approves=message.task_id if isinstance(message.task_id, str) else "",
        context_id=message.message_id,
        waits=not is_stream,
    )


read_stream = partial(read_send, is_stream=True)


def _read_parts(message: HubMessage) -> list[Part]:
    """The parts, after all were checked."""
    for i, part in enumerate(message.parts):
        check_content(part, f"message.parts[{i}]")
    if not any(isinstance(part.text, str) and part.text.strip() for part in message.parts):
        raise invalid("message.parts", "message.parts: at least one part must hold text")
    return [Part(text=part.text, raw=part.raw, url=part.url, data=part.data) for part in message.parts]
