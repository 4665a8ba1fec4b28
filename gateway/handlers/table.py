"""The handler of each type of frames that a signed-in client sends."""

from collections.abc import Awaitable, Callable, Mapping

from gateway.client import Client
from gateway.envelope import Envelope
from gateway.handlers import broadcast, channels, discovery, messages, requests, team, triad

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
