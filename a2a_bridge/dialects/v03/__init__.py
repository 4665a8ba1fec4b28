"""A2A 0.3 as docs/reference/methods.md has it: slashed methods, `kind` members, replies that may be no task."""

from collections.abc import Mapping, Sequence
from typing import Any

from a2a_bridge.dialects.dialect import Operation
from a2a_bridge.dialects.v03 import shapes as v03_shapes
from a2a_bridge.dialects.v03.params import READERS, not_representable
from a2a_bridge.errors import UNSUPPORTED_OPERATION, OtherContext, OutOfReach, TaskEnded
from a2a_bridge.requests import List, PushTarget, Request, Send
from a2a_bridge.tasks.record import Message, StatusEvent, Task, TaskEvent
from a2a_bridge.tasks.store import TaskPage
from agents.transcript.pieces import Json
from kit.jsonrpc import INVALID_REQUEST, RpcError

CODES: Mapping[type[RpcError], int] = {
    OtherContext: INVALID_REQUEST,
    TaskEnded: INVALID_REQUEST,
    OutOfReach: UNSUPPORTED_OPERATION,
}


class V03Dialect:
    """See `a2a_bridge.dialects.dialect.Dialect`."""

    name = "0.3"
    methods: Mapping[str, Operation] = {
        "message/send": Operation.SEND,
        "message/stream": Operation.STREAM,
        "tasks/get": Operation.GET,
        "tasks/cancel": Operation.CANCEL,
        "tasks/resubscribe": Operation.SUBSCRIBE,
        "agent/getAuthenticatedExtendedCard": Operation.SHOW_CARD,
    }
    streams_errors = True
    has_envelope = True
    passes_ended = True
    replays = False

    def read(self, operation: Operation, params: Any) -> Request:
        return READERS[operation](params)

    def sent(self, task: Task, request: Request) -> Json:
        return self.task(v03_shapes.as_begun(task), _length(request))

    def check_answer(self, task: Task, send: Send) -> None:
        """Files alone: an error where a plain reply would be a message; elsewhere the task says `failed`."""
        if send.takes_direct and len(task.history) == 1 and v03_shapes.is_of_files(task):
            raise not_representable(send.output_modes, v03_shapes.media_types(task))

    def direct(self, context_id: str, message: Message) -> Json:
        return v03_shapes.direct_json(context_id, message)

    def task(self, task: Task, history_length: int | None) -> Json:
        return v03_shapes.task_json(task, history_length)

    def page(self, page: TaskPage, request: List, token: str) -> Json:
        raise NotImplementedError

    def opening(self, task: Task, request: Request) -> Sequence[Json]:
        """A send's task as it was submitted, told again as an event; a follower's task as it is."""
        if not isinstance(request, Send):
            return [self.task(task, None)]
        begun = v03_shapes.as_begun(task)
        is_announced = not task.is_interrupted
        shown = [v03_shapes.task_json(begun, _length(request), is_announced=is_announced)]
        if is_announced:
            shown.append(v03_shapes.status_frame(begun))
        if task.is_open and task.state is not begun.state:
            shown.append(v03_shapes.status_frame(task))
        return shown

    def event(self, task: Task, event: TaskEvent, *, is_last: bool) -> Sequence[Json]:
        if isinstance(event, StatusEvent):
            return [*v03_shapes.reply_closed(task, event), v03_shapes.status_update(task, event)]
        return v03_shapes.artifact_updates(task, event)

    def frame_id(self, task_id: str, seq: int) -> str:
        return ""

    def push(self, task_id: str, target: PushTarget) -> Json:
        raise NotImplementedError

    def pushes(self, task_id: str, targets: Sequence[PushTarget], token: str) -> Any:
        raise NotImplementedError

    def error(self, error: RpcError) -> RpcError:
        error.code = CODES.get(type(error), error.code)
        return error


def _length(request: Request) -> int | None:
    return request.history_length if isinstance(request, Send) else None
