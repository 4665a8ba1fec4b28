"""A2A 1.0: ProtoJSON in and out (docs/reference/methods.md). Fields may come in snake_case, enums as numbers."""

from collections.abc import Mapping, Sequence
from typing import Any

from a2a_bridge.dialects.dialect import Operation
from a2a_bridge.dialects.v1 import reading as v1_reading
from a2a_bridge.dialects.v1 import shapes as v1_shapes
from a2a_bridge.dialects.v1.errors import with_details
from a2a_bridge.requests import Get, List, PushTarget, Request, Send
from a2a_bridge.tasks.record import Message, StatusEvent, Task, TaskEvent
from a2a_bridge.tasks.store import TaskPage
from agents.transcript.pieces import Json
from kit.jsonrpc import RpcError


class V1Dialect:
    """See `a2a_bridge.dialects.dialect.Dialect`."""

    name = "1.0"
    methods: Mapping[str, Operation] = {
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
    }
    streams_errors = False
    has_envelope = True
    passes_ended = False
    replays = True

    def read(self, operation: Operation, params: Any) -> Request:
        if params is None and operation in v1_reading.NEED_NO_PARAMS:
            params = {}
        return v1_reading.READERS[operation](params)

    def sent(self, task: Task, request: Request) -> Json:
        return {"task": self.task(task, request.history_length if isinstance(request, Send) else None)}

    def check_answer(self, task: Task, send: Send) -> None:
        return

    def direct(self, context_id: str, message: Message) -> Json:
        return {"message": v1_shapes.direct_json(context_id, message)}

    def task(self, task: Task, history_length: int | None) -> Json:
        return v1_shapes.task_json(task, history_length)

    def page(self, page: TaskPage, request: List, token: str) -> Json:
        tasks = [
            v1_shapes.task_json(task, request.history_length, with_artifacts=request.with_artifacts)
            for task in page.tasks
        ]
        return {
            "tasks": tasks,
            "nextPageToken": token,
            "pageSize": request.page_size,
            "totalSize": page.total,
        }

    def opening(self, task: Task, request: Request) -> Sequence[Json]:
        length = request.history_length if isinstance(request, Send | Get) else None
        return [{"task": v1_shapes.task_json(task, length)}]

    def event(self, task: Task, event: TaskEvent, *, is_last: bool) -> Sequence[Json]:
        if isinstance(event, StatusEvent):
            return [{"statusUpdate": v1_shapes.status_update(task, event)}]
        if event.closes_only:  # its part would be made up, and kept by a client that adds up the events
            return []
        return [{"artifactUpdate": v1_shapes.artifact_update(task, event)}]

    def frame_id(self, task_id: str, seq: int) -> str:
        return f"{task_id}.{seq}"

    def push(self, task_id: str, target: PushTarget) -> Json:
        return v1_shapes.push_json(task_id, target)

    def pushes(self, task_id: str, targets: Sequence[PushTarget], token: str) -> Any:
        return {"configs": [v1_shapes.push_json(task_id, one) for one in targets], "nextPageToken": token}

    def error(self, error: RpcError) -> RpcError:
        return with_details(error)
