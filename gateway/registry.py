"""The agents that a user can find by name: those of the user, over every link, and those shared with the user."""

from agents.core.ask_starter import MOST_PEERS, Peer, get_peer, load_peers
from agents.models import Turn
from agents.transcript.access import Role
from gateway.envelope import Json
from kit.clock import db_now

ROLE = "agent"


def load_agents(user_id: int) -> list[Json]:
    """The agents as discovery shows them, the own ones first; at most MOST_PEERS."""
    return _show(load_peers(user_id, at_least=Role.PROMPTER, most=MOST_PEERS))


def get_agent(name: str, user_id: int) -> Json:
    """One agent by its name.

    Raises:
        NoSuchTarget, NotAllowed, AmbiguousPeer: as `get_peer`.
    """
    return _show([get_peer(name, user_id)])[0]


def load_names(user_id: int) -> list[str]:
    """The names of the agents that the user can send messages to."""
    return [_name_of(one) for one in load_peers(user_id, at_least=Role.PROMPTER, most=MOST_PEERS)]


def _show(peers: list[Peer]) -> list[Json]:
    sessions = {peer.session.pk for peer in peers if peer.is_online}
    held = Turn.objects.holding().filter(claim_until__gt=db_now(), session_id__in=sessions)
    busy = set(held.values_list("session_id", flat=True))
    return [
        {
            "name": _name_of(peer),
            "role": ROLE,
            "status": _status_of(peer, busy),
            "workspace": f"~/.openclaw/agents/{peer.session.routing_name}",
        }
        for peer in peers
    ]


def _name_of(peer: Peer) -> str:
    return peer.session.routing_name if peer.is_mine else f"@{peer.name}"


def _status_of(peer: Peer, busy: set[int]) -> str:
    if not peer.is_online:
        return "offline"
    return "busy" if peer.session.pk in busy else "online"
