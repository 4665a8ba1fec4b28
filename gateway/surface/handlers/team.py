"""Frames and services about the client's own team: statuses, workspaces, health (sections 7, 9 and 16)."""

from accounts.models import User
from gateway.service.client import Client
from gateway.service.seats.seat import SAID, set_status
from gateway.service.team import registry
from gateway.wire import frames
from gateway.wire.errors import NOT_FOUND, ErrorCode, FrameRefused
from gateway.wire.frame_types import is_agent_name
from gateway.wire.frames import Envelope, Json


async def take_status(client: Client, envelope: Envelope) -> None:
    """Show the statuses of agents, or set that of the agent that sends it."""
    if not envelope.content:
        await _show_statuses(client, envelope)
        return
    if "status" not in envelope.content:
        raise FrameRefused(ErrorCode.MISSING_FIELD, "content.status is missing", field="content.status")
    status, seat = envelope.content["status"], client.seat
    if seat is None or envelope.content.get("agent", seat.name) != seat.name:
        text = "an agent sets its own status, and no other one"
        raise FrameRefused(ErrorCode.PERMISSION_DENIED, text, field="content.agent")
    if status not in SAID:
        text = f"content.status: an agent that is connected is not {status}"
        raise FrameRefused(ErrorCode.INVALID_CONTENT, text, field="content.status")
    owner_id = client.identity.user_id
    previous = await client.gateway.router.read(set_status, owner_id, seat.name, status)
    seat.status = status
    await client.gateway.statuses.publish(owner_id, seat.name, status, previous)


async def show_workspaces(client: Client, envelope: Envelope) -> None:
    """The workspaces of the client's team, or one of them."""
    owner_id, router = get_team(client, envelope), client.gateway.router
    name = envelope.content.get("name")
    if envelope.content["action"] == "get" and name is None:
        raise FrameRefused(ErrorCode.MISSING_FIELD, "content.name is missing", field="content.name")
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
        raise FrameRefused(ErrorCode.PERMISSION_DENIED, text, reason="works_for_another")
    return owner_id


def _name_in_team(name: str, owner_id: int) -> str:
    """The agent that a name or a handle of the own team means; of another team: 5004, whether it exists or not."""
    if is_agent_name(name):
        return name
    owner, _, slug = name.removeprefix("@").partition("/")
    login = User.objects.filter(pk=owner_id).values_list("login", flat=True).first() or ""
    if owner.lower() != login.lower():
        text = "this is a workspace of another team"
        raise FrameRefused(ErrorCode.PERMISSION_DENIED, text, field="content.name")
    return slug


async def _show_statuses(client: Client, envelope: Envelope) -> None:
    user_id = client.get_behalf(envelope).asker.user_id
    found = await client.gateway.router.read(registry.load_agents, user_id)
    shown: list[Json] = [{"agent": one["name"], "status": one["status"]} for one in found]
    await client.reply(envelope, "status", {"agent": frames.GATEWAY, "status": "online", "agents": shown})


SERVICES = {"gateway.status": show_gateway}
