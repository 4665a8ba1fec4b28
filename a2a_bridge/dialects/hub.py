"""The hub's own dialect: PascalCase methods, bare tasks, bare states (docs/reference/methods.md).

`contextId` repeats the caller's messageId; every SendMessage is a task of its own.
"""

import base64
import binascii
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from a2a_bridge.tasks.record import State, Task
from kit.jsonrpc import INVALID_PARAMS, RpcError

MAX_ID_CHARS = 128
MAX_PARTS = 64

Json = dict[str, Any]


class Part(Struct, frozen=True, rename="camel"):
    """Exactly one of text, raw (base64), url, data. Files and data are accepted and not passed on."""

    text: str | UnsetType = UNSET
    raw: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    data: Any = UNSET
    metadata: Json | UnsetType = UNSET


class Message(Struct, frozen=True, rename="camel"):
    """A question; at least one part must hold text."""

    message_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]
    role: Literal["ROLE_USER"]
    parts: Annotated[list[Part], Meta(min_length=1, max_length=MAX_PARTS)]
    metadata: Json | UnsetType = UNSET


class SendMessageParams(Struct, frozen=True):
    """Parameters of SendMessage and SendStreamingMessage."""

    message: Message


class GetTaskParams(Struct, frozen=True):
    """Parameters of GetTask."""

    id: str


def read_params(kind: type[Any], params: Any) -> Any:
    """Check and build the parameters of a method.

    Raises:
        RpcError: -32602, naming the field.
    """
    if not isinstance(params, dict):
        raise RpcError(INVALID_PARAMS, "params must be an object")
    try:
        return msgspec.convert(params, kind)
    except msgspec.ValidationError as wrong:
        raise RpcError(INVALID_PARAMS, str(wrong).replace("`$.", "`").replace("`$`", "params")) from None


def texts(message: Message) -> tuple[str, ...]:
    """The text parts of a question.

    Raises:
        RpcError: -32602, naming the part that is none, or when no part holds text.
    """
    for i, part in enumerate(message.parts):
        _check_part(part, f"message.parts[{i}]")
    found = tuple(part.text for part in message.parts if isinstance(part.text, str) and part.text)
    if not any(text.strip() for text in found):
        raise RpcError(INVALID_PARAMS, "message.parts: at least one part must hold text")
    return found


def task_json(task: Task) -> Json:
    """A task as this dialect shows it."""
    status: Json = {"state": task.state.name, "timestamp": task.updated_at}
    history = [
        {"messageId": task.message_id, "role": "ROLE_USER", "parts": [{"text": text} for text in task.question]}
    ]
    if task.state is State.FAILED:
        status["message"] = _agent_message(task.reply_id, task.text)
    elif task.state is State.COMPLETED:
        history.append(_agent_message(task.reply_id, task.text))
    return {"id": task.id, "contextId": task.message_id, "status": status, "history": history}


def frame(task: Task) -> Json:
    """A task as the first or last frame of a stream."""
    return {"task": task_json(task)}


def chunk_frame(task: Task, chunk: str, *, message_id: str, timestamp: str) -> Json:
    """A piece of a reply as a frame of a stream."""
    status = {"state": "WORKING", "timestamp": timestamp, "message": _agent_message(message_id, chunk)}
    return {"task": {"id": task.id, "contextId": task.message_id, "status": status}}


def _agent_message(message_id: str, text: str) -> Json:
    return {"messageId": message_id, "role": "ROLE_AGENT", "parts": [{"text": text}]}


def _check_part(part: Part, where: str) -> None:
    contents = [one for one in (part.text, part.raw, part.url, part.data) if one is not UNSET]
    if len(contents) != 1:
        raise RpcError(INVALID_PARAMS, f"{where}: want exactly one of text, raw, url, data")
    if isinstance(part.raw, str):
        _check_base64(part.raw, f"{where}.raw")


def _check_base64(raw: str, where: str) -> None:
    try:
        base64.b64decode(raw.replace("-", "+").replace("_", "/"), validate=True)
    except (binascii.Error, ValueError):
        raise RpcError(INVALID_PARAMS, f"{where}: not base64") from None
