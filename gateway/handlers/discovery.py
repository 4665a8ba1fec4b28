"""The handshake, and frames that find agents (sections 5 and 7)."""

from gateway import frames, registry
from gateway.client import Client
from gateway.envelope import Envelope, Json
from gateway.errors import ErrorCode, FrameRefused, refuse_denied
from gateway.frame_types import is_target
from gateway.messages import REFUSALS
from gateway.permissions import Action, is_permitted


async def shake_hands(client: Client, envelope: Envelope) -> None:
    """Take what the client advertises, and acknowledge it."""
    if envelope.content["action"] != "advertise":
        text = "content.action: only the gateway acknowledges"
        raise FrameRefused(ErrorCode.INVALID_CONTENT, text, field="content.action")
    client.protocol.take_capabilities(envelope.content.get("capabilities", {}))
    behalf = client.find_behalf(envelope)
    names: list[str] = []
    if behalf and not behalf.isolated and is_permitted(client.identity, Action.FIND):
        names = await client.gateway.router.read(registry.load_names, behalf.asker.user_id)
    await client.say(frames.acknowledge_frame(client.client_id, names))


async def discover(client: Client, envelope: Envelope) -> None:
    """List agents, or show one."""
    match envelope.content["action"]:
        case "list":
            content = await list_agents(client, envelope, {})
        case "get":
            content = {"agents": [(await get_agent(client, envelope, envelope.content))["agent"]]}
        case action:
            text = f"this hub does not serve discovery of {action} yet"
            raise FrameRefused(ErrorCode.UNKNOWN_TYPE, text, reason="not_supported")
    await client.reply(envelope, "discovery", content)


async def show_status(client: Client, envelope: Envelope) -> None:
    """The agents with their statuses."""
    if envelope.content:
        text = "this hub does not take the status of agents yet: it knows who is connected and who works"
        raise FrameRefused(ErrorCode.UNKNOWN_TYPE, text, reason="not_supported")
    user_id = client.get_behalf(envelope).asker.user_id
    agents = await client.gateway.router.read(registry.load_agents, user_id)
    shown = [{"agent": one["name"], "status": one["status"]} for one in agents]
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
        raise FrameRefused(ErrorCode.MISSING_FIELD, "name is missing", field="content.name")
    if not isinstance(name, str) or not is_target(name):
        raise FrameRefused(ErrorCode.INVALID_CONTENT, "name: want the name of an agent", field="content.name")
    try:
        return {"agent": await client.gateway.router.read(registry.get_agent, name, user_id)}
    except REFUSALS as refusal:
        raise refuse_denied(refusal) from None


SERVICES = {"agents.list": list_agents, "agents.get": get_agent}
