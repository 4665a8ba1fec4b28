"""Told messages that are not stored: passed on between connected agents of one team, without a turn.

A team chooses this by its rule `storesTold`. The audit has its record of each, as of every frame.
"""

from agents.links.channel.requests import ActingFor
from gateway.connections.client import Client
from gateway.connections.seat import carry_envelope, make_told
from gateway.messages import activity
from gateway.team.registry import TAKE_NO_MESSAGES
from gateway.team.team_rules import AgentName
from gateway.wire.envelope import Envelope
from gateway.wire.frames import encode


async def relay(client: Client, envelope: Envelope, behalf: ActingFor) -> bool:
    """Pass a message on, if it need not be stored; False: it is to be asked like any other.

    Asked are those that want a response, or repeat another, for agents elsewhere or of others, while letters wait
    for the agent, or while an earlier message of this client is on its way: the order of messages holds.

    Raises:
        FrameRefused: 5004, by the lists of peers.
    """
    identity = client.identity
    owner_id = identity.user_id
    if client.sender.only_agent:  # a token for one published agent reaches no seat by its name
        return False
    if envelope.wants_response or behalf.asker.user_id != owner_id or client.messages.is_sending:
        return False
    held = client.gateway.seats.find(owner_id, envelope.agent)
    if held is None or held.seat.status in TAKE_NO_MESSAGES or held.seat is client.seat:
        return False
    if not client.gateway.router.letters.has_none(held.seat.session_id):
        return False
    if not (await client.gateway.rules.get(owner_id)).relays_told:
        return False
    recent, key = client.gateway.router.recent, (identity.login, client.sender.seat)
    if recent.find(key, envelope) is not None:
        return False
    sender = AgentName(owner_id, identity.login, client.sender.seat)
    await client.gateway.rules.check_peers(sender, sender._replace(name=held.seat.name))
    (carried,) = carry_envelope(envelope, client.sender.name, "" if sender.name else identity.login)
    frame = make_told(carried.data, held.seat.name)
    if not held.client.push("message", encode(frame)):
        return False
    recent.add(key, envelope).end()
    if client.gateway.channels.may_reach(owner_id):
        await activity.publish_delivered(client.gateway.channels, owner_id, held.seat.name, frame)
    return True
