"""A2A 1.0: ProtoJSON in and out (docs/reference/methods.md). Fields may come in snake_case, enums as numbers."""

from typing import Any

from a2a_bridge.wire.dialects.dialect import Dialect, Operation, renders_alike
from a2a_bridge.wire.dialects.v1 import reading, shapes
from a2a_bridge.wire.dialects.v1.described import DESCRIPTION
from a2a_bridge.wire.errors import NAMES, OWN_CODES
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


def name_frame(task_id: str, seq: int) -> str:
    """The value that a client that comes back sends as Last-Event-ID."""
    return f"{task_id}.{seq}"


V1 = Dialect(
    name="1.0",
    versions=frozenset({"1", "1.0"}),
    bindings=("JSONRPC", "HTTP+JSON"),
    methods={
        "SendMessage": Operation.SEND,
        "SendStreamingMessage": Operation.STREAM,
        "GetTask": Operation.GET,
        "ListTasks": Operation.LIST,
        "CancelTask": Operation.CANCEL,
        "SubscribeToTask": Operation.SUBSCRIBE,
        "CreateTaskPushNotificationConfig": Operation.CREATE_PUSH,
        "GetTaskPushNotificationConfig": Operation.GET_PUSH,
        "ListTaskPushNotificationConfigs": Operation.LIST_PUSH,
        "DeleteTaskPushNotificationConfig": Operation.DELETE_PUSH,
        "GetExtendedAgentCard": Operation.SHOW_CARD,
    },
    description=DESCRIPTION,
    replays=True,
    read=reading.read_request,
    render_task=shapes.render_task,
    render_answer=shapes.render_answer,
    render_opening=shapes.render_opening,
    follow=renders_alike(shapes.render_event),
    render_message=shapes.render_message,
    render_page=shapes.render_page,
    render_push=shapes.render_push,
    render_push_page=shapes.render_push_page,
    frame_id=name_frame,
    error=add_details,
)
