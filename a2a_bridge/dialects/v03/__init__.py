"""A2A 0.3 as docs/reference/methods.md has it: slashed methods, `kind` members, replies that may be no task."""

from collections.abc import Mapping

from a2a_bridge.dialects.dialect import Dialect, Operation
from a2a_bridge.dialects.v03 import params, shapes
from a2a_bridge.dialects.v03.described import DESCRIPTION
from a2a_bridge.errors import UNSUPPORTED_OPERATION, AgentUnreachable, OtherContext, TaskEnded
from a2a_bridge.requests import Send
from a2a_bridge.tasks.record import Task
from kit.jsonrpc import INVALID_REQUEST, RpcError

CODES: Mapping[type[RpcError], int] = {
    OtherContext: INVALID_REQUEST,
    TaskEnded: INVALID_REQUEST,
    AgentUnreachable: UNSUPPORTED_OPERATION,
}


def check_answer(task: Task, send: Send) -> None:
    """Files alone: an error where a plain reply would be a message; elsewhere the task says `failed`."""
    if send.takes_direct and len(task.history) == 1 and shapes.is_of_files(task):
        raise params.not_representable(send.output_modes, shapes.media_types(task))


def change_code(error: RpcError) -> RpcError:
    """Give an error the code that 0.3 has for it."""
    error.code = CODES.get(type(error), error.code)
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
    read=params.read_request,
    render_task=shapes.render_task,
    render_answer=shapes.render_answer,
    render_opening=shapes.render_opening,
    render_event=shapes.render_event,
    render_message=shapes.render_message,
    check_answer=check_answer,
    error=change_code,
)
