"""The bodies of completions and responses: what they may hold, and the one ask that their messages become."""

import hashlib
from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, NamedTuple

from msgspec import Meta, Struct
from msgspec.structs import replace

from a2a_bridge.wire.dialects.reading import (
    MAX_ID_CHARS,
    MAX_PARTS,
    check_printable,
    invalid,
    needs_of,
)
from a2a_bridge.wire.requests import Send
from a2a_bridge.wire.task import Message, Role
from agents.transcript.pieces import Part, question_of
from kit.ids import unguessable
from openai_api.wire.formats import (
    FlatSchemaFormat,
    ObjectFormat,
    ReplyFormat,
    SchemaFormat,
    TextFormat,
    read_format,
)
from openai_api.wire.parts import ContentPart, InputPart, RefusalPart, TextPart

MAX_MESSAGES = 1_000
MAX_MODEL_CHARS = 160
MODEL_PREFIX = "agent/"
ToolChoice = Literal["auto", "none"]


class ChatMessage(Struct, frozen=True):
    """One message of the conversation."""

    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[ContentPart] | None = None


class InputMessage(Struct, frozen=True):
    """One message of the conversation, for a response."""

    role: Literal["system", "developer", "user", "assistant"]
    content: str | list[InputPart]
    type: Literal["message"] = "message"


class AskedAnswer(NamedTuple):
    """The request in a body, the same for every address.

    `field`: the name of its messages; `instructions`: stand before them. `conversation`: the name of the one that
    the agent goes on with; or that of the answer with `previous_id`. `format`: of the reply; None for any text.
    """

    model: str
    field: str
    messages: Sequence[ChatMessage | InputMessage]
    is_stream: bool
    instructions: str = ""
    conversation: str = ""
    previous_id: str = ""
    format: ReplyFormat | None = None


class StreamOptions(Struct, frozen=True):
    """The options of a stream."""

    include_usage: bool = False


class ChatRequest(Struct, frozen=True):
    """A request for a completion. Other fields of OpenAI's API are accepted and have no effect.

    `model`: `agent/OWNER/SLUG`. `user`: names the conversation that the agent goes on with; the header
    `X-Conversation-Id` wins. `tool_choice`: the agent has its own tools, none can be demanded. `response_format`:
    of the reply, which is checked.
    """

    model: Annotated[str, Meta(min_length=1, max_length=MAX_MODEL_CHARS)]
    messages: Annotated[list[ChatMessage], Meta(min_length=1, max_length=MAX_MESSAGES)]
    stream: bool | None = None
    stream_options: StreamOptions | None = None
    user: Annotated[str, Meta(max_length=MAX_ID_CHARS)] | None = None
    tool_choice: ToolChoice | None = None
    n: Annotated[int, Meta(ge=1, le=1)] | None = None
    response_format: TextFormat | ObjectFormat | SchemaFormat | None = None

    @property
    def asked(self) -> AskedAnswer:
        """The request that the body makes."""
        conversation = check_printable(self.user or "", "user")
        is_stream = bool(self.stream)
        wanted = read_format(self.response_format, "response_format")
        return AskedAnswer(
            self.model, "messages", self.messages, is_stream, conversation=conversation, format=wanted
        )


class Conversation(Struct, frozen=True):
    """A conversation, by its name."""

    id: Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]


class ResponseTextOptions(Struct, frozen=True):
    """The options of the text of a response. `format`: of the reply, which is checked."""

    format: TextFormat | ObjectFormat | FlatSchemaFormat | None = None


