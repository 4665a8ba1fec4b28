"""A2A 1.0 for the developer reference and the public description: JSON-RPC, and the binding HTTP+JSON."""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from a2a_bridge.wire.dialects.dialect import (
    AGENT,
    SAMPLE_CONFIG_ID,
    SAMPLE_MESSAGE,
    SAMPLE_PUSH_TOKEN,
    SAMPLE_PUSH_URL,
    SAMPLE_TASK_ID,
    Description,
    Operation,
    Rpc,
    RpcRequest,
)
from a2a_bridge.wire.dialects.v1 import shapes
from a2a_bridge.wire.dialects.v1.params import (
    ListParams,
    ListPushParams,
    NamePushParams,
    PushConfig,
    SendParams,
    TaskParams,
)
from kit import describe
from kit.describe import CALLER, DescribedAnswer, Family, Parameter

Json = dict[str, Any]
EVENTS = ("text/event-stream",)
VERSION = Parameter(
    name="A2A-Version", place="header", required=True, shape=Literal["1.0"], text="May stand in the query, too."
)
LAST_EVENT_ID = Parameter(name="Last-Event-ID", place="header", text="The last event seen: `<taskId>.<seq>`.")
HISTORY = Parameter(name="historyLength", shape=int, text="The most recent messages; 0: none.")
PAGE = (Parameter(name="pageSize", shape=int, text="1 to 100."), Parameter(name="pageToken"))
LIST = (
    Parameter(name="contextId"),
    Parameter(name="status", text="A `TASK_STATE_` name."),
    *PAGE,
    HISTORY,
    Parameter(name="statusTimestampAfter", text="RFC 3339, inclusive."),
    Parameter(name="includeArtifacts", shape=bool),
)


class Interface(TypedDict):
    """One way to call an agent."""

    url: str
    protocolBinding: str
    protocolVersion: str


class Card(TypedDict):
    """An AgentCard; these members and those of the specification."""

    name: str
    description: str
    version: str
    supportedInterfaces: list[Interface]
    capabilities: Json
    skills: list[Json]


class Nothing(TypedDict):
    """It is done."""


def of_v1(shape: Any) -> Family:
    """A shape of A2A 1.0."""
    return Family("V1.", shape, "A2A 1.0")


class SendMessage(RpcRequest, tag="SendMessage"):
    """Ask, and get the finished task."""

    params: SendParams


class SendStreamingMessage(RpcRequest, tag="SendStreamingMessage"):
    """Ask, and follow the task as events."""

    params: SendParams


class GetTask(RpcRequest, tag="GetTask"):
    """Look at a task again."""

    params: TaskParams


class ListTasks(RpcRequest, tag="ListTasks"):
    """One's tasks with this agent."""

    params: ListParams = ListParams()


class CancelTask(RpcRequest, tag="CancelTask"):
    """End a task."""

    params: TaskParams


class SubscribeToTask(RpcRequest, tag="SubscribeToTask"):
    """Follow a task."""

    params: TaskParams


class CreatePush(RpcRequest, tag="CreateTaskPushNotificationConfig"):
    """Have a task's changes told to an address."""

    params: PushConfig


class GetPush(RpcRequest, tag="GetTaskPushNotificationConfig"):
    """A push address of a task."""

    params: NamePushParams


class ListPushes(RpcRequest, tag="ListTaskPushNotificationConfigs"):
    """The push addresses of a task."""

    params: ListPushParams


class DeletePush(RpcRequest, tag="DeleteTaskPushNotificationConfig"):
    """Tell an address no more."""

    params: NamePushParams


class GetCard(RpcRequest, tag="GetExtendedAgentCard"):
    """The agent's card for who may ask it."""


class Fault(TypedDict):
    """An error as google.rpc.Status: `code` is the HTTP status, `details` begin with an ErrorInfo."""

    code: int
    status: str
    message: str
    details: list[dict[str, Any]]


class Failure(TypedDict):
    """What went wrong."""

    error: Fault


class NotThere(TypedDict):
    """An error; for an address that no agent can have, the native API's `{error, message}`."""

    error: Fault | str
    message: NotRequired[str]


FAILURES: Mapping[int, str] = {
    **describe.COMMON_FAILURES,
    400: "It has the wrong form, or is against what is there; the message says which.",
    404: "There is no such agent, task or address, or the task is not yours.",
}
ONLY_OF_POST = {413, 415}
ONLY_OF_STREAMS = {429}


def _operation(
    call: str,
    name: str,
    summary: str,
    answer: Any,
    *parameters: Parameter,
    request: Any = None,
    streams: bool = False,
) -> describe.Operation:
    verb, _, path = call.partition(" ")
    left_out = (set() if verb == "post" else ONLY_OF_POST) | (set() if streams else ONLY_OF_STREAMS)
    left_out |= {403} if verb == "get" else set()
    good = DescribedAnswer(shape=of_v1(answer), media_types=EVENTS) if streams else of_v1(answer)
    failures = {
        status: DescribedAnswer(shape=of_v1(NotThere if status == 404 else Failure), text=text)
        for status, text in FAILURES.items()
        if status not in left_out
    }
    return describe.Operation(
        method=verb,
        path=f"{AGENT}/{path}",
        name=name,
        summary=summary,
        text="A2A 1.0, binding HTTP+JSON; more in the reference, /demos/a2a/. Errors are google.rpc.Status.",
        tag="a2a-http",
        security=CALLER,
        request=None if request is None else of_v1(request),
        parameters=(VERSION, *parameters),
        adds_errors=False,
        answers={200: good, **failures},
    )


