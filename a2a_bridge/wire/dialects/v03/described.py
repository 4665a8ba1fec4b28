"""A2A 0.3 for the developer reference and the public description."""

from typing import Any

from a2a_bridge.wire.dialects.dialect import (
    SAMPLE_QUESTION,
    SAMPLE_TASK_ID,
    Description,
    Operation,
    Rpc,
    RpcRequest,
)
from a2a_bridge.wire.dialects.v03 import shapes
from a2a_bridge.wire.dialects.v03.params import SendParams, TaskParams
from kit.describe import Family

MESSAGE = {
    "kind": "message",
    "messageId": "m1",
    "role": "user",
    "parts": [{"kind": "text", "text": SAMPLE_QUESTION}],
}


class OldSend(RpcRequest, tag="message/send"):
    """Ask, and get the reply or the finished task."""

    params: SendParams


class OldStream(RpcRequest, tag="message/stream"):
    """Ask, and follow what comes of it as events."""

    params: SendParams


class OldGet(RpcRequest, tag="tasks/get"):
    """Look at a task again."""

    params: TaskParams


class OldCancel(RpcRequest, tag="tasks/cancel"):
    """End a task."""

    params: TaskParams


class OldResubscribe(RpcRequest, tag="tasks/resubscribe"):
    """Follow a task."""

    params: TaskParams


class OldCard(RpcRequest, tag="agent/getAuthenticatedExtendedCard"):
    """There is none for callers of 0.3."""


def of_v03(shape: Any) -> Family:
    """A shape of A2A 0.3."""
    return Family("V03.", shape, "A2A 0.3")


ANSWERS = [of_v03(Rpc[shapes.OldMessage]), of_v03(Rpc[shapes.OldTask])]
DESCRIPTION = Description(
    title="A2A 0.3",
    about="What the official SDKs 0.3.x speak, known by the slash in a method's name; A2A-Version: 0.3 is fine"
    " too. A plain reply of a hybrid agent is a message and leaves no task.",
    params={
        Operation.SEND: SendParams,
        Operation.STREAM: SendParams,
        Operation.GET: TaskParams,
        Operation.CANCEL: TaskParams,
        Operation.SUBSCRIBE: TaskParams,
    },
    samples={
        Operation.SEND: {"message": MESSAGE},
        Operation.STREAM: {"message": MESSAGE},
        Operation.GET: {"id": SAMPLE_TASK_ID},
        Operation.CANCEL: {"id": SAMPLE_TASK_ID},
        Operation.SUBSCRIBE: {"id": SAMPLE_TASK_ID},
    },
    requests=of_v03(OldSend | OldStream | OldGet | OldCancel | OldResubscribe | OldCard),
    answers=ANSWERS,
    events=[*ANSWERS, of_v03(Rpc[shapes.OldStatusUpdate]), of_v03(Rpc[shapes.OldArtifactUpdate])],
)
