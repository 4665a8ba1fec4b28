"""Requests of A2A 1.0, checked. ProtoJSON: snake_case names, numbers for enums, null for absent are accepted."""

import re
from collections.abc import Mapping
from datetime import datetime
from functools import partial
from typing import Annotated, Any

from msgspec import UNSET, Meta, Struct, UnsetType, convert
from msgspec.json import encode

from a2a_bridge.wire.dialects.reading import (
    MAX_ID_CHARS,
    MAX_PARTS,
    check_content,
    check_printable,
    invalid,
    needs_of,
    only_modes,
    read_params,
)
from a2a_bridge.wire.requests import (
    CancelTask,
    CreatePush,
    FollowTask,
    GetTask,
    ListPush,
    ListTasks,
    NamePush,
    PushTarget,
    Send,
    ShowCard,
)
from a2a_bridge.wire.task import Message, Role, State
from agents.transcript.pieces import Json, Part, question_of
from kit.clock import iso

Id = Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]
LaterId = Annotated[str, Meta(max_length=MAX_ID_CHARS)]
Count = int | str | float | None
MAX_URL_CHARS = 2048
MAX_PAGE = 100
ROLES = ("ROLE_USER", 1)
STATES: Mapping[str | int, State] = {
    name: state
    for number, state in enumerate(
        (
            State.SUBMITTED,
            State.WORKING,
            State.COMPLETED,
            State.FAILED,
            State.CANCELED,
            State.INPUT_REQUIRED,
            State.REJECTED,
            State.AUTH_REQUIRED,
        ),
        1,
    )
    for name in (number, f"TASK_STATE_{state.name}")
}
# UNRECOGNIZED is how the JavaScript SDK writes a status that is not set.
NO_STATE = (None, 0, "TASK_STATE_UNSPECIFIED", "UNRECOGNIZED", "")


class V1Message(Struct, frozen=True, rename="camel"):
    """A Message of a caller."""

    message_id: Id
    role: str | int
    parts: Annotated[list[Part], Meta(min_length=1, max_length=MAX_PARTS)]
    context_id: LaterId = ""
    task_id: str = ""
    metadata: Json | UnsetType = UNSET
    extensions: tuple[str, ...] = ()
    reference_task_ids: tuple[str, ...] = ()


class Authentication(Struct, frozen=True, rename="camel"):
    """The credentials by which a push receiver recognises the hub."""

    scheme: Annotated[str, Meta(min_length=1, max_length=MAX_ID_CHARS)]
    credentials: Annotated[str, Meta(max_length=4096)] = ""


class PushConfig(Struct, frozen=True, rename="camel"):
    """A TaskPushNotificationConfig."""

    url: Annotated[str, Meta(min_length=1, max_length=MAX_URL_CHARS)]
    task_id: str = ""
    id: LaterId = ""
    token: Annotated[str, Meta(max_length=4096)] = ""
    authentication: Authentication | None = None
    tenant: str = ""


class Configuration(Struct, frozen=True, rename="camel"):
    """A SendMessageConfiguration."""

    accepted_output_modes: tuple[str, ...] = ()
    task_push_notification_config: PushConfig | None = None
    history_length: Count = None
    return_immediately: bool = False


class SendParams(Struct, frozen=True, rename="camel"):
    """A SendMessageRequest."""

    message: V1Message
    configuration: Configuration = Configuration()
    metadata: Json | UnsetType = UNSET
    tenant: str = ""


class TaskParams(Struct, frozen=True, rename="camel"):
    """GetTask, CancelTask and SubscribeToTask name a task."""

    id: str
    history_length: Count = None
    metadata: Json | UnsetType = UNSET
    tenant: str = ""


class ListParams(Struct, frozen=True, rename="camel"):
    """A ListTasksRequest."""

    context_id: LaterId = ""
    status: str | int | None = None
    page_size: Count = None
    page_token: Annotated[str, Meta(max_length=512)] = ""
    history_length: Count = None
    status_timestamp_after: str = ""
    include_artifacts: bool = False
    tenant: str = ""


class NamePushParams(Struct, frozen=True, rename="camel"):
    """One push config of a task."""

    task_id: str
    id: str
    tenant: str = ""


class ListPushParams(Struct, frozen=True, rename="camel"):
    """The push configs of a task."""

    task_id: str
    page_size: Count = None
    page_token: Annotated[str, Meta(max_length=512)] = ""
    tenant: str = ""


class CardParams(Struct, frozen=True):
    """A GetExtendedAgentCardRequest."""

    tenant: str = ""


def read_send(params: Any, *, is_stream: bool = False) -> Send:
    """SendMessage and SendStreamingMessage."""
    sent: SendParams = _read(SendParams, params)
    message, wanted = sent.message, sent.configuration
    parts, has_content = tuple(message.parts), False
    others: list[tuple[str, Part]] = []
    for i, part in enumerate(parts):
        if part.text is UNSET or part != Part(text=part.text):
            others.append((f"message.parts[{i}]", part))
            check_content(part, f"message.parts[{i}]")
        has_content = has_content or part.text is UNSET or bool(part.text.strip())
    needs = needs_of(others) if others else ()
    is_text = not needs and all(part.text is not UNSET for _, part in others)
    if message.role not in ROLES:
        raise invalid("message.role", "message.role: want ROLE_USER")
    if not has_content:
        raise invalid("message.parts", "message.parts: at least one part must hold text, data or a file")
    push = wanted.task_push_notification_config
    return Send(
        message=Message(
            message.message_id,
            Role.USER,
            parts,
            message.metadata,
            message.extensions,
            message.reference_task_ids,
        ),
        question=question_of(parts, "\n"),
        parts=() if is_text else parts,
        needs=needs,
        only_modes=only_modes(wanted.accepted_output_modes),
        task_id=message.task_id,
        context_id=check_printable(message.context_id, "message.contextId"),
        waits=not is_stream and not wanted.return_immediately,
        takes_direct=(is_stream or not wanted.return_immediately) and not message.task_id and push is None,
        history_length=_count(wanted.history_length, "configuration.historyLength"),
        output_modes=wanted.accepted_output_modes,
        push=_target(push) if push else None,
        metadata=sent.metadata,
    )


