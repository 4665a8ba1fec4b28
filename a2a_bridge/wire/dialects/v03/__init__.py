"""A2A 0.3 as docs/reference/methods.md has it: slashed methods, `kind` members, replies that may be no task."""

from collections.abc import Mapping

from msgspec import UNSET

from a2a_bridge.wire.dialects.dialect import Dialect, Operation
from a2a_bridge.wire.dialects.reading import ANY_FILE, is_of_modes, plain_modes
from a2a_bridge.wire.dialects.v03 import params, shapes
from a2a_bridge.wire.dialects.v03.described import DESCRIPTION
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


V03 = Dialect(
    name="0.3",
    versions=frozenset({"", "0.3"}),
    has_slash=True,
    bindings=("JSONRPC",),
    methods={
        "message/send": Operation.SEND,
        "message/stream": Operation.STREAM,
        "tasks/get": Operation.GET,
        "tasks/cancel": Operation.CANCEL,
        "tasks/resubscribe": Operation.SUBSCRIBE,
        "agent/getAuthenticatedExtendedCard": Operation.SHOW_CARD,
    },
    description=DESCRIPTION,
    streams_errors=True,
    passes_ended=True,
    adds_follow_ups=True,
    read=params.read_request,
    render_task=shapes.render_task,
    render_answer=shapes.render_answer,
    render_opening=shapes.render_opening,
    follow=lambda task: StreamedTask(task).render_event,
    render_message=shapes.render_message,
    check_answer=check_answer,
    error=change_code,
)
