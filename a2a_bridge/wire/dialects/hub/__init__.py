"""The hub's own dialect: PascalCase methods, bare tasks, bare states (docs/reference/methods.md).

`contextId` repeats the caller's messageId; every SendMessage is a task of its own.
"""

from a2a_bridge.wire.dialects.dialect import Dialect, Operation, renders_alike
from a2a_bridge.wire.dialects.hub import params, shapes
from a2a_bridge.wire.dialects.hub.described import DESCRIPTION

HUB = Dialect(
    name="hub",
    versions=frozenset({"", "0.3"}),
    has_slash=False,
    methods={
        "SendMessage": Operation.SEND,
        "SendStreamingMessage": Operation.STREAM,
        "GetTask": Operation.GET,
    },
    description=DESCRIPTION,
    has_envelope=False,
    read=params.read_request,
    render_task=shapes.render_task,
    render_answer=shapes.render_answer,
    render_opening=shapes.render_opening,
    follow=renders_alike(shapes.render_event),
)
