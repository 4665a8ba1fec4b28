"""The bridge for the hub's public description: cards, and JSON-RPC by POST."""

from typing import Any, Literal, NotRequired, TypedDict

from msgspec import Struct

from a2a_bridge.cards.described import AGENT
from a2a_bridge.cards.described import OPERATIONS as CARDS
from a2a_bridge.dialects.hub import GetTaskParams, SendMessageParams
from a2a_bridge.dialects.v03.described import EVENTS, V03_ANSWERS, V03_REQUEST, V1_ANSWERS, V1_REQUEST
from kit.describe import CALLER, Answer, Either, Family, Operation, Parameter, Time

Id = str | int | None


class Request(Struct, tag_field="method"):
    """A JSON-RPC request; `method` says which."""

    jsonrpc: Literal["2.0"]
    id: Id


class SendMessage(Request, tag="SendMessage"):
    """Ask, and get the finished task."""

    params: SendMessageParams


class SendStreamingMessage(Request, tag="SendStreamingMessage"):
    """Ask, and follow the task as events."""

    params: SendMessageParams


class GetTask(Request, tag="GetTask"):
    """Look at a task again."""

    params: GetTaskParams


class TaskText(TypedDict):
    """A part of a message."""

    text: str


class TaskMessage(TypedDict):
    """What was said."""

    messageId: str
    role: Literal["ROLE_USER", "ROLE_AGENT"]
    parts: list[TaskText]


class TaskStatus(TypedDict):
    """Where a task stands; `message` says why it failed, or what the agent asks back."""

    state: Literal["WORKING", "INPUT_REQUIRED", "AUTH_REQUIRED", "COMPLETED", "FAILED", "CANCELED", "REJECTED"]
    timestamp: Time
    message: NotRequired[TaskMessage]


class Task(TypedDict):
    """A question and what became of it; `contextId` repeats the question's messageId."""

    id: str
    contextId: str
    status: TaskStatus
    history: NotRequired[list[TaskMessage]]


class StreamEvent(TypedDict):
    """One event of a stream: the task as it began, a piece of its reply or a note on the way, or its end."""

    task: Task


class RpcFault(TypedDict):
    """Code and sentence of a JSON-RPC error."""

    code: int
    message: str
    data: NotRequired[Any]


class RpcAnswer(TypedDict):
    """A task, also for a refusal, which is a FAILED one; or an error, for a broken request."""

    jsonrpc: Literal["2.0"]
    id: Id
    result: NotRequired[Task]
    error: NotRequired[RpcFault]


class RpcFailure(TypedDict):
    """The answer to a request that did not get as far as its method."""

    jsonrpc: Literal["2.0"]
    id: Id
    error: RpcFault


class NoSuchAgent(TypedDict):
    """A JSON-RPC error; for an address that no agent can have, the native API's `{error, message}`."""

    error: RpcFault | str
    message: NotRequired[str]
    jsonrpc: NotRequired[Literal["2.0"]]
    id: NotRequired[Id]


VERSION = Parameter(
    name="A2A-Version",
    place="header",
    shape=Literal["1.0", "0.3"],
    text="`1.0`: A2A 1.0. None or `0.3`: A2A 0.3 for methods with a slash, the hub's own dialect for the others.",
)


def _failure(text: str) -> Answer:
    return Answer(shape=RpcFailure, text=text)


HUB_REQUEST = Family("", SendMessage | SendStreamingMessage | GetTask, "the hub's own dialect")
OPERATIONS = (
    Operation(
        method="post",
        path=AGENT,
        name="ask",
        summary="Ask an agent: one JSON-RPC request, one answer or a stream of events.",
        text="The dialect follows from A2A-Version and the method's name. Methods, parameters and codes are in the"
        " reference, /demos/a2a/, and as text in /llms.txt. Errors are JSON-RPC's.",
        tag="a2a",
        security=CALLER,
        request=Either([HUB_REQUEST, V1_REQUEST, V03_REQUEST]),
        parameters=[VERSION],
        adds_errors=False,
        answers={
            200: Answer(
                shape=Either([RpcAnswer, *V1_ANSWERS, *V03_ANSWERS]),
                streams=Either([StreamEvent, RpcFailure, *EVENTS.shapes]),
                text="What the method gives, or an error; some methods answer with a stream.",
            ),
            401: _failure("No live credential came with it."),
            403: _failure("The cookie came from another site."),
            404: Answer(shape=NoSuchAgent, text="There is no such agent."),
            408: _failure("The body did not come in time."),
            413: _failure("The body is over the limit."),
            415: _failure("Want Content-Type: application/json."),
            429: _failure("You hold as many streams open as one may."),
            503: _failure("The hub takes no questions right now; Retry-After says when to come back."),
        },
    ),
    *CARDS,
)