read_stream = partial(read_send, is_stream=True)


def read_get(params: Any) -> GetTask:
    """GetTask."""
    named: TaskParams = _read(TaskParams, params)
    return GetTask(task_id=named.id, history_length=_count(named.history_length, "historyLength"))


def read_list(params: Any) -> ListTasks:
    """ListTasks."""
    wanted: ListParams = _read(ListParams, {} if params is None else params)
    if wanted.status not in NO_STATE and wanted.status not in STATES:
        raise invalid("status", "status: not a TASK_STATE_ name")
    return ListTasks(
        context_id=wanted.context_id,
        state=STATES[wanted.status] if wanted.status not in NO_STATE and wanted.status is not None else None,
        page_size=_page_size(wanted.page_size),
        page_token=wanted.page_token,
        history_length=_count(wanted.history_length, "historyLength"),
        since=_moment(wanted.status_timestamp_after),
        with_artifacts=wanted.include_artifacts,
    )


def read_cancel(params: Any) -> CancelTask:
    """CancelTask."""
    return CancelTask(task_id=_read(TaskParams, params).id)


def read_subscribe(params: Any) -> FollowTask:
    """SubscribeToTask."""
    return FollowTask(task_id=_read(TaskParams, params).id)


def read_create_push(params: Any) -> CreatePush:
    """CreateTaskPushNotificationConfig."""
    config: PushConfig = _read(PushConfig, params)
    if not config.task_id:
        raise invalid("taskId", "taskId: want the id of a task")
    return CreatePush(task_id=config.task_id, target=_target(config))


def read_name_push(params: Any) -> NamePush:
    """GetTaskPushNotificationConfig and DeleteTaskPushNotificationConfig."""
    named: NamePushParams = _read(NamePushParams, params)
    return NamePush(task_id=named.task_id, config_id=named.id)


def read_list_push(params: Any) -> ListPush:
    """ListTaskPushNotificationConfigs."""
    wanted: ListPushParams = _read(ListPushParams, params)
    return ListPush(task_id=wanted.task_id, page_size=_page_size(wanted.page_size), page_token=wanted.page_token)


def read_show_card(params: Any) -> ShowCard:
    """GetExtendedAgentCard."""
    _read(CardParams, {} if params is None else params)
    return ShowCard()


NOT_PLAIN = re.compile(rb'_[^"\\]*":|null')  # a name in snake_case, or null, may be in it
NESTED: Mapping[str, Mapping[str, Any]] = {
    "message": {"parts": {}},
    "configuration": {"taskPushNotificationConfig": {"authentication": {}}},
    "authentication": {},
}


def _read(kind: type[Any], params: Any) -> Any:
    is_plain = NOT_PLAIN.search(encode(params)) is None
    return read_params(kind, params if is_plain else _plain(params, NESTED))


def _plain(value: Any, nested: Mapping[str, Any]) -> Any:
    """Names in camelCase, nothing null; only where the schema names the members, never inside data or metadata."""
    if isinstance(value, list):
        return [_plain(one, nested) for one in value]
    if not isinstance(value, dict):
        return value
    given = [(_camel(name), one) for name, one in value.items() if one is not None or name == "data"]
    named = dict(given)
    if len(named) != len(given):
        raise invalid("params", "params: a member comes both in camelCase and in snake_case")
    return {name: _plain(one, nested[name]) if name in nested else one for name, one in named.items()}


def _camel(name: str) -> str:
    if "_" not in name:
        return name
    first, *rest = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in rest)


def _count(value: Count, where: str) -> int | None:
    """A number that ProtoJSON may write as text."""
    if value is None:
        return None
    try:
        number = convert(value, int, strict=False)
    except ValueError:
        raise invalid(where, f"{where}: want a whole number") from None
    if number < 0 or number >= 2**31:
        raise invalid(where, f"{where}: want 0 or more")
    return number


def _page_size(value: Count) -> int:
    size = _count(value, "pageSize")
    if size is None:
        return 50
    if not 1 <= size <= MAX_PAGE:
        raise invalid("pageSize", f"pageSize: want 1 to {MAX_PAGE}")
    return size


def _moment(value: str) -> str:
    """A timestamp as tasks have theirs."""
    if not value:
        return ""
    try:
        moment = datetime.fromisoformat(value)
        if moment.tzinfo is None:
            raise ValueError
        return iso(moment)
    except (ValueError, OverflowError):
        raise invalid("statusTimestampAfter", "statusTimestampAfter: want an RFC 3339 timestamp") from None


def _target(config: PushConfig) -> PushTarget:
    authentication = config.authentication
    return PushTarget(
        url=config.url,
        config_id=check_printable(config.id, "id"),
        token=config.token,
        scheme=authentication.scheme if authentication else "",
        credentials=authentication.credentials if authentication else "",
    )
