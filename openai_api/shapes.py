"""What the surface sends: completions, chunks, models and errors, as OpenAI's API names them."""

from typing import Literal, NotRequired, TypedDict

from msgspec import Struct


class Reply(Struct, frozen=True, kw_only=True):
    """The answer of an agent."""

    role: Literal["assistant"] = "assistant"
    content: str
    refusal: None = None


class Choice(Struct, frozen=True, kw_only=True):
    """The one choice of a completion."""

    index: Literal[0] = 0
    message: Reply
    logprobs: None = None
    finish_reason: Literal["stop"]


class TokenUsage(Struct, frozen=True, kw_only=True):
    """The tokens that an agent reported for its turn."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class ChatCompletion(Struct, frozen=True, kw_only=True):
    """An answer. `id`: of the task, which can be read over A2A. `usage`: null where the agent reports none."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: TokenUsage | None = None


class Delta(Struct, frozen=True, omit_defaults=True):
    """What is new of the answer."""

    role: Literal["assistant", ""] = ""
    content: str | None = None


class ChunkChoice(Struct, frozen=True, kw_only=True):
    """The one choice of a chunk."""

    index: Literal[0] = 0
    delta: Delta
    logprobs: None = None
    finish_reason: Literal["stop"] | None = None


class Chunk(Struct, frozen=True, kw_only=True):
    """A piece of an answer; the one with the usage has no choices."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChunkChoice]
    usage: TokenUsage | None = None


class Model(Struct, frozen=True, kw_only=True):
    """An agent as a model: `agent/OWNER/SLUG`."""

    id: str
    object: Literal["model"] = "model"
    created: int
    owned_by: str


class ModelPage(Struct, frozen=True, kw_only=True):
    """The agents that the caller may ask, by handle. `has_more`: ask again with `after`, the last id."""

    object: Literal["list"] = "list"
    data: list[Model]
    has_more: bool


class ChatFault(TypedDict):
    """An error of OpenAI's API."""

    message: str
    type: str
    code: str
    param: NotRequired[str | None]


class ChatError(TypedDict):
    """A refusal or a failure."""

    error: ChatFault