class ResponseRequest(Struct, frozen=True):
    """A request for a response. Other fields of OpenAI's API are accepted and have no effect.

    `model`: `agent/OWNER/SLUG`. `instructions`: a message of the system before the others. `conversation`: names
    the one that the agent goes on with; the header `X-Conversation-Id` wins. `previous_response_id`: it goes on
    with that of an earlier answer. `tool_choice`: no tool can be demanded. `background`, `prompt`: not offered.
    """

    model: Annotated[str, Meta(min_length=1, max_length=MAX_MODEL_CHARS)]
    input: str | Annotated[list[InputMessage], Meta(min_length=1, max_length=MAX_MESSAGES)]
    instructions: str | None = None
    stream: bool | None = None
    conversation: Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)] | Conversation | None = None
    previous_response_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)] | None = None
    tool_choice: ToolChoice | None = None
    background: Literal[False] | None = None
    prompt: None = None
    text: ResponseTextOptions | None = None

    @property
    def asked(self) -> AskedAnswer:
        """The request that the body makes.

        Raises:
            RpcError: -32602, it names two conversations.
        """
        named = self.conversation.id if isinstance(self.conversation, Conversation) else self.conversation or ""
        if named and self.previous_response_id:
            raise invalid("previous_response_id", "previous_response_id: want it or conversation, not both")
        given = [InputMessage("user", self.input)] if isinstance(self.input, str) else self.input
        return AskedAnswer(
            self.model,
            "input",
            given,
            bool(self.stream),
            instructions=self.instructions or "",
            conversation=check_printable(named, "conversation"),
            previous_id=self.previous_response_id or "",
            format=read_format(self.text.format, "text.format") if self.text else None,
        )


def make_send(asked: AskedAnswer, conversation_id: str, key: str = "") -> Send:
    """The ask that the messages become.

    `key`: with the same one the same body is the same message; without one it is another each time.
    `conversation_id`: names what the agent remembers: it gets the messages after the last of the assistant
    alone. Without one the agent gets all messages, each with its role when there are several.

    Raises:
        RpcError: -32602, there is nothing to ask, or a file is not sound.
    """
    # Of a conversation the agent knows all up to the last message of the assistant.
    ends = (at for at in range(len(asked.messages), 0, -1) if asked.messages[at - 1].role == "assistant")
    since = next(ends, 0) if conversation_id else 0
    said = asked.messages[since:]
    texts = [(each.role, text_of(each)) for each in said]
    texts = [(role, text) for role, text in texts if text.strip()]
    if not texts or asked.messages[-1].role == "assistant":
        raise invalid(asked.field, f"{asked.field}: want text, and no message of the assistant at the end")
    if asked.instructions.strip():
        texts = [("system", asked.instructions), *texts]
    labeled = "\n\n".join(f"{role.capitalize()}: {text}" for role, text in texts)
    question = labeled if len(texts) > 1 else texts[0][1]
    if asked.format is not None:
        question = f"{question}\n\n{asked.format.instructions}"
    files = list(_files(asked, since))
    if len(files) >= MAX_PARTS:
        raise invalid(asked.field, f"{asked.field}: at most {MAX_PARTS - 1} images and files")
    parts = (Part(text=question), *(part for _, part in files))
    return Send(
        message=Message(_message_id(key), Role.USER, parts),
        question=question_of(parts, ""),
        parts=parts if files else (),
        needs=needs_of(files),
        context_id=conversation_id,
        waits=not asked.is_stream,
    )


def make_repair(send: Send, wanted: ReplyFormat, flaw: str, context_id: str, key: str) -> Send:
    """The ask for a better reply than the one to `send`, in the same conversation.

    `key`: see `make_send`; another one than that of `send`.
    """
    question = f"Your last answer does not have the format that was asked for: {flaw}\n\n{wanted.instructions}"
    message = Message(_message_id(key), Role.USER, (Part(text=question),))
    return replace(send, message=message, question=question, parts=(), needs=(), context_id=context_id)


def text_of(message: ChatMessage | InputMessage) -> str:
    """All text of a message."""
    content = message.content or ""
    if isinstance(content, str):
        return content
    said = [part for part in content if isinstance(part, TextPart | RefusalPart)]
    return "\n".join(part.text if isinstance(part, TextPart) else part.refusal for part in said)


def _message_id(key: str) -> str:
    return f"chat-{hashlib.sha256(key.encode()).hexdigest()[:32]}" if key else unguessable("chat-")


def _files(asked: AskedAnswer, since: int) -> Iterator[tuple[str, Part]]:
    """The images and files, each with its place in the body."""
    for number, message in enumerate(asked.messages[since:], since):
        if not isinstance(message.content, str | None):
            for at, part in enumerate(message.content):
                if not isinstance(part, TextPart | RefusalPart):
                    where = f"{asked.field}[{number}].content[{at}]"
                    yield where, part.read(where)
