"""The handler of each type of frames that a signed-in client sends, and of each service (section 10.7).

A handler gets the client and the checked envelope; a service gets the parameters of its request, too.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import NamedTuple

from gateway.service.client import TeamClient
from gateway.surface.handlers import history, messages, team, triad
from gateway.surface.handlers.messages import send
from gateway.wire.errors import FrameRefused, GatewayErrorCode, bad_content
from gateway.wire.frames import GATEWAY, Envelope, Json, describe_error
from gateway.wire.permissions import Action, check_action, check_service

Handler = Callable[[TeamClient, Envelope], Awaitable[None]]


class Service(NamedTuple):
    """A service: the action that its caller needs the right for, and what runs it."""

    action: Action
    run: Callable[[TeamClient, Envelope, Json], Awaitable[Json]]


SERVICES: Mapping[str, Service] = {
    "agents.get": Service(Action.FIND, team.get_agent),
    "agents.list": Service(Action.FIND, team.list_agents),
    "gateway.status": Service(Action.FIND, team.show_gateway),
    "inbox.clear": Service(Action.WRITE_AGENT, history.clear),
    "inbox.count": Service(Action.READ_AGENT, history.count),
    "inbox.get": Service(Action.READ_AGENT, history.get),
    "inbox.list": Service(Action.READ_AGENT, history.list_inboxes),
    "inbox.mark_read": Service(Action.WRITE_AGENT, history.mark_read),
    "inbox.receipt": Service(Action.SEND, history.receipt),
    "inbox.send": Service(Action.SEND, history.send),
    "inbox.unread": Service(Action.READ_AGENT, history.unread),
    "sessions.archive": Service(Action.MANAGE_AGENT, history.archive_sessions),
    "sessions.commit": Service(Action.WRITE_AGENT, history.commit_session),
    "sessions.create": Service(Action.WRITE_AGENT, history.create_session),
    "sessions.delete": Service(Action.MANAGE_AGENT, history.delete_session),
    "sessions.export": Service(Action.READ_AGENT, history.export_session),
    "sessions.get": Service(Action.READ_AGENT, history.get_session),
    "sessions.import": Service(Action.WRITE_AGENT, history.import_sessions),
    "sessions.list": Service(Action.FIND, history.list_sessions),
    "triad.get": Service(Action.FIND, triad.get_proposal),
    "triad.list": Service(Action.FIND, triad.list_proposals),
}


async def take_request(client: TeamClient, envelope: Envelope) -> None:
    """Run the service, and answer with its result or error. A request to an agent is handled like a message."""
    name = envelope.content["service"]
    if name not in SERVICES and envelope.agent:
        own = client.sender.seat
        check_action(client.identity, Action.SEND, own=own, agent=own)
        send(client, envelope)
        return
    if (service := SERVICES.get(name)) is None:
        text = f"there is no service of that name: want an agent, or one of {', '.join(sorted(SERVICES))}"
        raise bad_content(text, field="content.service")
    params = envelope.content.get("params", {})
    try:
        check_service(client.identity, client.sender.seat, service.action, params)
        content: Json = {"result": await service.run(client, envelope, params)}
    except FrameRefused as refused:
        if refused.close_code:
            raise
        client.note.finish(refused)
        content = {"error": describe_error(refused)}
    await client.reply(envelope, "response", content)


async def discover(client: TeamClient, envelope: Envelope) -> None:
    """List agents, or show one; with `services` list agents and services. Each answer has `agents`."""
    match envelope.content["action"]:
        case "get":
            content = {"agents": [(await team.get_agent(client, envelope, envelope.content))["agent"]]}
        case action:
            content = await team.list_agents(client, envelope, {})
            if action == "services":
                content["services"] = [_describe_gateway(client.gateway.health.public_url)]
    await client.reply(envelope, "discovery", content)


def _describe_gateway(public_url: str) -> Json:
    """The one service that this hub is: the gateway, with what `request` frames may name."""
    return {
        "serviceId": GATEWAY,
        "endpoint": f"{public_url.replace('http', 'ws', 1)}/gateway",
        "capabilities": sorted(SERVICES),
        "healthEndpoint": f"{public_url}/readyz",
    }


HANDLERS: Mapping[str, Handler] = {
    "handshake": team.shake_hands,
    "discovery": discover,
    "status": team.take_status,
    "workspace": team.show_workspaces,
    "subscribe": team.subscribe,
    "unsubscribe": team.unsubscribe,
    "event": team.take_event,
    "message": messages.take_message,
    "response": messages.take_message,
    "error": messages.take_message,
    "request": take_request,
    "broadcast": messages.broadcast,
    "proposal": triad.take_proposal,
    "vote": triad.take_vote,
}
# Handling these reads or writes rows, and so may handling a `message`.
ROUTED_TYPES = frozenset({"broadcast", "discovery", "proposal", "request", "vote", "workspace"})


def get_handler(type_name: str) -> Handler:
    """The handler of a type.

    Raises:
        FrameRefused: 2004, no client may send it here.
    """
    if type_name not in HANDLERS:
        text = f"this hub does not serve {type_name} here"
        raise FrameRefused(GatewayErrorCode.UNKNOWN_TYPE, text, field="type", reason="not_supported")
    return HANDLERS[type_name]
