"""The hub's own dialect: PascalCase methods, bare tasks, bare states (docs/reference/methods.md).

`contextId` repeats the caller's messageId; every SendMessage is a task of its own.
"""

from functools import partial
from typing import Literal, NotRequired, TypedDict

from a2a_bridge.wire.dialects.dialect import (
    SAMPLE_MESSAGE,
    SAMPLE_TASK_ID,
    Description,
    Dialect,
    Id,
    Method,
    Operation,
    RpcFault,
    operations_of,
    reader_of,
    renders_alike,
)
from a2a_bridge.wire.dialects.hub import shapes
from a2a_bridge.wire.dialects.hub.params import GetTaskParams, SendMessageParams, read_get, read_send, read_stream
from kit.describe import Family


class RpcAnswer(TypedDict):
    """A task, also for a refusal, which is a FAILED one; or an error, for a broken request."""

    jsonrpc: Literal["2.0"]
    id: Id
    result: NotRequired[shapes.Task]
    error: NotRequired[RpcFault]


ASKED, NAMED = {"message": SAMPLE_MESSAGE}, {"id": SAMPLE_TASK_ID}
METHODS = (
    Method("SendMessage", Operation.SEND, read_send, params=SendMessageParams, sample=ASKED),
    Method("SendStreamingMessage", Operation.STREAM, read_stream, params=SendMessageParams, sample=ASKED),
    Method("GetTask", Operation.GET, read_get, params=GetTaskParams, sample=NAMED),
)
HUB = Dialect(
    name="hub",
    versions=frozenset({"", "0.3"}),
    has_slash=False,
    methods=operations_of(METHODS),
    description=Description(
        title="The hub's own",
        about="For a few lines of curl or fetch: bare tasks, nothing to install. Each SendMessage is a task of its"
        " own, and contextId repeats its messageId.",
        methods=METHODS,
        family=partial(Family, "", title="the hub's own dialect"),
        answers=[RpcAnswer],
        events=[shapes.StreamEvent],
    ),
    has_envelope=False,
    read=reader_of(METHODS),
    render_task=shapes.render_task,
    render_answer=shapes.render_answer,
    render_opening=shapes.render_opening,
    follow=renders_alike(shapes.render_event),
)
