"""The agents that a user can find by name: those of the user, over every link, and those shared with the user."""

from collections.abc import Sequence

from django.db.models import Count

from agents.core.ask_starter import MOST_PEERS, Peer, get_peer, load_peers
from agents.core.errors import Halted
from agents.models import Halt, Turn
from agents.models.session import SEEN_AT
from agents.transcript.access import Role, sessions_visible_to
from gateway.models import SessionLog, TeamAgent
from gateway.service.seats.seat import DEFAULT_ROLE, ONLINE
from gateway.service.team.statuses import OFFLINE, load_rows, merge_status, said_status
from gateway.wire.errors import ErrorCode, FrameRefused, refuse_denied
from gateway.wire.frames import Json
from kit.clock import db_now

BUSY = TeamAgent.Status.BUSY.value
ERROR = TeamAgent.Status.ERROR.value
TAKE_NO_MESSAGES = frozenset({BUSY, ERROR})


def load_agents(user_id: int) -> list[Json]:
    """The agents as discovery shows them, the own ones first; at most MOST_PEERS."""
    return _show(load_peers(user_id, at_least=Role.PROMPTER, most=MOST_PEERS))


def load_own_agents(user_id: int) -> list[Json]:
    """The agents of the user's own team, as discovery shows them."""
    peers = load_peers(user_id, at_least=Role.OWNER, most=MOST_PEERS)
    return _show([peer for peer in peers if peer.is_mine])


def get_agent(name: str, user_id: int) -> Json:
    """One agent by its name.

    Raises:
        NoSuchTarget, NotAllowed, AmbiguousPeer: as `get_peer`.
    """
    return _show([get_peer(name, user_id)])[0]


def load_names(user_id: int) -> list[str]:
    """The names of the agents that the user can send messages to, the own ones first; at most MOST_PEERS.

    Each handshake asks for them: it reads names alone, and no rows of sessions.
    """
    found = sessions_visible_to(user_id, at_least=Role.PROMPTER).filter(archived_at=None).order_by(SEEN_AT.desc())
    rows = found.values_list("owner_id", "owner__login", "routing_name")[:MOST_PEERS]
    ordered = sorted(rows, key=lambda row: (row[0] != user_id, f"{row[1]}/{row[2]}".lower()))
    return [name if owner_id == user_id else f"@{login}/{name}" for owner_id, login, name in ordered]


def load_workspaces(owner_id: int) -> list[Json]:
    """The workspaces of a team: one for each agent. `sessions`: how many it has, archived ones too."""
    logs = SessionLog.objects.filter(owner_id=owner_id).values_list("agent")
    sessions = dict(logs.annotate(Count("pk")))
    return [
        {
            "name": one["name"],
            "path": one["workspace"],
            "sessions": sessions.get(one["name"], 0),
            "status": one["status"],
            "role": one["role"],
        }
        for one in load_own_agents(owner_id)
    ]


def check_not_halted(user_id: int) -> None:
    """Check that a user may ask agents, for what reaches agents without a turn.

    Raises:
        FrameRefused: 5004, the user is halted as a caller.
    """
    if Halt.objects.active().filter(kind=Halt.Kind.CALLER, user_id=user_id).exists():
        raise refuse_denied(Halted(is_caller=True))


def check_takes_messages(status: str) -> None:
    """Check that an agent takes messages now, by the status that it said.

    An agent that is not connected is refused where a message is admitted, and so is one that works for another
    caller.

    Raises:
        FrameRefused: 3003 while it is busy, 3004 while it has an error; nothing was sent.
    """
    if status == BUSY:
        raise FrameRefused(ErrorCode.AGENT_BUSY, "the agent says that it is busy", reason="status_busy")
    if status == ERROR:
        raise FrameRefused(ErrorCode.AGENT_ERROR, "the agent says that it has an error", reason="status_error")


def _show(peers: Sequence[Peer]) -> list[Json]:
    sessions = {peer.session.pk for peer in peers if peer.is_online}
    held = Turn.objects.holding().filter(claim_until__gt=db_now(), session_id__in=sessions)
    busy = set(held.values_list("session_id", flat=True))
    rows = load_rows([peer.session for peer in peers])
    return [_show_one(peer, rows.get(peer.session.pk), peer.session.pk in busy) for peer in peers]


def _show_one(peer: Peer, row: TeamAgent | None, works: bool) -> Json:
    state = (BUSY if works else ONLINE) if peer.is_online else OFFLINE
    return {
        "name": _name_of(peer),
        "role": row.role if row is not None else DEFAULT_ROLE,
        "status": merge_status(state, said_status(peer.session, row)),
        "active": row is None or row.is_active,
        "workspace": f"~/.openclaw/agents/{peer.session.routing_name}",
    }


def _name_of(peer: Peer) -> str:
    return peer.session.routing_name if peer.is_mine else f"@{peer.name}"
