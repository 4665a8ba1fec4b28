"""Whom an agent may ask, with the access of the user on whose behalf it does."""

from django.db.models import Q

from agents.core.targets import NoSuchTarget, find_agent, get_peer, peers_of
from agents.core.types import Target
from agents.links.channel.frames import ListedAgent, ListedPeer
from agents.models import Agent
from agents.models.reachable import online_sessions
from agents.transcript.access import NotAllowed, Role

MAX_LISTED = 500


def askable_agents(user_id: int, part: str) -> list[ListedAgent]:
    """Published agents a user may ask, by handle; `part` of a handle, name or tagline narrows them down."""
    if not part.isprintable():
        return []
    found = Agent.objects.askable_by(user_id).select_related("owner")
    if part:
        found = found.filter(Q(handle__icontains=part) | Q(name__icontains=part) | Q(tagline__icontains=part))
    agents: list[Agent] = list(found.order_by("handle_key")[:MAX_LISTED])
    online = online_sessions({agent.session_id for agent in agents})
    return [
        ListedAgent(
            handle=agent.handle,
            owner_login=agent.owner.login,
            name=agent.name,
            tagline=agent.tagline,
            online=agent.session_id in online,
            mine=agent.owner_id == user_id,
            isolated=agent.isolated,
        )
        for agent in agents
    ]


def askable_peers(user_id: int, own_session_id: int) -> list[ListedPeer]:
    """Sessions a user may prompt, without the agent's own."""
    peers = peers_of(user_id, at_least=Role.PROMPTER)
    others = [peer for peer in peers if peer.session.pk != own_session_id]
    return [ListedPeer(peer.name, f"@{peer.session.routing_name}", peer.is_online) for peer in others]


def find_routed(name: str, user_id: int) -> Target:
    """A session the user may prompt, else a published agent of that handle.

    Raises:
        NoSuchTarget: neither.
        NotAllowed: a session that the user may only look at, and no such agent.
        AmbiguousPeer: several connected sessions.
    """
    try:
        return get_peer(name, user_id).target
    except (NoSuchTarget, NotAllowed):
        agent = find_agent(name, user_id)
        if agent is None:
            raise
        return agent


def get_agent(handle: str, user_id: int) -> Target:
    """The published agent of a handle.

    Raises:
        NoSuchTarget: none that this user may ask.
    """
    agent = find_agent(handle, user_id)
    if agent is None:
        raise NoSuchTarget
    return agent
