"""Events about the messages of seats, for the channels `agent:message`, `agent:activity` and the agent's inbox."""

from gateway.service.channels import Channels, make_channel_frame
from gateway.service.messages.status_feed import event_frame
from gateway.wire.frame_types import ACTIVITY, MESSAGES, inbox_channel
from gateway.wire.frames import Json

DELIVERED = "message.delivered"


async def publish_delivered(channels: Channels, owner_id: int, agent: str, frame: Json) -> None:
    """Push that a message was sent to a seat: without its text, but for the subscribers of the inbox."""
    content = {
        "agent": agent,
        "from": frame["from"],
        "id": frame["id"],
        "requiresResponse": frame["metadata"].get("requiresResponse") is True,
    }
    if "sessionId" in frame:
        content["sessionId"] = frame["sessionId"]
    about = event_frame(DELIVERED, content)
    whole = event_frame(DELIVERED, content | {"message": frame["content"]})
    messages = [make_channel_frame(owner_id, channel, about, agent) for channel in (MESSAGES, ACTIVITY)]
    await channels.publish_all(
        owner_id, [*messages, make_channel_frame(owner_id, inbox_channel(agent), whole, agent)]
    )
