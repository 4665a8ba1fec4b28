"""Services that find agents."""

from agents.core.ask_starter import NOT_ASKED
from gateway.service.client import Client
from gateway.service.team import registry
from gateway.wire.errors import ErrorCode, FrameRefused, refuse_denied
from gateway.wire.frame_types import is_target
from gateway.wire.frames import Envelope, Json


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
    except NOT_ASKED as refusal:
        raise refuse_denied(refusal) from None


SERVICES = {"agents.list": list_agents, "agents.get": get_agent}
