"""Requests of gateway services (section 10.7). A service gets the client, the envelope and its parameters."""

from collections.abc import Awaitable, Callable, Mapping

from gateway.service.client import Client
from gateway.surface.handlers import agents, inbox, sessions, team, triad
from gateway.surface.handlers.messages import send
from gateway.wire.errors import ErrorCode, FrameRefused
from gateway.wire.frames import Envelope, Json, describe_error
from gateway.wire.permissions import Action, check_action, check_service

Service = Callable[[Client, Envelope, Json], Awaitable[Json]]

SERVICES: Mapping[str, Service] = {
    **agents.SERVICES,
    **inbox.SERVICES,
    **sessions.SERVICES,
    **team.SERVICES,
    **triad.SERVICES,
}


async def take_request(client: Client, envelope: Envelope) -> None:
    """Run the service, and answer with its result or its error. A service of an agent is asked like a message."""
    name = envelope.content["service"]
    if name not in SERVICES and envelope.agent:
        own = client.sender.seat
        check_action(client.identity, Action.SEND, own=own, agent=own)
        send(client, envelope)
        return
    if name not in SERVICES:
        text = f"there is no service of that name: want an agent, or one of {', '.join(sorted(SERVICES))}"
        raise FrameRefused(ErrorCode.INVALID_CONTENT, text, field="content.service")
    params = envelope.content.get("params", {})
    try:
        check_service(client.identity, client.sender.seat, name, params)
        content: Json = {"result": await SERVICES[name](client, envelope, params)}
    except FrameRefused as refused:
        if refused.close_code:
            raise
        client.note.finish(refused)
        content = {"error": describe_error(refused)}
    await client.reply(envelope, "response", content)
