"""The handshake, and frames that find agents and services (sections 5 and 7)."""

from gateway.service.client import Client
from gateway.service.team import registry
from gateway.surface.handlers import agents
from gateway.surface.handlers.requests import SERVICES
from gateway.wire import frames
from gateway.wire.errors import ErrorCode, FrameRefused
from gateway.wire.frames import Envelope, Json
from gateway.wire.permissions import Action, is_permitted


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
    """List agents, or show one; with `services` list agents and services. Each answer has `agents`."""
    match envelope.content["action"]:
        case "get":
            content = {"agents": [(await agents.get_agent(client, envelope, envelope.content))["agent"]]}
        case action:
            content = await agents.list_agents(client, envelope, {})
            if action == "services":
                content["services"] = [_describe_gateway(client.gateway.health.public_url)]
    await client.reply(envelope, "discovery", content)


def _describe_gateway(public_url: str) -> Json:
    """The one service that this hub is: the gateway, with what `request` frames may name."""
    return {
        "serviceId": frames.GATEWAY,
        "endpoint": f"{public_url.replace('http', 'ws', 1)}/gateway",
        "capabilities": sorted(SERVICES),
        "healthEndpoint": f"{public_url}/readyz",
    }
