"""Messages to agents, and what agents answer (section 10)."""

import logging

from agents.links.channel.frames import BadFrame
from gateway.service.client import Client
from gateway.service.frame_log import DROPPED
from gateway.service.messages.messages import LONGEST_WAIT_S
from gateway.surface.handlers.broadcast import ALIAS, broadcast_message
from gateway.surface.handlers.relay import relay
from gateway.wire.errors import ErrorCode, FrameRefused
from gateway.wire.frames import Envelope

logger = logging.getLogger(__name__)


async def take_message(client: Client, envelope: Envelope) -> None:
    """A reply to an open message settles it; any other message is asked."""
    seat = client.seat
    if seat is not None and (frame_id := seat.find_open(envelope)) is not None:
        try:
            await seat.take_reply(frame_id, envelope)
        except BadFrame as bad:
            raise FrameRefused(ErrorCode.INVALID_CONTENT, str(bad), reason=bad.error.code) from None
    elif (seat is not None and seat.drop_late(envelope)) or envelope.type != "message":
        logger.info("gateway.late_response")
        client.note.outcome = DROPPED
    elif envelope.agent == ALIAS:
        await broadcast_message(client, envelope)
    elif not await relay(client, envelope, client.get_behalf(envelope)):
        send(client, envelope)


def send(client: Client, envelope: Envelope) -> None:
    """Send a message, or a request, to its agent; the reply comes later."""
    behalf = client.get_behalf(envelope)
    wait_s = min(LONGEST_WAIT_S, envelope.metadata.get("ttl", client.protocol.timeout_ms / 1000))
    client.start(client.messages.take(envelope, behalf, client.sender, wait_s, client.note), "message")
