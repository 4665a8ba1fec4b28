"""The handler of each type of frames that a signed-in client sends."""

from collections.abc import Awaitable, Callable, Mapping

from gateway.service.client import Client
from gateway.surface.handlers import broadcast, channels, discovery, messages, requests, team, triad
from gateway.wire.errors import ErrorCode, FrameRefused
from gateway.wire.frames import Envelope

Handler = Callable[[Client, Envelope], Awaitable[None]]

HANDLERS: Mapping[str, Handler] = {
    "handshake": discovery.shake_hands,
    "discovery": discovery.discover,
    "status": team.take_status,
    "workspace": team.show_workspaces,
    "subscribe": channels.subscribe,
    "unsubscribe": channels.unsubscribe,
    "event": channels.take_event,
    "message": messages.take_message,
    "response": messages.take_message,
    "error": messages.take_message,
    "request": requests.take_request,
    "broadcast": broadcast.broadcast,
    "proposal": triad.take_proposal,
    "vote": triad.take_vote,
}


def get_handler(type_name: str) -> Handler:
    """The handler of a type.

    Raises:
        FrameRefused: 2004, no client may send it here.
    """
    if type_name not in HANDLERS:
        text = f"this hub does not serve {type_name} here"
        raise FrameRefused(ErrorCode.UNKNOWN_TYPE, text, field="type", reason="not_supported")
    return HANDLERS[type_name]
