"""The handshake, channels, discovery of agents, and requests about the client's team (sections 5, 7 to 9, 16)."""

from collections.abc import Collection, Mapping

from accounts.models import User
from agents.core.ask_starter import NOT_ASKED
from gateway.service import registry
from gateway.service.client import TeamClient
from gateway.service.proposal_reads import get_proposal
from gateway.service.pushes import AgentFilter
from gateway.service.registry import PushedStatus, find_unknown
from gateway.service.seat import OWN_STATUSES, set_status
from gateway.service.status_feed import status_frame
from gateway.wire import frames
from gateway.wire.channels import (
    ACTIVITY,
    GENERAL,
    MESSAGES,
    PLAIN,
    STATUS,
    find_inbox_agent,
    find_proposal_id,
    is_channel,
)
from gateway.wire.errors import (
    NOT_FOUND,
    FrameRefused,
    GatewayErrorCode,
    bad_content,
    bad_type,
    denied_error,
    forbidden,
    missing,
)
from gateway.wire.frame_types import is_agent_name, is_target
from gateway.wire.frames import Envelope, Json, event_frame
from gateway.wire.permissions import Action, is_permitted


async def take_status(client: TeamClient, envelope: Envelope) -> None:
    """Show the statuses of agents, or set that of the agent that sends it."""
    if not envelope.content:
        await _show_statuses(client, envelope)
        return
    if "status" not in envelope.content:
        raise missing("content.status is missing", field="content.status")
    status, seat = envelope.content["status"], client.seat
    if seat is None or envelope.content.get("agent", seat.name) != seat.name:
        raise forbidden("an agent sets its own status, and no other one", field="content.agent")
    if status not in OWN_STATUSES:
        raise bad_content(f"content.status: an agent that is connected is not {status}", field="content.status")
    owner_id = client.identity.user_id
    previous = await client.gateway.router.read(set_status, owner_id, seat.name, status)
    seat.status = status
    await client.gateway.statuses.publish(owner_id, seat.name, status, previous)


async def show_workspaces(client: TeamClient, envelope: Envelope) -> None:
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
            raise FrameRefused(GatewayErrorCode.AGENT_NOT_FOUND, NOT_FOUND)
    await client.reply(envelope, "workspace", {"workspaces": workspaces})