PUSHES = "tasks/{task_id}/pushNotificationConfigs"
OPERATIONS = (
    _operation(
        "post message:send",
        "sendMessage",
        "Ask an agent: its task, ended unless `returnImmediately`.",
        shapes.Sent,
        request=SendParams,
    ),
    _operation(
        "post message:stream",
        "streamMessage",
        "Ask an agent, and follow the task as events.",
        shapes.StreamEvent,
        LAST_EVENT_ID,
        request=SendParams,
        streams=True,
    ),
    _operation("get tasks", "listTasks", "Your tasks with an agent.", shapes.TaskPage, *LIST),
    _operation("get tasks/{task_id}", "getTask", "A task of yours.", shapes.Task, HISTORY),
    _operation("post tasks/{task_id}:cancel", "cancelTask", "End a task.", shapes.Task),
    _operation(
        "post tasks/{task_id}:subscribe",
        "subscribeToTask",
        "Follow a task.",
        shapes.StreamEvent,
        LAST_EVENT_ID,
        streams=True,
    ),
    _operation(
        "get tasks/{task_id}:subscribe",
        "followTask",
        "Follow a task, from a browser's EventSource, too.",
        shapes.StreamEvent,
        LAST_EVENT_ID,
        streams=True,
    ),
    _operation(
        f"post {PUSHES}",
        "createPushConfig",
        "Have a task's changes told to an address.",
        shapes.KeptPush,
        request=PushConfig,
    ),
    _operation(f"get {PUSHES}", "listPushConfigs", "The push addresses of a task.", shapes.PushPage, *PAGE),
    _operation(f"get {PUSHES}/{{config_id}}", "getPushConfig", "A push address of a task.", shapes.KeptPush),
    _operation(f"delete {PUSHES}/{{config_id}}", "deletePushConfig", "Tell an address no more.", Nothing),
    _operation("get extendedAgentCard", "getExtendedAgentCard", "The agent's card for who may ask it.", Card),
)

DESCRIPTION = Description(
    title="A2A 1.0",
    header="1.0",
    about="What the official SDKs 1.x speak, and all there is: follow-ups, cancel, lists, replay, push. Names may"
    " come in snake_case and enums as numbers; answers are camelCase and names.",
    params={
        Operation.SEND: SendParams,
        Operation.STREAM: SendParams,
        Operation.GET: TaskParams,
        Operation.LIST: ListParams,
        Operation.CANCEL: TaskParams,
        Operation.SUBSCRIBE: TaskParams,
        Operation.CREATE_PUSH: PushConfig,
        Operation.GET_PUSH: NamePushParams,
        Operation.LIST_PUSH: ListPushParams,
        Operation.DELETE_PUSH: NamePushParams,
    },
    samples={
        Operation.SEND: {"message": SAMPLE_MESSAGE},
        Operation.STREAM: {"message": SAMPLE_MESSAGE},
        Operation.GET: {"id": SAMPLE_TASK_ID},
        Operation.LIST: {"pageSize": 10},
        Operation.CANCEL: {"id": SAMPLE_TASK_ID},
        Operation.SUBSCRIBE: {"id": SAMPLE_TASK_ID},
        Operation.CREATE_PUSH: {"taskId": SAMPLE_TASK_ID, "url": SAMPLE_PUSH_URL, "token": SAMPLE_PUSH_TOKEN},
        Operation.GET_PUSH: {"taskId": SAMPLE_TASK_ID, "id": SAMPLE_CONFIG_ID},
        Operation.LIST_PUSH: {"taskId": SAMPLE_TASK_ID},
        Operation.DELETE_PUSH: {"taskId": SAMPLE_TASK_ID, "id": SAMPLE_CONFIG_ID},
    },
    requests=of_v1(
        SendMessage
        | SendStreamingMessage
        | GetTask
        | ListTasks
        | CancelTask
        | SubscribeToTask
        | CreatePush
        | GetPush
        | ListPushes
        | DeletePush
        | GetCard
    ),
    answers=[
        of_v1(Rpc[shapes.Sent]),
        of_v1(Rpc[shapes.Task]),
        of_v1(Rpc[shapes.TaskPage]),
        of_v1(Rpc[shapes.KeptPush]),
        of_v1(Rpc[shapes.PushPage]),
        of_v1(Rpc[Card]),
        of_v1(Rpc[Nothing]),
    ],
    events=[of_v1(Rpc[shapes.StreamEvent])],
    operations=OPERATIONS,
)
