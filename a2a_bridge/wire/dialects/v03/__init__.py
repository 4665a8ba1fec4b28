"""A2A 0.3 as docs/reference/methods.md has it: slashed methods, `kind` members, replies that may be no task."""

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

from msgspec import to_builtins

from a2a_bridge.wire.dialects.dialect import (
    SAMPLE_QUESTION,
    SAMPLE_RATING,
    SAMPLE_TASK_ID,
    Description,
    Dialect,
    EventRenderer,
    Method,
    Operation,
    Rpc,
    by_name,
    version_header,
)
from a2a_bridge.wire.dialects.reading import ANY_FILE, RateParams, is_of_modes, plain_modes, read_rate
from a2a_bridge.wire.dialects.v03 import shapes
from a2a_bridge.wire.dialects.v03.params import (
    SendParams,
    TaskParams,
    read_cancel,
    read_get,
    read_send,
    read_show_card,
    read_stream,
    read_subscribe,
)
from a2a_bridge.wire.dialects.v03.shapes import StreamedTask
from a2a_bridge.wire.errors import (
    UNSUPPORTED_OPERATION,
    AgentUnreachable,
    InputRefused,
    OtherContext,
    OutputRefused,
    TaskEnded,
    wrong_mode,
)
from a2a_bridge.wire.requests import Send
from a2a_bridge.wire.task import State, Task
from agents.transcript.pieces import Json
from kit.asgi import media_type_of
from kit.describe import Family
from kit.jsonrpc import INVALID_PARAMS, INVALID_REQUEST, RpcError

CODES: Mapping[type[RpcError], int] = {
    InputRefused: INVALID_PARAMS,
    OtherContext: INVALID_REQUEST,
    TaskEnded: INVALID_REQUEST,
    AgentUnreachable: UNSUPPORTED_OPERATION,
}


def check_answer(task: Task, send: Send) -> None:
    """Refuse a reply that would be a message of files alone, none of which is of a mode that the caller named.

    Raises:
        RpcError: -32005.
    """
    if not send.output_modes or not send.takes_direct or task.state is not State.COMPLETED or task.message:
        return
    parts = [part for one in task.artifacts for part in one.parts]
    types = {media_type_of(part.media_type) or ANY_FILE for part in parts}
    accepted = plain_modes(send.output_modes)
    are_files = all(part.is_file for part in parts)
    if parts and are_files and not any(is_of_modes(one, accepted) for one in types):
        raise wrong_mode(accepted, sorted(types))


def change_code(error: RpcError) -> RpcError:
    """Give an error the code, and the data, that 0.3 has for it."""
    error.code = CODES.get(type(error), error.code)
    if isinstance(error, OutputRefused):
        error.data = {"acceptedOutputModes": error.accepted, "availableOutputModes": error.available}
    return error


