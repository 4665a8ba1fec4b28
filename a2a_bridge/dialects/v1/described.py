"""The HTTP+JSON binding for the hub's public description: one operation for each address and HTTP method."""

from collections.abc import Mapping
from typing import Any, Literal, NotRequired, TypedDict

from a2a_bridge.cards.described import AGENT
from a2a_bridge.described_v1 import Card, KeptPush, Nothing, PushPage, Sent, StreamEvent, Task, TaskPage, of_v1
from a2a_bridge.dialects.v1 import params as v1_params
from kit.describe import CALLER, Answer, Operation, Parameter

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
    400: "It has the wrong form, or is against what is there; the message says which.",
    401: "No live credential came with it.",
    403: "The cookie came from another site.",
    404: "There is no such agent, task or address, or the task is not yours.",
    408: "The body did not come in time.",
    413: "The body is over the limit.",
    415: "Want Content-Type: application/json.",
    429: "You hold as many streams open as one may.",
    503: "The hub takes no questions right now; Retry-After says when to come back.",
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
) -> Operation:
    verb, _, path = call.partition(" ")
    left_out = (set() if verb == "post" else ONLY_OF_POST) | (set() if streams else ONLY_OF_STREAMS)
    left_out |= {403} if verb == "get" else set()
    good = Answer(shape=of_v1(answer), media_types=EVENTS) if streams else of_v1(answer)
    failures = {
        status: Answer(shape=of_v1(NotThere if status == 404 else Failure), text=text)
        for status, text in FAILURES.items()
        if status not in left_out
    }
    return Operation(
        method=verb,
        path=f"{AGENT}/{path}",
        name=name,
        summary=summary,
        text="A2A 1.0, binding HTTP+JSON; more in the reference, /demos/a2a/. Errors are google.rpc.Status.",
        tag="a2a",
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
        Sent,
        request=v1_params.SendParams,
    ),
    _operation(
        "post message:stream",
        "streamMessage",
        "Ask an agent, and follow the task as events.",
        StreamEvent,
        LAST_EVENT_ID,
        request=v1_params.SendParams,
        streams=True,
    ),
    _operation("get tasks", "listTasks", "Your tasks with an agent.", TaskPage, *LIST),
    _operation("get tasks/{task_id}", "getTask", "A task of yours.", Task, HISTORY),
    _operation("post tasks/{task_id}:cancel", "cancelTask", "End a task.", Task),
    _operation(
        "post tasks/{task_id}:subscribe",
        "subscribeToTask",
        "Follow a task.",
        StreamEvent,
        LAST_EVENT_ID,
        streams=True,
    ),
    _operation(
        "get tasks/{task_id}:subscribe",
        "followTask",
        "Follow a task, from a browser's EventSource, too.",
        StreamEvent,
        LAST_EVENT_ID,
        streams=True,
    ),
    _operation(
        f"post {PUSHES}",
        "createPushConfig",
        "Have a task's changes told to an address.",
        KeptPush,
        request=v1_params.PushConfig,
    ),
    _operation(f"get {PUSHES}", "listPushConfigs", "The push addresses of a task.", PushPage, *PAGE),
    _operation(f"get {PUSHES}/{{config_id}}", "getPushConfig", "A push address of a task.", KeptPush),
    _operation(f"delete {PUSHES}/{{config_id}}", "deletePushConfig", "Tell an address no more.", Nothing),
    _operation("get extendedAgentCard", "getExtendedAgentCard", "The agent's card for who may ask it.", Card),
)
