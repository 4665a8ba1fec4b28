"""The handshake; frames and services that find agents, or are about the client's team (sections 5, 7, 9, 16)."""

from accounts.models import User
from agents.core.ask_starter import NOT_ASKED
from gateway.service.client import Client
from gateway.service.seats.seat import SAID, set_status
from gateway.service.team import registry
from gateway.wire import frames
from gateway.wire.errors import NOT_FOUND, ErrorCode, FrameRefused, bad_content, forbidden, missing, refuse_denied
from gateway.wire.frame_types import is_agent_name, is_target
from gateway.wire.frames import Envelope, Json
from gateway.wire.permissions import OF_SERVICES, Action, is_permitted


async def take_status(client: Client, envelope: Envelope) -> None:
    """Show the statuses of agents, or set that of the agent that sends it."""
    if not envelope.content:
        await _show_statuses(client, envelope)
        return
    if "status" not in envelope.content:
        raise missing("content.status is missing", field="content.status")
    status, seat = envelope.content["status"], client.seat
    if seat is None or envelope.content.get("agent", seat.name) != seat.name:
        raise forbidden("an agent sets its own status, and no other one", field="content.agent")
    if status not in SAID:
        raise bad_content(f"content.status: an agent that is connected is not {status}", field="content.status")
    owner_id = client.identity.user_id
    previous = await client.gateway.router.read(set_status, owner_id, seat.name, status)
    seat.status = status
    await client.gateway.statuses.publish(owner_id, seat.name, status, previous)


async def show_workspaces(client: Client, envelope: Envelope) -> None:
    """The workspaces of the client's team, or one of them."""
    owner_id, router = get_team(client, envelope), client.gateway.router
    name = envelope.content.get("name")
    if envelope.content["action"] == "get" and name is None:
        raise missing("content.name is missing", field="content.name")
    workspaces = await router.read(registry.load_workspaces, owner_id)
    if envelope.content["action"] == "get":
        wanted = await router.read(_name_in_team, str(name), owner_id)
        workspaces = [one for one in workspaces if one["name"] == wanted][:1]
        if not workspaces:
            raise FrameRefused(ErrorCode.AGENT_NOT_FOUND, NOT_FOUND)
    await client.reply(envelope, "workspace", {"workspaces": workspaces})


async def show_gateway(client: Client, envelope: Envelope, params: Json) -> Json:
    """Get the health of the gateway for the client's team."""
    return {**await client.gateway.health.show(get_team(client, envelope))}


def get_team(client: Client, envelope: Envelope) -> int:
    """The team that the client acts for: the id of its owner.

    Raises:
        FrameRefused: 5001; 5004 `isolated`, or `works_for_another` while its caller is not its owner, or a
            stranger passed its owner's question on.
    """
    owner_id = client.identity.user_id
    if not client.get_behalf(envelope).is_for(owner_id):
        text = "while this agent works for another caller it reaches nothing of its team"
        raise forbidden(text, reason="works_for_another")
    return owner_id


def _name_in_team(name: str, owner_id: int) -> str:
    """The agent that a name or a handle of the own team means; of another team: 5004, whether it exists or not."""
    if is_agent_name(name):
        return name
    owner, _, slug = name.removeprefix("@").partition("/")
    login = User.objects.filter(pk=owner_id).values_list("login", flat=True).first() or ""
    if owner.lower() != login.lower():
        raise forbidden("this is a workspace of another team", field="content.name")
    return slug


async def _show_statuses(client: Client, envelope: Envelope) -> None:
    user_id = client.get_behalf(envelope).asker.user_id
    found = await client.gateway.router.read(registry.load_agents, user_id)
    shown: list[Json] = [{"agent": one["name"], "status": one["status"]} for one in found]
    await client.reply(envelope, "status", {"agent": frames.GATEWAY, "status": "online", "agents": shown})


async def list_agents(client: Client, envelope: Envelope, params: Json) -> Json:
    """The agents that the client can find."""
    user_id = client.get_behalf(envelope).asker.user_id
    return {"agents": await client.gateway.router.read(registry.load_agents, user_id)}


async def get_agent(client: Client, envelope: Envelope, params: Json) -> Json:
    """One agent by its name."""
    user_id = client.get_behalf(envelope).asker.user_id
    name = params.get("name")
    if name is None:
        raise missing("name is missing", field="content.name")
    if not isinstance(name, str) or not is_target(name):
        raise bad_content("name: want the name of an agent", field="content.name")
    try:
        return {"agent": await client.gateway.router.read(registry.get_agent, name, user_id)}
    except NOT_ASKED as refusal:
        raise refuse_denied(refusal) from None


async def shake_hands(client: Client, envelope: Envelope) -> None:
    """Take what the client advertises, and acknowledge it."""
    if envelope.content["action"] != "advertise":
        raise bad_content("content.action: only the gateway acknowledges", field="content.action")
    client.protocol.take_capabilities(envelope.content.get("capabilities", {}))
    behalf = client.find_behalf(envelope)
    names: list[str] = []
    if behalf and not behalf.isolated and is_permitted(client.identity, Action.FIND):
        names = await client.gateway.router.read(registry.load_names, behalf.asker.user_id)
    await client.say(frames.acknowledge_frame(client.client_id, names))


async def discover(client: Client, envelope: Envelope) -> None:
    """List agents, or show one; with `services` list agents and services. Each answer has `agents`."""
    match envelope.content["action"]:
        case "get":
            content = {"agents": [(await get_agent(client, envelope, envelope.content))["agent"]]}
        case action:
            content = await list_agents(client, envelope, {})
            if action == "services":
                content["services"] = [_describe_gateway(client.gateway.health.public_url)]
    await client.reply(envelope, "discovery", content)


def _describe_gateway(public_url: str) -> Json:
    """The one service that this hub is: the gateway, with what `request` frames may name."""
    return {
        "serviceId": frames.GATEWAY,
        "endpoint": f"{public_url.replace('http', 'ws', 1)}/gateway",
        "capabilities": sorted(OF_SERVICES),
        "healthEndpoint": f"{public_url}/readyz",
    }
