"""Messages to agents, their answers, and broadcasts (section 10).

A message is a turn, unless it is told, and its team stores no told messages (its rule `storesTold`): then it is
passed on between connected agents, as a broadcast is. The audit has its record of each, as of every frame.
"""

import asyncio
import logging
from typing import Any

from agents.links.channel.driving import ActingFor
from agents.links.channel.frames import BadChannelFrame
from gateway.service import status_feed
from gateway.service.client import TeamClient
from gateway.service.frame_log import DROPPED
from gateway.service.messages import LONGEST_WAIT_S, NewMessage
from gateway.service.open_messages import MessageIdentity, identity_of
from gateway.service.pushes import HeldSeat, load_connected
from gateway.service.registry import TAKE_NO_MESSAGES, check_not_halted
from gateway.service.seat_frames import address_frame, carry_envelope, name_of_asker
from gateway.service.team_rules import AgentName, allow_message, peer_error
from gateway.surface.handlers.team import get_team
from gateway.wire import frames
from gateway.wire.errors import bad_content
from gateway.wire.frames import Envelope, Json, encode
from gateway.wire.permissions import find_only_agent
from kit.account_pace import ROUTED
from kit.durations import seconds

logger = logging.getLogger(__name__)
ALIAS = "broadcast"  # as the `agent` of a message
# Shorter than the time after which a client that does not read is closed.
ROOM_WITHIN_S = seconds(5.0, at_least_s=1.0)


async def take_message(client: TeamClient, envelope: Envelope) -> None:
    """A reply to an open message settles it; any other message is asked."""
    seat = client.seat
    if seat is not None and (frame_id := seat.find_open(envelope)) is not None:
        try:
            await seat.take_reply(frame_id, envelope)
        except BadChannelFrame as bad:
            raise bad_content(str(bad), reason=bad.error.code) from None
    elif (seat is not None and seat.drop_late(envelope)) or envelope.type != "message":
        logger.info("gateway.late_response")
        client.note.outcome = DROPPED
    elif envelope.agent == ALIAS:
        await broadcast(client, envelope)
    elif not await relay(client, envelope, client.get_behalf(envelope)):
        await client.pace.keep(ROUTED)
        if client.is_over:
            client.note.outcome = DROPPED
        else:
            send(client, envelope)


def send(client: TeamClient, envelope: Envelope) -> None:
    """Send a message, or a request, to its agent; the reply comes later."""
    behalf = client.get_behalf(envelope)
    wait_s = min(LONGEST_WAIT_S, envelope.metadata.get("ttl", client.protocol.timeout_ms / 1000))
    client.start(client.messages.take(NewMessage(envelope, behalf, client.sender, wait_s), client.note), "message")


async def broadcast(client: TeamClient, envelope: Envelope) -> None:
    """Push the message to all agents of the team but the sender, and answer to which.

    A `message` whose `agent` is `broadcast` is a broadcast, too: the client library of the protocol sends it.
    """
    said = envelope.content["message" if envelope.type == "broadcast" else "content"]
    owner_id = get_team(client, envelope)
    await client.gateway.router.read(check_not_halted, owner_id)
    own = client.seat_name
    seats = [one for one in await client.gateway.router.read(load_connected, owner_id) if one.name != own]
    if own:
        sender, rules = AgentName(owner_id, client.identity.login, own), client.gateway.rules
        seats = [one for one in seats if await rules.may_message(sender, sender._replace(name=one.name))]
    await client.gateway.keep_pace(owner_id, len(seats))
    sent = await client.gateway.seats.push(seats, _make_frames(client, envelope, said))
    results = [{"agentId": name, "success": was_sent} for name, was_sent in sorted(sent.items())]
    result = {"success": True, "totalSent": sum(sent.values()), "results": results}
    await client.reply(envelope, "response", {"result": result})


def _make_frames(client: TeamClient, envelope: Envelope, said: Any) -> dict[str, bytes]:
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


async def relay(client: TeamClient, envelope: Envelope, behalf: ActingFor) -> bool:
    """Pass a message on, if it need not be stored; False: it is to be asked like any other.

    Asked are those that want a response, or repeat another, for agents elsewhere or of others, or that a stranger
    passed on. Every message is stored while messages wait for the agent, or while an earlier message of this
    client is on its way, so that messages keep their order.

    While many frames wait for the recipient, nothing more is read of the sender, at most for ROOM_WITHIN_S.

    Raises:
        FrameRefused: 5004, by the lists of peers.
    """
    if envelope.wants_response or not behalf.is_for(client.identity.user_id):
        return False
    identity = identity_of(envelope, client.identity.login, client.seat_name)
    held = await _find_recipient(client, envelope, identity)
    if held is not None and not held.client.has_room:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + ROOM_WITHIN_S
        while held is not None and not held.client.has_room and loop.time() < deadline:
            await held.client.wait_for_room(deadline - loop.time())
            # Checked again: the rules and the connected agents may have changed.
            held = await _find_recipient(client, envelope, identity)
    return held is not None and await _push(client, envelope, identity, held)


async def _find_recipient(client: TeamClient, envelope: Envelope, known_as: MessageIdentity) -> HeldSeat | None:
    """The agent of the team to which a message may be passed on; None: it is to be asked.

    Raises:
        FrameRefused: 5004, by the lists of peers.
    """
    identity, gateway = client.identity, client.gateway
    # A token for one agent cannot address seats by name.
    if client.messages.is_sending or find_only_agent(identity):
        return None
    held = gateway.seats.find(identity.user_id, envelope.agent)
    if held is None or held.seat.status in TAKE_NO_MESSAGES or held.seat is client.seat:
        return None
    if not gateway.router.queue.has_none(held.seat.session_id):
        return None
    rules = await gateway.rules.get(identity.user_id)
    if not rules.relays_told:
        return None
    seat = client.seat_name
    if gateway.recent.find(known_as) is not None:
        return None
    sender = AgentName(identity.user_id, identity.login, seat)
    if seat and not allow_message(sender, rules.peers, sender._replace(name=held.seat.name), rules.peers):
        raise peer_error()
    return held


async def _push(client: TeamClient, envelope: Envelope, known_as: MessageIdentity, held: HeldSeat) -> bool:
    identity, gateway, seat = client.identity, client.gateway, client.seat_name
    sender, caller = (seat, "") if seat else (name_of_asker(identity.login), identity.login)
    frame = address_frame(carry_envelope(envelope, sender, caller), held.seat.name)
    if not held.client.push("message", encode(frame)):
        return False
    gateway.recent.add(known_as).end()
    if gateway.channels.may_reach(identity.user_id):
        await status_feed.publish_delivered(gateway.channels, identity.user_id, held.seat.name, frame)
    return True
