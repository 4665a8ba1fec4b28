"""The handler of each type of frames that a signed-in client sends, and of each service (section 10.7).

A handler gets the client and the checked envelope; a service gets the parameters of its request, too.
"""

from collections.abc import Awaitable, Callable, Mapping

from gateway.service.client import TeamClient
from gateway.surface.handlers import history, messages, team, triad
from gateway.surface.handlers.messages import send
from gateway.wire.errors import FrameRefused, GatewayErrorCode, bad_content
from gateway.wire.frames import Envelope, Json, describe_error
from gateway.wire.permissions import Action, check_action, check_service

Service = Callable[[TeamClient, Envelope, Json], Awaitable[Json]]

SERVICES: Mapping[str, Service] = {
    "agents.get": team.get_agent,
    "agents.list": team.list_agents,
    "gateway.status": team.show_gateway,
    "inbox.clear": history.clear,
    "inbox.count": history.count,
    "inbox.get": history.get,
    "inbox.list": history.list_inboxes,
    "inbox.mark_read": history.mark_read,
    "inbox.receipt": history.receipt,
    "inbox.send": history.send,
    "inbox.unread": history.unread,
    "sessions.archive": history.archive_sessions,
    "sessions.commit": history.commit_session,
    "sessions.create": history.create_session,
    "sessions.delete": history.delete_session,
    "sessions.export": history.export_session,
    "sessions.get": history.get_session,
    "sessions.import": history.import_sessions,
    "sessions.list": history.list_sessions,
    "triad.get": triad.get_proposal,
    "triad.list": triad.list_proposals,
}
Handler = Callable[[TeamClient, Envelope], Awaitable[None]]


async def take_request(client: TeamClient, envelope: Envelope) -> None:
    """Run the service, and answer with its result or its error. A service of an agent is asked like a message."""
    name = envelope.content["service"]
    if name not in SERVICES and envelope.agent:
        own = client.sender.seat
        check_action(client.identity, Action.SEND, own=own, agent=own)
        send(client, envelope)
        return
    if name not in SERVICES:
        text = f"there is no service of that name: want an agent, or one of {', '.join(sorted(SERVICES))}"
        raise bad_content(text, field="content.service")
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


HANDLERS: Mapping[str, Handler] = {
    "handshake": team.shake_hands,
    "discovery": team.discover,
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


def get_handler(type_name: str) -> Handler:
    """The handler of a type.

    Raises:
        FrameRefused: 2004, no client may send it here.
    """
    if type_name not in HANDLERS:
        text = f"this hub does not serve {type_name} here"
        raise FrameRefused(GatewayErrorCode.UNKNOWN_TYPE, text, field="type", reason="not_supported")
    return HANDLERS[type_name]
