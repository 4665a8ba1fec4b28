"""JSON-RPC requests and answers of A2A 1.0 and 0.3, for the hub's public description."""

from typing import Any, Generic, Literal, NotRequired, TypedDict, TypeVar

from msgspec import Struct

from a2a_bridge import described_v1 as v1
from a2a_bridge.described_v1 import of_v1
from a2a_bridge.dialects.v03 import params as v03_params
from a2a_bridge.dialects.v1 import params as v1_params
from kit.describe import Either, Family, Time

Id = str | int | None
Result = TypeVar("Result")


class Rpc(TypedDict, Generic[Result]):
    """A JSON-RPC answer that is no error."""

    jsonrpc: Literal["2.0"]
    id: Id
    result: Result


class Request(Struct, tag_field="method"):
    """A JSON-RPC request; `method` says which."""

    jsonrpc: Literal["2.0"]
    id: Id


class SendMessage(Request, tag="SendMessage"):
    """Ask, and get the finished task."""

    params: v1_params.SendParams


class SendStreamingMessage(Request, tag="SendStreamingMessage"):
    """Ask, and follow the task as events."""

    params: v1_params.SendParams


class GetTask(Request, tag="GetTask"):
    """Look at a task again."""

    params: v1_params.TaskParams


class ListTasks(Request, tag="ListTasks"):
    """One's tasks with this agent."""

    params: v1_params.ListParams = v1_params.ListParams()


class CancelTask(Request, tag="CancelTask"):
    """End a task."""

    params: v1_params.TaskParams


class SubscribeToTask(Request, tag="SubscribeToTask"):
    """Follow a task."""

    params: v1_params.TaskParams


class CreatePush(Request, tag="CreateTaskPushNotificationConfig"):
    """Have a task's changes told to an address."""

    params: v1_params.PushConfig


class GetPush(Request, tag="GetTaskPushNotificationConfig"):
    """A push address of a task."""

    params: v1_params.NamePushParams


class ListPushes(Request, tag="ListTaskPushNotificationConfigs"):
    """The push addresses of a task."""

    params: v1_params.ListPushParams


class DeletePush(Request, tag="DeleteTaskPushNotificationConfig"):
    """Tell an address no more."""

    params: v1_params.NamePushParams


class GetCard(Request, tag="GetExtendedAgentCard"):
    """The agent's card for who may ask it."""


class OldSend(Request, tag="message/send"):
    """Ask, and get the reply or the finished task."""

    params: v03_params.SendParams


class OldStream(Request, tag="message/stream"):
    """Ask, and follow what comes of it as events."""

    params: v03_params.SendParams


class OldGet(Request, tag="tasks/get"):
    """Look at a task again."""

    params: v03_params.TaskParams


class OldCancel(Request, tag="tasks/cancel"):
    """End a task."""

    params: v03_params.TaskParams


class OldResubscribe(Request, tag="tasks/resubscribe"):
    """Follow a task."""

    params: v03_params.TaskParams


class OldCard(Request, tag="agent/getAuthenticatedExtendedCard"):
    """There is none for callers of 0.3."""


class OldMessage(TypedDict):
    """What was said; a reply that is no task."""

    kind: Literal["message"]
    messageId: str
    role: Literal["user", "agent"]
    parts: list[dict[str, Any]]
    contextId: NotRequired[str]
    taskId: NotRequired[str]


class OldStatus(TypedDict):
    """Where a task stands."""

    state: str
    timestamp: Time
    message: NotRequired[OldMessage]


class OldTask(TypedDict):
    """A question and what became of it."""

    kind: Literal["task"]
    id: str
    contextId: str
    status: OldStatus
    artifacts: NotRequired[list[dict[str, Any]]]
    history: NotRequired[list[OldMessage]]


class OldUpdate(TypedDict):
    """A task's state changed, or an artifact of it did."""

    kind: Literal["status-update", "artifact-update"]
    taskId: str
    contextId: str
    status: NotRequired[OldStatus]
    artifact: NotRequired[dict[str, Any]]


def of_v03(shape: Any) -> Family:
    """A shape of A2A 0.3."""
    return Family("V03.", shape, "A2A 0.3")


V1_REQUEST = of_v1(
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
)
V03_REQUEST = of_v03(OldSend | OldStream | OldGet | OldCancel | OldResubscribe | OldCard)
V1_ANSWERS = [
    of_v1(Rpc[v1.Sent]),
    of_v1(Rpc[v1.Task]),
    of_v1(Rpc[v1.TaskPage]),
    of_v1(Rpc[v1.KeptPush]),
    of_v1(Rpc[v1.PushPage]),
    of_v1(Rpc[v1.Card]),
    of_v1(Rpc[v1.Nothing]),
]
V03_ANSWERS = [of_v03(Rpc[OldMessage]), of_v03(Rpc[OldTask])]
EVENTS = Either([of_v1(Rpc[v1.StreamEvent]), *V03_ANSWERS, of_v03(Rpc[OldUpdate])])
