"""A2A 1.0: ProtoJSON in and out (docs/reference/methods.md). Fields may come in snake_case, enums as numbers."""

from dataclasses import replace
from functools import partial
from typing import Any, TypedDict

from a2a_bridge.wire.dialects.dialect import (
    SAMPLE_CONFIG_ID,
    SAMPLE_MESSAGE,
    SAMPLE_PUSH_TOKEN,
    SAMPLE_PUSH_URL,
    SAMPLE_RATING,
    SAMPLE_TASK_ID,
    Description,
    Dialect,
    Method,
    Operation,
    Rpc,
    by_name,
    renders_alike,
    version_header,
)
from a2a_bridge.wire.dialects.reading import RateParams, read_rate
from a2a_bridge.wire.dialects.v1 import shapes
from a2a_bridge.wire.dialects.v1.params import (
    ListParams,
    ListPushParams,
    NamePushParams,
    PushConfig,
    SendParams,
    TaskParams,
    read_cancel,
    read_create_push,
    read_get,
    read_list,
    read_list_push,
    read_name_push,
    read_send,
    read_show_card,
    read_stream,
    read_subscribe,
)
from a2a_bridge.wire.errors import NAMES, OWN_CODES, PUSH_NOTIFICATION_NOT_SUPPORTED, UNSUPPORTED_OPERATION
from a2a_bridge.wire.requests import Request, Send
from agents.transcript.pieces import Json
from kit.describe import Family
from kit.jsonrpc import INVALID_PARAMS, RpcError

DOMAIN = "a2a-protocol.org"
OWN_DOMAIN = "clawbridge"


def add_details(error: RpcError) -> RpcError:
    """Add `data` to an error: google.rpc ErrorInfo, and for parameters the field."""
    if error.data is None:
        error.data = _details_of(error)
    return error


def _details_of(error: RpcError) -> list[dict[str, Any]]:
    info = {
        "@type": "type.googleapis.com/google.rpc.ErrorInfo",
        "reason": NAMES.get(error.code, "ERROR"),
        "domain": OWN_DOMAIN if error.code in OWN_CODES else DOMAIN,
        "metadata": {},
    }
    if error.code != INVALID_PARAMS:
        return [info]
    violation = {"field": error.field or "params", "description": error.message}
    return [info, {"@type": "type.googleapis.com/google.rpc.BadRequest", "fieldViolations": [violation]}]


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
    """An empty answer: the operation is done."""


ASKED, NAMED = {"message": SAMPLE_MESSAGE}, {"id": SAMPLE_TASK_ID}
RATED = {**NAMED, **SAMPLE_RATING}
PUSH_NAMED = {"taskId": SAMPLE_TASK_ID, "id": SAMPLE_CONFIG_ID}
METHODS = by_name(
    Method("SendMessage", Operation.SEND, read_send, params=SendParams, sample=ASKED),
    Method("SendStreamingMessage", Operation.STREAM, read_stream, params=SendParams, sample=ASKED),
    Method("GetTask", Operation.GET, read_get, params=TaskParams, sample=NAMED),
    Method("ListTasks", Operation.LIST, read_list, params=ListParams, sample={"pageSize": 10}, needs_params=False),
    Method("CancelTask", Operation.CANCEL, read_cancel, params=TaskParams, sample=NAMED),
    Method("RateTask", Operation.RATE, read_rate, params=RateParams, sample=RATED),
    Method("SubscribeToTask", Operation.SUBSCRIBE, read_subscribe, params=TaskParams, sample=NAMED),
    Method(
        "CreateTaskPushNotificationConfig",
        Operation.CREATE_PUSH,
        read_create_push,
        params=PushConfig,
        sample={"taskId": SAMPLE_TASK_ID, "url": SAMPLE_PUSH_URL, "token": SAMPLE_PUSH_TOKEN},
        shape="CreatePush",
    ),
    Method(
        "GetTaskPushNotificationConfig",
        Operation.GET_PUSH,
        read_name_push,
        params=NamePushParams,
        sample=PUSH_NAMED,
        shape="GetPush",
    ),
    Method(
        "ListTaskPushNotificationConfigs",
        Operation.LIST_PUSH,
        read_list_push,
        params=ListPushParams,
        sample={"taskId": SAMPLE_TASK_ID},
        shape="ListPushes",
    ),
    Method(
        "DeleteTaskPushNotificationConfig",
        Operation.DELETE_PUSH,
        read_name_push,
        params=NamePushParams,
        sample=PUSH_NAMED,
        shape="DeletePush",
    ),
    Method("GetExtendedAgentCard", Operation.SHOW_CARD, read_show_card, needs_params=False, shape="GetCard"),
)
ANSWERS = (
    Rpc[shapes.Sent],
    Rpc[shapes.Task],
    Rpc[shapes.TaskPage],
    Rpc[shapes.KeptPush],
    Rpc[shapes.PushPage],
    Rpc[Card],
    Rpc[Nothing],
)
of_v1 = partial(Family, "V1.", title="A2A 1.0")
V1 = Dialect(
    name="1.0",
    versions=frozenset({"1", "1.0"}),
    headers=version_header("1.0"),
    bindings=("JSONRPC", "HTTP+JSON"),
    methods=METHODS,
    description=Description(
        title="A2A 1.0",
        header="1.0",
        about="What the official SDKs 1.x speak, and all there is: follow-ups, cancel, lists, replay, push. Names"
        " may come in snake_case and enums as numbers; answers are camelCase and names.",
        family=of_v1,
        answers=[*map(of_v1, ANSWERS)],
        events=[of_v1(Rpc[shapes.StreamEvent])],
    ),
    replays=True,
    render_task=shapes.render_task,
    render_answer=shapes.render_answer,
    render_opening=shapes.render_opening,
    follow=renders_alike(shapes.render_event),
    render_message=shapes.render_message,
    render_page=shapes.render_page,
    render_push=shapes.render_push,
    render_push_page=shapes.render_push_page,
    error=add_details,
)


# The dialect of the address that the merged card names: no push notifications, no extended card (docs/adr/0041).
CORE = "core"  # the last segment of the address, below the agent's base
PUSHES = frozenset({Operation.CREATE_PUSH, Operation.GET_PUSH, Operation.LIST_PUSH, Operation.DELETE_PUSH})
INSTEAD = "a card that is fetched with A2A-Version: 1.0 names an address that has"


def _in_core(method: Method) -> Method:
    """The method at the core address, where its reader raises -32003 or -32004 for what the merged card denies."""

    def read(params: Any) -> Request:
        if method.operation in PUSHES:
            raise _no_push()
        if method.operation is Operation.SHOW_CARD:
            raise RpcError(UNSUPPORTED_OPERATION, f"no extended card here: {INSTEAD} one")
        request = method.read(params)
        if isinstance(request, Send) and request.push is not None:
            raise _no_push()
        return request

    return replace(method, read=read)


def _no_push() -> RpcError:
    return RpcError(PUSH_NOTIFICATION_NOT_SUPPORTED, f"no push notifications here: {INSTEAD} them")


V1_CORE = replace(V1, methods=by_name(*map(_in_core, METHODS.values())))
