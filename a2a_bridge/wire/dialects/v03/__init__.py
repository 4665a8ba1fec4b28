"""A2A 0.3 as docs/reference/methods.md has it: slashed methods, `kind` members, replies that may be no task."""

from collections.abc import Mapping
from functools import partial

from msgspec import UNSET

from a2a_bridge.wire.dialects.dialect import (
    SAMPLE_QUESTION,
    SAMPLE_TASK_ID,
    Description,
    Dialect,
    Method,
    Operation,
    Rpc,
    operations_of,
    reader_of,
)
from a2a_bridge.wire.dialects.reading import ANY_FILE, is_of_modes, plain_modes
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
from a2a_bridge.wire.dialects.v03.updates import StreamedTask
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
    """Where a plain reply would be a message: files alone, none of a mode that the caller named, are an error."""
    if not send.output_modes or not send.takes_direct or task.state is not State.COMPLETED or task.message:
        return
    parts = [part for one in task.artifacts for part in one.parts]
    types = {media_type_of(part.media_type) or ANY_FILE for part in parts}
    accepted = plain_modes(send.output_modes)
    are_files = all(part.text is UNSET and part.data is UNSET for part in parts)
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
METHODS = (
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
    bindings=("JSONRPC",),
    methods=operations_of(METHODS),
    description=Description(
        title="A2A 0.3",
        about="What the official SDKs 0.3.x speak, known by the slash in a method's name; A2A-Version: 0.3 is fine"
        " too. A plain reply of a hybrid agent is a message and leaves no task.",
        methods=METHODS,
        family=of_v03,
        answers=ANSWERS,
        events=[*ANSWERS, of_v03(Rpc[shapes.OldStatusUpdate]), of_v03(Rpc[shapes.OldArtifactUpdate])],
    ),
    streams_errors=True,
    passes_ended=True,
    adds_follow_ups=True,
    read=reader_of(METHODS),
    render_task=shapes.render_task,
    render_answer=shapes.render_answer,
    render_opening=shapes.render_opening,
    follow=lambda task: StreamedTask(task).render_event,
    render_message=shapes.render_message,
    check_answer=check_answer,
    error=change_code,
)
