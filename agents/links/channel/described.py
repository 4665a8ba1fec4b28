"""`/channel` and the REST beside it for the hub's public descriptions."""

from agents.links.channel.events import EVENT_PATH, HookEvent
from agents.links.channel.frames import FROM_AGENT, TO_AGENT, ChatEvent
from agents.links.channel.payloads import Reply, ReplyChunk, TaskArtifact, TaskStatus
from kit.describe import CHANNEL_TOKEN, Answer, Done, ErrorBody, Operation, Socket

SOCKET = Socket(
    path="/channel",
    summary="An agent dials out, registers, is asked, and replies.",
    security=[CHANNEL_TOKEN],
    from_client=[*FROM_AGENT.values()],
    to_client=TO_AGENT,
    payloads={ChatEvent: (Reply, ReplyChunk, TaskStatus, TaskArtifact)},
)

OPERATIONS = (
    Operation(
        method="post",
        path=EVENT_PATH,
        name="postEvent",
        summary="Take an event of a session that was registered with this channel token.",
        tag="channel",
        security=[CHANNEL_TOKEN],
        request=HookEvent,
        answers={
            202: Done,
            404: ErrorBody,
            408: ErrorBody,
            503: Answer(shape=ErrorBody, text="The database is out of reach, or too much waits for it."),
        },
    ),
)