async def show_gateway(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """Get the health of the gateway for the client's team."""
    return {**await client.gateway.health.show(get_team(client, envelope))}


def get_team(client: TeamClient, envelope: Envelope) -> int:
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


async def _show_statuses(client: TeamClient, envelope: Envelope) -> None:
    user_id = client.get_behalf(envelope).asker.user_id
    found = await client.gateway.router.read(registry.load_agents, user_id)
    shown: list[Json] = [{"agent": one["name"], "status": one["status"]} for one in found]
    await client.reply(envelope, "status", {"agent": frames.GATEWAY, "status": "online", "agents": shown})


async def list_agents(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """The agents that the client can find."""
    user_id = client.get_behalf(envelope).asker.user_id
    return {"agents": await client.gateway.router.read(registry.load_agents, user_id)}


async def get_agent(client: TeamClient, envelope: Envelope, params: Json) -> Json:
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
        raise denied_error(refusal) from None


async def shake_hands(client: TeamClient, envelope: Envelope) -> None:
    """Take what the client advertises, and acknowledge it."""
    if envelope.content["action"] != "advertise":
        raise bad_content("content.action: only the gateway acknowledges", field="content.action")
    client.protocol.take_capabilities(envelope.content.get("capabilities", {}))
    names: list[str] = []
    if client.signed_in is not None and is_permitted(client.signed_in, Action.FIND):
        behalf = client.find_behalf(envelope)
        if not behalf.isolated:
            names = await client.gateway.router.read(registry.load_names, behalf.asker.user_id)
    await client.send_frame(frames.acknowledge_frame(client.client_id, names))


FOR_EVENTS = frozenset({GENERAL, MESSAGES, ACTIVITY})
MAX_SUBSCRIPTIONS = 100
MAX_NAMES = 500
MAX_EVENT_CHARS = 64


async def subscribe(client: TeamClient, envelope: Envelope) -> None:
    """Push the frames of a channel to the client from now on. Again replaces the agents that narrow it."""
    owner_id = get_team(client, envelope)
    channel, names = await _read_channel(client, envelope, owner_id)
    channels = client.gateway.channels
    # Subscriptions that the hub made do not count.
    held = {one for _, one in channels.subscriptions(client) if is_channel(one)}
    if len(held) >= MAX_SUBSCRIPTIONS and channel not in held:
        text = f"a connection has at most {MAX_SUBSCRIPTIONS} subscriptions"
        raise bad_content(text, reason="too_many_subscriptions")
    statuses: Mapping[str, PushedStatus] = {}
    if channel == STATUS:
        statuses = await client.gateway.statuses.subscribe(owner_id, client, names)
    else:
        await channels.subscribe(owner_id, channel, client, names)
    await client.reply(envelope, "subscribe", _describe(channel, names) | {"status": "subscribed"})
    for name, status in sorted(statuses.items()):
        if not names or name in names:
            await client.send_frame(status_frame(name, status))


async def unsubscribe(client: TeamClient, envelope: Envelope) -> None:
    """Push no more of a channel, or no more about some agents."""
    owner_id = client.identity.user_id
    channel, names = envelope.content["channel"], _read_names(envelope)
    channels = client.gateway.channels
    held = channels.subscriptions(client).get((owner_id, channel))
    left: AgentFilter | None = held.without(names) if held is not None and names else None
    if left is not None and len(left.names) > MAX_NAMES:
        raise _too_many_names()
    if left is not None:
        await channels.filter(owner_id, channel, client, left)
    else:
        await channels.unsubscribe(owner_id, channel, client)
    await client.reply(envelope, "unsubscribe", _describe(channel, names) | {"status": "unsubscribed"})


async def take_event(client: TeamClient, envelope: Envelope) -> None:
    """Push an event of a client to the subscribers of its channel, `agent:a2a` if it names none."""
    owner_id = get_team(client, envelope)
    event = envelope.extra.get("event", envelope.content.get("event"))
    if not isinstance(event, str):
        raise bad_type("event: want a string", field="event")
    if not event or len(event) > MAX_EVENT_CHARS or not event.isprintable():
        raise bad_content(f"event: want 1 to {MAX_EVENT_CHARS} printable characters", field="event")
    if event.startswith("gateway."):
        raise forbidden("only the gateway publishes gateway events", field="event")
    channel = envelope.content.get("channel", GENERAL)
    if not isinstance(channel, str):
        raise bad_type("content.channel: want a string", field="content.channel")
    if channel not in FOR_EVENTS:
        raise bad_content(f"content.channel: want one of {', '.join(sorted(FOR_EVENTS))}", field="content.channel")
    given: Json = {"id": envelope.id, "sessionId": envelope.session_id}
    fields: Json = {key: value for key, value in given.items() if value} | {"from": client.sender.name}
    frame = event_frame(event, {**envelope.content, "event": event}, envelope.metadata, **fields)
    await client.gateway.keep_pace(owner_id, client.gateway.channels.count(owner_id, channel))
    await client.gateway.channels.publish(owner_id, channel, frame, agent=client.sender.seat)


async def _read_channel(client: TeamClient, envelope: Envelope, owner_id: int) -> tuple[str, Collection[str]]:
    """The channel that a frame names, and the agents that narrow it.

    Raises:
        FrameRefused: 2005, 3001, 5004.
    """
    channel, names = envelope.content["channel"], _read_names(envelope)
    agent = find_inbox_agent(channel)
    if agent and client.seat is not None and agent != client.seat.name:
        raise forbidden("the inbox of an agent is open to it and to its owner", field="content.channel")
    if not is_channel(channel):
        text = f"content.channel: want {', '.join(sorted(PLAIN))}, agent:NAME:inbox or triad:ID"
        raise bad_content(text, field="content.channel")
    wanted = [*names, agent] if agent else list(names)
    unknown = await client.gateway.router.read(find_unknown, owner_id, wanted) if wanted else None
    if unknown is not None:
        text = f"the team has no agent of the name {unknown[:64]!r}"
        raise FrameRefused(
            GatewayErrorCode.AGENT_NOT_FOUND, text, field="content.agents" if unknown in names else ""
        )
    if proposal_id := find_proposal_id(channel):
        await client.gateway.triad.call(get_proposal, owner_id, proposal_id)
    return channel, names


def _read_names(envelope: Envelope) -> Collection[str]:
    names = frozenset(envelope.content.get("agents", ()))
    if len(names) > MAX_NAMES:
        raise _too_many_names()
    unknown = next((name for name in names if not is_agent_name(name)), None)
    if unknown is not None:
        text = f"no agent has the name {unknown[:64]!r}"
        raise FrameRefused(GatewayErrorCode.AGENT_NOT_FOUND, text, field="content.agents")
    return names


def _too_many_names() -> FrameRefused:
    text = f"content.agents: at most {MAX_NAMES} agents narrow a subscription"
    return bad_content(text, field="content.agents")


def _describe(channel: str, names: Collection[str]) -> Json:
    return {"channel": channel} | ({"agents": sorted(names)} if names else {})
