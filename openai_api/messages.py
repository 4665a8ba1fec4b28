"""The body of `POST /v1/chat/completions`: what it may hold, and the one ask that its messages become."""

import re
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct

from a2a_bridge.dialects.reading import (
    MAX_ID_CHARS,
    MAX_PARTS,
    check_content,
    check_printable,
    invalid,
    read_params,
)
from a2a_bridge.dialects.v1.params import MAX_URL_CHARS
from a2a_bridge.requests import Send
from a2a_bridge.tasks.record import Message, Role
from agents.transcript.pieces import Part
from kit import strict_json
from kit.ids import unguessable
from kit.jsonrpc import INVALID_PARAMS, RpcError, parse
from kit.strict_json import ForbiddenText

MAX_MESSAGES = 1_000
MAX_MODEL_CHARS = 160
MAX_NAME_CHARS = 255
MODEL_PREFIX = "agent/"
DATA_URL = re.compile(r"data:([\w.+-]+/[\w.+-]+)?(?:;[^,;]*)*;base64,")


class TextPart(Struct, frozen=True, tag_field="type", tag="text"):
    """Text."""

    text: str


class RefusalPart(Struct, frozen=True, tag_field="type", tag="refusal"):
    """What a model said instead of an answer."""

    refusal: str


class ImageUrl(Struct, frozen=True):
    """Where an image is: a `data:` URL with base64, or an address of the web."""

    url: str


class ImagePart(Struct, frozen=True, tag_field="type", tag="image_url"):
    """An image."""

    image_url: ImageUrl


class Audio(Struct, frozen=True):
    """Sound in base64."""

    data: str
    format: Annotated[str, Meta(max_length=20)]


class AudioPart(Struct, frozen=True, tag_field="type", tag="input_audio"):
    """Sound."""

    input_audio: Audio


class FileData(Struct, frozen=True):
    """A file as a `data:` URL."""

    file_data: str
    filename: Annotated[str, Meta(max_length=MAX_NAME_CHARS)] = ""


class FilePart(Struct, frozen=True, tag_field="type", tag="file"):
    """A file."""

    file: FileData


ContentPart = TextPart | RefusalPart | ImagePart | AudioPart | FilePart


class ChatMessage(Struct, frozen=True):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None


class StreamOptions(Struct, frozen=True):
    """What a stream tells besides."""

    include_usage: bool = False


class ChatRequest(Struct, frozen=True):
    """A request for a completion. Other fields of OpenAI's API are accepted and have no effect.

    `model`: `agent/OWNER/SLUG`. `user`: names the conversation that the agent goes on with; the header
    `X-Conversation-Id` wins.
    """

    model: Annotated[str, Meta(min_length=1, max_length=MAX_MODEL_CHARS)]
    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=MAX_MESSAGES)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: Annotated[str, Meta(max_length=MAX_ID_CHARS)] | None = None
    n: Annotated[int, Meta(ge=1, le=1)] | None = None


def read_request(body: bytes) -> ChatRequest:
    """The checked body of a request.

    Raises:
        RpcError: it is not sound; where possible with the field.
    """
    text, value = parse(body)
    try:
        strict_json.check_strings(text, value)
    except ForbiddenText as wrong:
        raise RpcError(INVALID_PARAMS, str(wrong)) from None
    asked: ChatRequest = read_params(ChatRequest, value)
    return asked


def make_send(asked: ChatRequest, conversation_id: str) -> Send:
    """The ask that the messages become.

    `conversation_id`: names what the agent remembers: it gets the messages after the last of the assistant
    alone. Without one it gets all, each with its role when there are several.

    Raises:
        RpcError: -32602, there is nothing to ask, or a file is not sound.
    """
    said = new_messages(asked.messages) if conversation_id else asked.messages
    texts = [(each.role, text_of(each)) for each in said]
    texts = [(role, text) for role, text in texts if text.strip()]
    if not texts or asked.messages[-1].role == "assistant":
        raise invalid("messages", "messages: want text, and no message of the assistant at the end")
    labeled = "\n\n".join(f"{role.capitalize()}: {text}" for role, text in texts)
    question = labeled if len(texts) > 1 else texts[0][1]
    files = tuple(_files(asked.messages, since=len(asked.messages) - len(said)))
    if len(files) >= MAX_PARTS:
        raise invalid("messages", f"messages: at most {MAX_PARTS - 1} images and files")
    parts = (Part(text=question), *files)
    return Send(
        message=Message(unguessable("chat-"), Role.USER, parts),
        question=question,
        parts=parts if files else (),
        context_id=conversation_id,
        waits=not asked.stream,
    )


def new_messages(messages: Sequence[ChatMessage]) -> Sequence[ChatMessage]:
    """The messages after the last of the assistant."""
    since = next((at for at in range(len(messages), 0, -1) if messages[at - 1].role == "assistant"), 0)
    return messages[since:]


def text_of(message: ChatMessage) -> str:
    """All text of a message."""
    content = message.content or ""
    if isinstance(content, str):
        return content
    said = [part for part in content if isinstance(part, TextPart | RefusalPart)]
    return "\n".join(part.text if isinstance(part, TextPart) else part.refusal for part in said)


def _files(messages: Sequence[ChatMessage], since: int) -> Iterator[Part]:
    for number, message in enumerate(messages[since:], since):
        if isinstance(message.content, list):
            for at, part in enumerate(message.content):
                where = f"messages[{number}].content[{at}]"
                if isinstance(part, ImagePart):
                    yield _file(part.image_url.url, "", f"{where}.image_url.url")
                elif isinstance(part, FilePart):
                    yield _file(part.file.file_data, part.file.filename, f"{where}.file.file_data")
                elif isinstance(part, AudioPart):
                    media_type = check_printable(f"audio/{part.input_audio.format}", f"{where}.input_audio.format")
                    yield _checked(Part(raw=part.input_audio.data, media_type=media_type), f"{where}.input_audio")


def _file(url: str, name: str, where: str) -> Part:
    name = check_printable(name, where)
    if data := DATA_URL.match(url):
        return _checked(Part(raw=url[data.end() :], media_type=data[1] or "", filename=name), where)
    if not url.lower().startswith(("https://", "http://")) or len(url) > MAX_URL_CHARS:
        raise invalid(where, f"{where}: want a data: URL with base64, or an address of the web")
    return Part(url=check_printable(url, where), filename=name)


def _checked(part: Part, where: str) -> Part:
    check_content(part, where)
    return part
