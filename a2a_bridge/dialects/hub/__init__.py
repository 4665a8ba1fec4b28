"""The hub's own dialect: PascalCase methods, bare tasks, bare states (docs/reference/methods.md).

`contextId` repeats the caller's messageId; every SendMessage is a task of its own.
"""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, UnsetType

from a2a_bridge.dialects.dialect import Operation
from a2a_bridge.dialects.reading import MAX_ID_CHARS, MAX_PARTS, check_content, invalid, question_of, read_params
from a2a_bridge.requests import Get, List, PushTarget, Request, Send
from a2a_bridge.tasks.record import ArtifactEvent, Message, Role, State, Task, TaskEvent, text_in
from a2a_bridge.tasks.store import TaskPage
from agents.transcript.pieces import Json, Part, plain_text_in
from kit.jsonrpc import RpcError

STATE_NAMES = {state: state.name for state in State}
ROLE_NAMES = {role: f"ROLE_{role.name}" for role in Role}


class HubPart(Struct, frozen=True):
    """Exactly one of text, raw (base64), url, data."""

    text: str | UnsetType = UNSET
    raw: str | UnsetType = UNSET
    url: str | UnsetType = UNSET
    data: Any = UNSET
    metadata: Json | UnsetType = UNSET


class HubMessage(Struct, frozen=True, rename="camel"):
    """A question; at least one part must hold text. Files and data are accepted and not passed on.

    `task_id` counts while that task asks to approve something, and the message then answers it.
    """

    message_id: Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]
    role: Literal["ROLE_USER"]
    parts: Annotated[list[HubPart], Meta(min_length=1, max_length=MAX_PARTS)]
    metadata: Json | UnsetType = UNSET
    task_id: Any = UNSET


class SendMessageParams(Struct, frozen=True):
    """Parameters of SendMessage and SendStreamingMessage."""

    message: HubMessage


class GetTaskParams(Struct, frozen=True):
    """Parameters of GetTask."""

    id: str


class HubDialect:
    """See `a2a_bridge.dialects.dialect.Dialect`."""

    name = "hub"
    methods: Mapping[str, Operation] = {
        "SendMessage": Operation.SEND,
        "SendStreamingMessage": Operation.STREAM,
        "GetTask": Operation.GET,
    }
    streams_errors = False
    has_envelope = False
    passes_ended = False
    replays = False

    def read(self, operation: Operation, params: Any) -> Request:
        if operation is Operation.GET:
            return Get(task_id=read_params(GetTaskParams, params).id)
        message = read_params(SendMessageParams, params, role="ROLE_USER").message
        said = Message(message.message_id, Role.USER, _read_parts(message))
        return Send(
            message=said,
            question=question_of(said.parts, "\n"),
            approves=message.task_id if isinstance(message.task_id, str) else "",
            context_id=message.message_id,
            waits=operation is Operation.SEND,
        )

    def sent(self, task: Task, request: Request) -> Json:
        return self.task(task, None)

    def check_answer(self, task: Task, send: Send) -> None:
        return

    def direct(self, context_id: str, message: Message) -> Json:
        raise NotImplementedError

    def task(self, task: Task, history_length: int | None) -> Json:
        status: Json = {"state": _state(task), "timestamp": task.updated_at}
        history = [_message(message) for message in task.history]
        if task.state is State.COMPLETED:
            text = task.reply_text
            if task.message is not None and text_in(task.message.parts) not in ("", text):
                history.append(_message(task.message))
            history.append(_agent_message(task.message_id, text))
        elif task.message is not None:
            status["message"] = _asking(task.message) if task.approvals else _message(task.message)
        if task.is_interrupted and task.message is not None:
            history.append(_message(task.message))
        return {"id": task.id, "contextId": task.context_id, "status": status, "history": history}

    def page(self, page: TaskPage, request: List, token: str) -> Json:
        raise NotImplementedError

    def opening(self, task: Task, request: Request) -> Sequence[Json]:
        return [{"task": self.task(task, None)}]

    def event(self, task: Task, event: TaskEvent, *, is_last: bool) -> Sequence[Json]:
        """A chunk as a WORKING frame, the end as the whole task, notes as WORKING frames."""
        if isinstance(event, ArtifactEvent):
            is_chunk = event.artifact.id == task.reply_id and not event.last_chunk
            text = text_in(event.artifact.parts)
            if event.lead is not None:
                text = plain_text_in(event.artifact.parts)
                is_chunk, text = bool(text), event.lead + text
            return [_chunk(task, text, task.message_id, event.at)] if is_chunk else []
        if is_last:
            return [{"task": self.task(task, None)}]
        return [_chunk(task, text_in(event.message.parts), event.message.id, event.at)] if event.message else []

    def frame_id(self, task_id: str, seq: int) -> str:
        return ""

    def push(self, task_id: str, target: PushTarget) -> Json:
        raise NotImplementedError

    def pushes(self, task_id: str, targets: Sequence[PushTarget], token: str) -> Any:
        raise NotImplementedError

    def error(self, error: RpcError) -> RpcError:
        return error


def _read_parts(message: HubMessage) -> tuple[Part, ...]:
    """The parts with text, after all were checked."""
    found, has_words = [], False
    for i, part in enumerate(message.parts):
        check_content(part, f"message.parts[{i}]")
        if isinstance(part.text, str) and part.text:
            found.append(Part(text=part.text))
            has_words = has_words or not part.text.isspace()
    if not has_words:
        raise invalid("message.parts", "message.parts: at least one part must hold text")
    return tuple(found)


def _state(task: Task) -> str:
    """What has not begun is WORKING here: there is no state before it."""
    return STATE_NAMES[State.WORKING if task.state is State.SUBMITTED else task.state]


def _message(message: Message) -> Json:
    parts = [{"text": part.text} for part in message.parts if isinstance(part.text, str)]
    return {"messageId": message.id, "role": ROLE_NAMES[message.role], "parts": parts}


def _asking(message: Message) -> Json:
    """A message with its data, which this dialect shows of requests for approval alone."""
    shown = _message(message)
    data = [{"data": part.data} for part in message.parts if part.data is not UNSET]
    return {**shown, "parts": [*shown["parts"], *data]}


def _agent_message(message_id: str, text: str) -> Json:
    return {"messageId": message_id, "role": "ROLE_AGENT", "parts": [{"text": text}]}


def _chunk(task: Task, text: str, message_id: str, at: str) -> Json:
    status = {"state": State.WORKING.name, "timestamp": at, "message": _agent_message(message_id, text)}
    return {"task": {"id": task.id, "contextId": task.context_id, "status": status}}