MESSAGE = {
    "kind": "message",
    "messageId": "m1",
    "role": "user",
    "parts": [{"kind": "text", "text": SAMPLE_QUESTION}],
}
ASKED, NAMED = {"message": MESSAGE}, {"id": SAMPLE_TASK_ID}
RATED = {**NAMED, **SAMPLE_RATING}
METHODS = by_name(
    Method(
        "message/send",
        Operation.SEND,
        read_send,
        params=SendParams,
        sample=ASKED,
        text="Ask, and get the reply or the finished task.",
        shape="OldSend",
    ),
    Method(
        "message/stream",
        Operation.STREAM,
        read_stream,
        params=SendParams,
        sample=ASKED,
        text="Ask, and follow what comes of it as events.",
        shape="OldStream",
    ),
    Method("tasks/get", Operation.GET, read_get, params=TaskParams, sample=NAMED, shape="OldGet"),
    Method("tasks/cancel", Operation.CANCEL, read_cancel, params=TaskParams, sample=NAMED, shape="OldCancel"),
    Method("tasks/rate", Operation.RATE, read_rate, params=RateParams, sample=RATED, shape="OldRate"),
    Method(
        "tasks/resubscribe",
        Operation.SUBSCRIBE,
        read_subscribe,
        params=TaskParams,
        sample=NAMED,
        shape="OldResubscribe",
    ),
    Method(
        "agent/getAuthenticatedExtendedCard",
        Operation.SHOW_CARD,
        read_show_card,
        text="There is none for callers of 0.3.",
        shape="OldCard",
    ),
)
of_v03 = partial(Family, "V03.", title="A2A 0.3")
ANSWERS = [of_v03(Rpc[shapes.OldMessage]), of_v03(Rpc[shapes.OldTask])]
V03 = Dialect(
    name="0.3",
    versions=frozenset({"", "0.3"}),
    has_slash=True,
    headers=version_header("0.3"),
    bindings=("JSONRPC",),
    methods=METHODS,
    description=Description(
        title="A2A 0.3",
        about="What the official SDKs 0.3.x speak, known by the slash in a method's name; A2A-Version: 0.3 is fine"
        " too. A plain reply of a hybrid agent is a message and leaves no task.",
        family=of_v03,
        answers=ANSWERS,
        events=[*ANSWERS, of_v03(Rpc[shapes.OldStatusUpdate]), of_v03(Rpc[shapes.OldArtifactUpdate])],
    ),
    streams_errors=True,
    passes_ended=True,
    adds_follow_ups=True,
    render_task=shapes.render_task,
    render_answer=shapes.render_answer,
    render_opening=shapes.render_opening,
    follow=lambda task: StreamedTask(task).render_event,
    render_message=shapes.render_message,
    check_answer=check_answer,
    error=change_code,
)


# In 0.3 the member `kind` says what a result is; in 1.0 the name of the member that holds the result says so.
# fasta2a sends messages without `kind` to the methods of 0.3, and reads results of 1.0; a script that sends such
# messages may read results of 0.3. So these callers get each result in both forms (docs/adr/0172).
MEMBERS: Mapping[str, str] = {
    "task": "task",
    "message": "message",
    "status-update": "statusUpdate",
    "artifact-update": "artifactUpdate",
}
HOLDERS = frozenset({"status", "message", "history", "artifact", "artifacts", "parts"})
OF_FILES: Mapping[str, str] = {"bytes": "raw", "uri": "url", "name": "filename", "mimeType": "mediaType"}


def has_no_kinds(params: Any) -> bool:
    """True if a message has no `kind`, and none of its parts has a `kind` or the `type` of older clients."""
    message = params.get("message") if isinstance(params, dict) else None
    if not isinstance(message, dict) or "kind" in message:
        return False
    parts = message.get("parts")
    return isinstance(parts, list) and all(
        isinstance(one, dict) and not {"kind", "type"} & one.keys() for one in parts
    )


def render_both(shown: shapes.OldFrame | shapes.OldMessage) -> Json:
    """A result of 0.3, with one more member that holds the same result in the form of 1.0."""
    flat: Json = to_builtins(shown)
    return flat | {MEMBERS[flat["kind"]]: _without_kinds(flat)}


def _without_kinds(value: Any) -> Any:
    """Messages, artifacts and parts without `kind`; files in the form of 1.0."""
    if isinstance(value, list):
        return [_without_kinds(one) for one in value]
    if not isinstance(value, dict):
        return value
    made = {name: _without_kinds(one) if name in HOLDERS else one for name, one in value.items() if name != "kind"}
    file = made.pop("file", {})
    return made | {OF_FILES[name]: one for name, one in file.items()}


def _follow(task: Task) -> EventRenderer:
    streamed = StreamedTask(task)
    return lambda task, event, *, is_last: [
        render_both(one) for one in streamed.render_event(task, event, is_last=is_last)
    ]


BOTH_FORMS = replace(
    V03,
    versions=frozenset(),
    bindings=(),
    render_answer=lambda task, request: render_both(shapes.render_answer(task, request)),
    render_opening=lambda task, request: [render_both(one) for one in shapes.render_opening(task, request)],
    follow=_follow,
    render_message=lambda context_id, message: render_both(shapes.render_message(context_id, message)),
)
