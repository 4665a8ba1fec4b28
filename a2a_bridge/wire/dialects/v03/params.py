"""Parameters of A2A 0.3, checked. Members that are null count as absent."""

import json
from functools import partial
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from a2a_bridge.wire.dialects.reading import (
    MAX_ID_CHARS,
    MAX_PARTS,
    check_base64,
    check_printable,
    invalid,
    needs_of,
    only_modes,
    read_params,
)
from a2a_bridge.wire.errors import UNSUPPORTED_OPERATION
from a2a_bridge.wire.requests import CancelTask, FollowTask, GetTask, Request, Send
from a2a_bridge.wire.task import Message, Role
from agents.transcript.pieces import LEFT_OUT, Json, Part, question_of
from kit.jsonrpc import RpcError

KINDS = ("", "text", "file", "data")  # others are ignored
COMPAT = "data_part_compat"  # metadata of a data part whose value is no object: {"value": it}


class V03Part(Struct, frozen=True, rename="camel"):
    """A part: text, a file, data, or of a kind that holds nothing for an agent.

    Some clients send no `kind`: then the part is of the kind of its only content. Such a part may be a file in the
    form of A2A 1.0: `raw` or `url`, `filename`, `media_type`.
    """

    kind: str = ""
    text: Any = UNSET
    file: Any = UNSET
    data: Any = UNSET
    raw: Any = UNSET
    url: Any = UNSET
    filename: str = ""
    media_type: str = ""
    metadata: Json | UnsetType = UNSET


class V03File(Struct, frozen=True, rename="camel"):
    """Exactly one of bytes (base64) and uri."""

    bytes: str | UnsetType = UNSET
    uri: str | UnsetType = UNSET
    mime_type: str = ""
    name: str = ""


class V03Message(Struct, frozen=True, rename="camel"):
    """A Message of a caller."""

    message_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]
    role: Literal["user"]
    parts: Annotated[list[V03Part], Meta(max_length=MAX_PARTS)]
    kind: Literal["message"] = "message"
    context_id: Annotated[str, Meta(max_length=MAX_ID_CHARS)] = ""
    task_id: str = ""
    metadata: Json | UnsetType = UNSET
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()


class Configuration(Struct, frozen=True, rename="camel"):
    """A MessageSendConfiguration; its push address is not heeded, as push is not offered here."""

    accepted_output_modes: tuple[str, ...] = ()
    blocking: bool = True
    history_length: Any = None


class SendParams(Struct, frozen=True):
    """Parameters of message/send and message/stream."""

    message: V03Message
    configuration: Configuration = Configuration()
    metadata: Json | UnsetType = UNSET


class TaskParams(Struct, frozen=True, rename="camel"):
    """Parameters of tasks/get, tasks/cancel and tasks/resubscribe."""

    id: str
    history_length: Any = None
    metadata: Json | UnsetType = UNSET


def read_send(params: Any, *, is_stream: bool = False) -> Send:
    """message/send and message/stream. `question` is empty when no part of the message is of use."""
    sent: SendParams = read_params(SendParams, _sound(params), role="user")
    message, wanted = sent.message, sent.configuration
    parts: tuple[Part, ...] = ()
    others: list[tuple[str, Part]] = []
    ignored: list[str] = []
    for i, given in enumerate(message.parts):
        where = f"message.parts[{i}]"
        part = _part(given, where)
        if part is not None:
            parts += (part,)
            if part.text is UNSET:
                others.append((where, part))
        if given.kind not in KINDS:
            ignored.append(f"{where}: kind {json.dumps(given.kind)}")
    question = question_of(parts, "\n\n")
    if question and ignored:
        question = "\n\n".join([question, *(f"left out: {one}" for one in ignored)])
    said = Message(
        message.message_id, Role.USER, parts, message.metadata, message.extensions, message.reference_task_ids
    )
    waits = wanted.blocking and not is_stream
    return Send(
        message=said,
        question=question,
        metadata={LEFT_OUT: ignored} if ignored else UNSET,
        parts=parts if others else (),
        needs=needs_of(others, suffix=".kind=file") if others else (),
        only_modes=only_modes(wanted.accepted_output_modes),
        task_id=message.task_id,
        context_id=check_printable(message.context_id, "message.contextId"),
        waits=waits,
        takes_direct=(waits or is_stream) and not message.task_id,
        plain_is_direct=True,
        history_length=_count(wanted.history_length),
        output_modes=wanted.accepted_output_modes,
    )


