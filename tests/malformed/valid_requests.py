"""A sound request for every method of every dialect and every address: what the mutations begin with."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from lab.callers import Json

Binding = Literal["JSON-RPC", "HTTP+JSON"]
URL = "https://192.0.2.1/hook"


@dataclass(frozen=True, slots=True, kw_only=True)
class ValidRequest:
    """One kind of call. `version`: its A2A-Version, if any; `verb` and `path` of HTTP+JSON; `strict`: members of
    which each wrong value must be refused.
    """

    binding: Binding
    dialect: str
    name: str
    params: Json
    version: str = "1.0"
    verb: str = "POST"
    path: str = ""
    asks: bool = False
    streams: bool = False
    strict: frozenset[str] = frozenset()


def message_of_v1(n: int) -> Json:
    return {
        "messageId": f"m-{n}",
        "role": "ROLE_USER",
        "parts": [
            {"text": "q", "metadata": {"k": 1}},
            {"data": {"a": [1]}, "mediaType": "application/json"},
            {"text": mark(n)},
        ],
        "contextId": f"c-{n}",
        "metadata": {"a": {"b": 1}},
        "extensions": ["https://x.example/e"],
        "referenceTaskIds": ["task-x"],
    }


def mark(n: int) -> str:
    """The text by which a question is recognised at the agent."""
    return f"case-{n}."


def of_v1(n: int, task_id: str) -> dict[str, Json]:
    """Params by method."""
    asked = {
        "message": message_of_v1(n),
        "configuration": {"acceptedOutputModes": ["text/plain"], "historyLength": 3, "returnImmediately": False},
        "metadata": {"k": 1},
        "tenant": "",
    }
    named = {"id": task_id, "tenant": ""}
    push = {"taskId": task_id, "id": f"p-{n}"}
    authentication = {"scheme": "Bearer", "credentials": "c"}
    return {
        "SendMessage": asked,
        "SendStreamingMessage": asked,
        "GetTask": named | {"historyLength": 2},
        "ListTasks": {
            "contextId": "c-1",
            "status": "TASK_STATE_COMPLETED",
            "pageSize": 2,
            "pageToken": "",
            "historyLength": 0,
            "statusTimestampAfter": "2026-01-02T03:04:05.678Z",
            "includeArtifacts": False,
        },
        "CancelTask": named | {"metadata": {}},
        "SubscribeToTask": named,
        "CreateTaskPushNotificationConfig": push | {"url": URL, "token": "t", "authentication": authentication},
        "GetTaskPushNotificationConfig": push,
        "ListTaskPushNotificationConfigs": {"taskId": task_id, "pageSize": 2, "pageToken": ""},
        "DeleteTaskPushNotificationConfig": push,
        "GetExtendedAgentCard": {},
    }


def of_hub(n: int, task_id: str) -> dict[str, Json]:
    """Params by method."""
    parts = [{"text": "q", "metadata": {"k": 1}}, {"data": {"a": 1}}, {"text": mark(n)}]
    asked = {"message": {"messageId": f"m-{n}", "role": "ROLE_USER", "parts": parts, "metadata": {}}}
    return {"SendMessage": asked, "SendStreamingMessage": asked, "GetTask": {"id": task_id}}


def of_v03(n: int, task_id: str) -> dict[str, Json]:
    """Params by method."""
    message = {
        "kind": "message",
        "messageId": f"m-{n}",
        "role": "user",
        "parts": [
            {"kind": "text", "text": "q"},
            {"kind": "data", "data": {"a": 1}},
            {"kind": "text", "text": mark(n)},
        ],
        "contextId": f"c-{n}",
        "metadata": {"k": 1},
    }
    configuration = {"acceptedOutputModes": [], "historyLength": 3, "blocking": True}
    asked = {"message": message, "configuration": configuration, "metadata": {}}
    target = {"id": "p", "url": URL, "authentication": {"schemes": ["Bearer"]}}
    return {
        "message/send": asked,
        "message/stream": asked,
        "tasks/get": {"id": task_id, "historyLength": 2, "metadata": {}},
        "tasks/cancel": {"id": task_id},
        "tasks/resubscribe": {"id": task_id},
        "tasks/pushNotificationConfig/set": {"taskId": task_id, "pushNotificationConfig": target},
        "tasks/pushNotificationConfig/get": {"id": task_id},
        "agent/getAuthenticatedExtendedCard": {},
    }


STRICT: Mapping[str, frozenset[str]] = {
    "asks": frozenset({"jsonrpc", "method", "message", "message.messageId", "message.role", "message.parts"}),
    "names": frozenset({"jsonrpc", "method", "id", "taskId", "url"}),
}
ASKS = {"SendMessage", "SendStreamingMessage", "message/send", "message/stream"}
STREAMS = {"SendStreamingMessage", "SubscribeToTask", "message/stream", "tasks/resubscribe"}
PATHS: Mapping[str, tuple[str, str]] = {
    "SendMessage": ("POST", "message:send"),
    "SendStreamingMessage": ("POST", "message:stream"),
    "GetTask": ("GET", "tasks/{id}"),
    "ListTasks": ("GET", "tasks"),
    "CancelTask": ("POST", "tasks/{id}:cancel"),
    "SubscribeToTask": ("POST", "tasks/{id}:subscribe"),
    "CreateTaskPushNotificationConfig": ("POST", "tasks/{taskId}/pushNotificationConfigs"),
    "GetTaskPushNotificationConfig": ("GET", "tasks/{taskId}/pushNotificationConfigs/{id}"),
    "ListTaskPushNotificationConfigs": ("GET", "tasks/{taskId}/pushNotificationConfigs"),
    "DeleteTaskPushNotificationConfig": ("DELETE", "tasks/{taskId}/pushNotificationConfigs/{id}"),
    "GetExtendedAgentCard": ("GET", "extendedAgentCard"),
}


def rpc(dialect: str, name: str, params: Json) -> ValidRequest:
    """A JSON-RPC call."""
    return ValidRequest(
        binding="JSON-RPC",
        dialect=dialect,
        name=name,
        params=params,
        version="1.0" if dialect == "1.0" else "",
        asks=name in ASKS,
        streams=name in STREAMS,
        strict=STRICT["asks" if name in ASKS else "names"],
    )


def http(name: str, params: Json) -> ValidRequest:
    """A call of HTTP+JSON, its params parted as its address wants them."""
    verb, path = PATHS[name]
    rest = {one: value for one, value in params.items() if f"{{{one}}}" not in path}
    return ValidRequest(
        binding="HTTP+JSON",
        dialect="1.0",
        name=name,
        params=rest,
        verb=verb,
        path=path.format_map(params),
        asks=name in ASKS,
        streams=name in STREAMS,
        strict=STRICT["asks" if name in ASKS else "names"] - {"jsonrpc", "method"},
    )


def all_valid(n: int, task_id: str) -> list[ValidRequest]:
    """One call of each kind; `n` marks its question, `task_id` is a finished task of the caller's."""
    v1 = of_v1(n, task_id)
    return [
        *(rpc("hub", name, params) for name, params in of_hub(n, task_id).items()),
        *(rpc("0.3", name, params) for name, params in of_v03(n, task_id).items()),
        *(rpc("1.0", name, params) for name, params in v1.items()),
        *(http(name, params) for name, params in v1.items()),
    ]


def shown(path: tuple[Any, ...]) -> str:
    """A path in a body as people write it."""
    return ".".join(str(step) for step in path)
