"""`/channel` for the hub's description of its sockets."""

from agents.links.channel.frames import FROM_AGENT, TO_AGENT, ChatEvent, Reply, ReplyChunk
from kit.describe import CHANNEL_TOKEN, Socket

SOCKET = Socket(
    path="/channel",
    summary="An agent dials out, registers, is asked, and replies.",
    security=[CHANNEL_TOKEN],
    from_client=[*FROM_AGENT.values()],
    to_client=TO_AGENT,
    payloads={ChatEvent: (Reply, ReplyChunk)},
)
