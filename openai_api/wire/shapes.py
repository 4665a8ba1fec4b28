"""The bodies that the surface sends: completions, responses, models and errors, as OpenAI's API names them."""

from typing import Literal, NotRequired, TypedDict

from msgspec import UNSET, Struct, UnsetType


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


class TokenUsage(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The tokens of a turn. `estimated`: by the hub, from the texts, as the agent reported none."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int
    estimated: bool = False


class ChatCompletion(Struct, frozen=True, kw_only=True):
    """An answer. `id`: of the task, which can be read over A2A."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[Choice]
    usage: TokenUsage


class Delta(Struct, frozen=True, omit_defaults=True):
    """The new part of the answer."""

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


class ResponseText(Struct, frozen=True, kw_only=True):
    """The text of an answer."""

    type: Literal["output_text"] = "output_text"
    text: str
    annotations: list[None] = []


class ResponseMessage(Struct, frozen=True, kw_only=True):
    """The one message of a response."""

    type: Literal["message"] = "message"
    id: str
    role: Literal["assistant"] = "assistant"
    status: Literal["in_progress", "completed"]
    content: list[ResponseText]


class CachedTokens(Struct, frozen=True):
    """Tokens of a cache, which agents do not report."""

    cached_tokens: Literal[0] = 0


class ReasoningTokens(Struct, frozen=True):
    """Tokens of reasoning, which agents do not report."""

    reasoning_tokens: Literal[0] = 0


class ResponseUsage(Struct, frozen=True, kw_only=True):
    """The tokens of a turn. `estimated`: by the hub, from the texts, as the agent reported none."""

    input_tokens: int
    input_tokens_details: CachedTokens = CachedTokens()
    output_tokens: int
    output_tokens_details: ReasoningTokens = ReasoningTokens()
    total_tokens: int
    estimated: bool | UnsetType = UNSET


class ResponseFailure(Struct, frozen=True):
    """The reason why a response that had begun has no answer."""

    code: str
    message: str


class ResponseConversation(Struct, frozen=True):
    """The conversation that a response belongs to: the contextId of its task."""

    id: str


class Response(Struct, frozen=True, kw_only=True):
    """An answer. `id`: of the task, which can be read over A2A. `usage`: null until the answer is complete."""

    id: str
    object: Literal["response"] = "response"
    created_at: int
    status: Literal["in_progress", "completed", "failed"]
    error: ResponseFailure | None = None
    incomplete_details: None = None
    instructions: None = None
    model: str
    output: list[ResponseMessage]
    parallel_tool_calls: Literal[True] = True
    temperature: None = None
    tool_choice: Literal["auto"] = "auto"
    tools: list[None] = []
    top_p: None = None
    metadata: dict[str, str] = {}
    previous_response_id: str | None = None
    conversation: ResponseConversation
    usage: ResponseUsage | None = None


class ResponseEvent(Struct, frozen=True, kw_only=True):
    """A piece of a response. The type of the event decides which fields the event has."""

    type: Literal[
        "response.created",
        "response.in_progress",
        "response.output_item.added",
        "response.content_part.added",
        "response.output_text.delta",
        "response.output_text.done",
        "response.content_part.done",
        "response.output_item.done",
        "response.completed",
        "response.failed",
        "error",
    ]
    sequence_number: int
    response: Response | UnsetType = UNSET
    item_id: str | UnsetType = UNSET
    output_index: Literal[0] | UnsetType = UNSET
    content_index: Literal[0] | UnsetType = UNSET
    item: ResponseMessage | UnsetType = UNSET
    part: ResponseText | UnsetType = UNSET
    delta: str | UnsetType = UNSET
    text: str | UnsetType = UNSET
    logprobs: list[None] | UnsetType = UNSET
    code: str | UnsetType = UNSET
    message: str | UnsetType = UNSET
    param: UnsetType | None = UNSET


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