read_stream = partial(read_send, is_stream=True)


def read_get(params: Any) -> GetTask:
    """tasks/get: no history unless some is asked for."""
    named: TaskParams = read_params(TaskParams, _sound(params))
    return GetTask(task_id=named.id, history_length=_count(named.history_length) or 0)


def read_cancel(params: Any) -> CancelTask:
    """tasks/cancel."""
    return CancelTask(task_id=read_params(TaskParams, _sound(params)).id)


def read_subscribe(params: Any) -> FollowTask:
    """tasks/resubscribe."""
    return FollowTask(task_id=read_params(TaskParams, _sound(params)).id)


def read_show_card(params: Any) -> Request:
    """agent/getAuthenticatedExtendedCard: there is none for callers of 0.3.

    Raises:
        RpcError: -32004, always.
    """
    raise RpcError(UNSUPPORTED_OPERATION, "there is no extended card; the public one says all")


def _sound(params: Any) -> Any:
    """Parameters without what is null, where the schema names the members.

    Raises:
        RpcError: -32602 for a member without a name.
    """
    if not isinstance(params, dict):
        return params
    if "" in params:
        raise invalid("params", "params: a member has no name")
    sound = _given(params)
    for name in ("message", "configuration"):
        if name in sound:
            sound[name] = _given(sound[name])
    message = sound.get("message")
    if isinstance(message, dict) and isinstance(message.get("parts"), list):
        message["parts"] = [_given(part) for part in message["parts"]]
    return sound


def _given(value: Any) -> Any:
    return {name: one for name, one in value.items() if one is not None} if isinstance(value, dict) else value


def _part(part: V03Part, where: str) -> Part | None:
    """The part that an agent gets; None when there is nothing in it."""
    kind = part.kind or _kind_of(part, where)
    if kind == "text":
        if not isinstance(part.text, str):
            raise invalid(f"{where}.text", f"{where}.text: want text")
        return Part(text=part.text, metadata=part.metadata) if part.text.strip() else None
    if kind == "data":
        if not isinstance(part.data, dict):
            raise invalid(f"{where}.data", f"{where}.data: want an object")
        return _data_part(part)
    return _file_part(part, f"{where}.file") if kind == "file" else None


def _file_part(part: V03Part, where: str) -> Part:
    given = part.file
    if not part.kind and given is UNSET:  # a file in the form of A2A 1.0
        content = {"bytes": part.raw, "uri": part.url, "name": part.filename, "mimeType": part.media_type}
        given = {name: value for name, value in content.items() if value is not UNSET}
    if not isinstance(given, dict):
        raise invalid(where, f"{where}: want an object")
    file: V03File = read_params(V03File, _given(given), within=where)
    if (file.bytes is UNSET) == (file.uri is UNSET):
        raise invalid(where, f"{where}: want exactly one of bytes, uri")
    raw = file.bytes if file.bytes is UNSET else check_base64(file.bytes, f"{where}.bytes")
    return Part(raw=raw, url=file.uri, media_type=file.mime_type, filename=file.name, metadata=part.metadata)


def _kind_of(part: V03Part, where: str) -> str:
    """The kind of a part that names none."""
    kinds = [kind for kind in ("text", "file", "data", "raw", "url") if getattr(part, kind) is not UNSET]
    if len(kinds) != 1:
        raise invalid(f"{where}.kind", f"{where}.kind: want text, file or data")
    return "file" if kinds[0] in ("raw", "url") else kinds[0]


def _data_part(part: V03Part) -> Part:
    is_compat = (
        isinstance(part.metadata, dict) and part.metadata.get(COMPAT) is True and set(part.data) == {"value"}
    )
    return Part(data=part.data["value"] if is_compat else part.data, metadata=part.metadata)


def _count(value: Any) -> int | None:
    """The wanted number of messages; a value that is no sound number counts as absent."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return int(value) if is_number and 0 <= value < 2**31 else None
