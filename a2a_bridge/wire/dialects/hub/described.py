"""The hub's own dialect for the developer reference and the public description."""

from typing import Literal, NotRequired, TypedDict

from a2a_bridge.wire.dialects.dialect import (
    SAMPLE_MESSAGE,
    SAMPLE_TASK_ID,
    Description,
    Id,
    Operation,
    RpcFault,
    RpcRequest,
)
from a2a_bridge.wire.dialects.hub.params import GetTaskParams, SendMessageParams
from a2a_bridge.wire.dialects.hub.shapes import StreamEvent, Task
from kit.describe import Family


class SendMessage(RpcRequest, tag="SendMessage"):
    """Ask, and get the finished task."""

    params: SendMessageParams


class SendStreamingMessage(RpcRequest, tag="SendStreamingMessage"):
    """Ask, and follow the task as events."""

    params: SendMessageParams


class GetTask(RpcRequest, tag="GetTask"):
    """Look at a task again."""

    params: GetTaskParams


class RpcAnswer(TypedDict):
    """A task, also for a refusal, which is a FAILED one; or an error, for a broken request."""

    jsonrpc: Literal["2.0"]
    id: Id
    result: NotRequired[Task]
    error: NotRequired[RpcFault]


DESCRIPTION = Description(
    title="The hub's own",
    about="For a few lines of curl or fetch: bare tasks, nothing to install. Each SendMessage is a task of its"
    " own, and contextId repeats its messageId.",
    params={
        Operation.SEND: SendMessageParams,
        Operation.STREAM: SendMessageParams,
        Operation.GET: GetTaskParams,
    },
    samples={
        Operation.SEND: {"message": SAMPLE_MESSAGE},
        Operation.STREAM: {"message": SAMPLE_MESSAGE},
        Operation.GET: {"id": SAMPLE_TASK_ID},
    },
    requests=Family("", SendMessage | SendStreamingMessage | GetTask, "the hub's own dialect"),
    answers=[RpcAnswer],
    events=[StreamEvent],
)
