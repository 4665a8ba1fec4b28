"""Subscriptions to channels, and events for their subscribers (section 8)."""

from collections.abc import Collection, Mapping

from gateway.service.channels import AgentFilter
from gateway.service.client import Client
from gateway.service.messages.status_feed import status_frame
from gateway.service.team.registry import AgentStatus, find_unknown
from gateway.service.triad.proposal_reads import get_proposal
from gateway.surface.handlers.team import get_team
from gateway.wire.errors import ErrorCode, FrameRefused, bad_content, bad_type, forbidden
from gateway.wire.frame_types import (
    ACTIVITY,
    GENERAL,
    MESSAGES,
    PLAIN,
    STATUS,
    find_inbox_agent,
    find_proposal_id,
    is_agent_name,
    is_channel,
)
from gateway.wire.frames import Envelope, Json, event_frame

FOR_EVENTS = frozenset({GENERAL, MESSAGES, ACTIVITY})
MOST_SUBSCRIPTIONS = 100
MOST_NAMES = 500
MAX_EVENT_CHARS = 64


async def subscribe(client: Client, envelope: Envelope) -> None:
    """Push the frames of a channel to the client from now on. Again replaces the agents that narrow it."""
    owner_id = get_team(client, envelope)
    channel, names = await _read_channel(client, envelope, owner_id)
    channels = client.gateway.channels
    held = {one for _, one in channels.subscriptions(client) if is_channel(one)}  # not those that the hub made
    if len(held) >= MOST_SUBSCRIPTIONS and channel not in held:
        text = f"a connection has at most {MOST_SUBSCRIPTIONS} subscriptions"
        raise bad_content(text, reason="too_many_subscriptions")
    statuses: Mapping[str, AgentStatus] = {}
    if channel == STATUS:
        statuses = await client.gateway.statuses.subscribe(owner_id, client, names)
    else:
        await channels.subscribe(owner_id, channel, client, names)
    await client.reply(envelope, "subscribe", _describe(channel, names) | {"status": "subscribed"})
    for name, status in sorted(statuses.items()):
        if not names or name in names:
            await client.say(status_frame(name, status))


async def unsubscribe(client: Client, envelope: Envelope) -> None:
    """Push no more of a channel, or no more about some agents."""
    owner_id = client.identity.user_id
    channel, names = envelope.content["channel"], _read_names(envelope)
    channels = client.gateway.channels
    held = channels.subscriptions(client).get((owner_id, channel))
    left: AgentFilter | None = held.without(names) if held is not None and names else None
    if left is not None and len(left.names) > MOST_NAMES:
        raise _too_many_names()
    if left is not None:
        await channels.filter(owner_id, channel, client, left)
    else:
        await channels.unsubscribe(owner_id, channel, client)
    await client.reply(envelope, "unsubscribe", _describe(channel, names) | {"status": "unsubscribed"})


async def take_event(client: Client, envelope: Envelope) -> None:
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
    await client.gateway.channels.publish(owner_id, channel, frame, agent=client.sender.seat)


async def _read_channel(client: Client, envelope: Envelope, owner_id: int) -> tuple[str, Collection[str]]:
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
        raise FrameRefused(ErrorCode.AGENT_NOT_FOUND, text, field="content.agents" if unknown in names else "")
    if proposal_id := find_proposal_id(channel):
        await client.gateway.triad.call(get_proposal, owner_id, proposal_id)
    return channel, names


def _read_names(envelope: Envelope) -> Collection[str]:
    names = frozenset(envelope.content.get("agents", ()))
    if len(names) > MOST_NAMES:
        raise _too_many_names()
    unknown = next((name for name in names if not is_agent_name(name)), None)
    if unknown is not None:
        text = f"no agent has the name {unknown[:64]!r}"
        raise FrameRefused(ErrorCode.AGENT_NOT_FOUND, text, field="content.agents")
    return names


def _too_many_names() -> FrameRefused:
    text = f"content.agents: at most {MOST_NAMES} agents narrow a subscription"
    return bad_content(text, field="content.agents")


def _describe(channel: str, names: Collection[str]) -> Json:
    return {"channel": channel} | ({"agents": sorted(names)} if names else {})
