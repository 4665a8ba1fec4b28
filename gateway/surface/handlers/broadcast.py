"""Broadcasts: one frame to every other connected agent of the team (section 10.6). They are no turns."""

from typing import Any

from gateway.service.client import Client
from gateway.service.seats.seats import load_connected
from gateway.service.team.registry import check_not_halted
from gateway.service.team.team_rules import AgentName
from gateway.surface.handlers.team import get_team
from gateway.wire import frames
from gateway.wire.frames import Envelope, Json

ALIAS = "broadcast"  # as the `agent` of a message


async def broadcast(client: Client, envelope: Envelope) -> None:
    """Push the message to all agents of the team but the sender, and say to which."""
    await _send(client, envelope, envelope.content["message"])


async def broadcast_message(client: Client, envelope: Envelope) -> None:
    """A `message` whose `agent` is `broadcast`: the client library of the protocol sends it."""
    await _send(client, envelope, envelope.content["content"])


async def _send(client: Client, envelope: Envelope, said: Any) -> None:
    owner_id = get_team(client, envelope)
    await client.gateway.router.read(check_not_halted, owner_id)
    own = client.seat.name if client.seat is not None else ""
    seats = [one for one in await client.gateway.router.read(load_connected, owner_id) if one.name != own]
    if own:
        sender, rules = AgentName(owner_id, client.identity.login, own), client.gateway.rules
        seats = [one for one in seats if await rules.may_message(sender, sender._replace(name=one.name))]
    sent = await client.gateway.seats.push(seats, _make_frames(client, envelope, said))
    results = [{"agentId": name, "success": was_sent} for name, was_sent in sorted(sent.items())]
    result = {"success": True, "totalSent": sum(sent.values()), "results": results}
    await client.reply(envelope, "response", {"result": result})


def _make_frames(client: Client, envelope: Envelope, said: Any) -> dict[str, bytes]:
    """The frame as a broadcast, and as a message for agents that take no broadcasts."""
    contents: dict[str, Json] = {
        "broadcast": {**envelope.content, "message": said},
        "message": {"role": "agent", "content": said},
    }
    fields: Json = {
        **envelope.extra,
        "id": envelope.id or frames.new_id(),
        "from": client.sender.name,
        "timestamp": envelope.timestamp_ms or frames.now_ms(),
    }
    metadata = {
        key: value for key, value in envelope.metadata.items() if key not in {"caller", "requiresResponse"}
    }
    if envelope.session_id:
        fields["sessionId"] = envelope.session_id
    return {
        name: frames.encode({**fields, "type": name, "agent": ALIAS, "content": content, "metadata": metadata})
        for name, content in contents.items()
    }
