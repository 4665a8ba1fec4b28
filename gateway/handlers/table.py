"""The handler of each type of frames that a signed-in client sends."""

from collections.abc import Awaitable, Callable, Mapping

from gateway.client import Client
from gateway.envelope import Envelope
from gateway.handlers import broadcast, discovery, messages, requests, triad

Handler = Callable[[Client, Envelope], Awaitable[None]]

HANDLERS: Mapping[str, Handler] = {
    "handshake": discovery.shake_hands,
    "discovery": discovery.discover,
    "status": discovery.show_status,
    "message": messages.take_message,
    "response": messages.take_message,
    "error": messages.take_message,
    "request": requests.take_request,
    "broadcast": broadcast.broadcast,
    "proposal": triad.take_proposal,
    "vote": triad.take_vote,
}
