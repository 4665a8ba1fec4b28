"""Told messages that are not stored: passed on between connected agents of one team, without a turn.

A team chooses this by its rule `storesTold`. The audit has its record of each, as of every frame.
"""

import asyncio

from agents.links.channel.requests import ActingFor
from gateway.service.client import Client
from gateway.service.messages import status_feed
from gateway.service.messages.duplicates import key_of
from gateway.service.seats.seat_frames import address_frame, carry_envelope, name_of_asker
from gateway.service.seats.seats import HeldSeat
from gateway.service.team.registry import TAKE_NO_MESSAGES
from gateway.service.team.team_rules import AgentName
from gateway.wire.frames import Envelope, encode
from gateway.wire.permissions import find_only_agent
from kit.durations import seconds

ROOM_WITHIN_S = seconds(5.0, at_least_s=1.0)  # less than after which a client that takes nothing is closed


async def relay(client: Client, envelope: Envelope, behalf: ActingFor) -> bool:
    """Pass a message on, if it need not be stored; False: it is to be asked like any other.

    Asked are those that want a response, or repeat another, for agents elsewhere or of others, or that a stranger
    passed on. So are all while letters wait for the agent, or while an earlier message of this client is on its
    way: the order of messages holds.

    While many frames wait for the recipient, nothing more is read of the sender, at most for ROOM_WITHIN_S.

    Raises:
        FrameRefused: 5004, by the lists of peers.
    """
    if envelope.wants_response or not behalf.is_for(client.identity.user_id):
        return False
    key = key_of(envelope)
    held = await _find_recipient(client, envelope, key)
    if held is not None and not held.client.has_room:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + ROOM_WITHIN_S
        while held is not None and not held.client.has_room and loop.time() < deadline:
            await held.client.wait_for_room(deadline - loop.time())
            held = await _find_recipient(client, envelope, key)  # the rules, and who is there, may have changed
    return held is not None and await _push(client, envelope, key, held)


async def _find_recipient(client: Client, envelope: Envelope, key: bytes) -> HeldSeat | None:
    """The agent of the team to which a message may be passed on; None: it is to be asked.

    Raises:
        FrameRefused: 5004, by the lists of peers.
    """
    identity, gateway = client.identity, client.gateway
    if client.messages.is_sending or find_only_agent(identity):  # a token for one agent reaches no seat by name
        return None
    held = gateway.seats.find(identity.user_id, envelope.agent)
    if held is None or held.seat.status in TAKE_NO_MESSAGES or held.seat is client.seat:
        return None
    if not gateway.router.letters.has_none(held.seat.session_id):
        return None
    rules = await gateway.rules.get(identity.user_id)
    if not rules.relays_told:
        return None
    seat = _seat_of(client)
    if gateway.router.recent.find((identity.login, seat), key) is not None:
        return None
    sender = AgentName(identity.user_id, identity.login, seat)
    rules.check_peers(sender, sender._replace(name=held.seat.name))
    return held


async def _push(client: Client, envelope: Envelope, key: bytes, held: HeldSeat) -> bool:
    identity, gateway, seat = client.identity, client.gateway, _seat_of(client)
    sender, caller = (seat, "") if seat else (name_of_asker(identity.login), identity.login)
    frame = address_frame(carry_envelope(envelope, sender, caller), held.seat.name)
    if not held.client.push("message", encode(frame)):
        return False
    gateway.router.recent.add((identity.login, seat), key).end()
    if gateway.channels.may_reach(identity.user_id):
        await status_feed.publish_delivered(gateway.channels, identity.user_id, held.seat.name, frame)
    return True


def _seat_of(client: Client) -> str:
    return client.seat.name if client.seat is not None else ""
