"""The agents of a team and their statuses: as users find them by name, and as pages and health show them."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import NamedTuple

from django.db.models import Count, OuterRef, QuerySet, Subquery, Sum

from agents.core.ask_starter import MAX_PEERS, Peer, get_peer, load_peers
from agents.core.errors import Halted
from agents.models import Halt, Session, Turn
from agents.models.session import SEEN_AT, online_sessions
from agents.pages.availability import states_of
from agents.transcript.access import SessionRole, seen_at, sessions_visible_to
from gateway.models import Letter, SessionLog, TeamAgent
from gateway.service.seat import DEFAULT_ROLE, GATEWAY_LINK, ONLINE
from gateway.wire.errors import denied_error
from gateway.wire.frames import Json
from kit.clock import db_now, unix_ms

OFFLINE = "offline"
BUSY = TeamAgent.Status.BUSY.value
ERROR = TeamAgent.Status.ERROR.value
TAKE_NO_MESSAGES = frozenset({BUSY, ERROR})
MAX_MEMBERS = 500


class PushedStatus(NamedTuple):
    """The status of an agent as subscribers get it. `last_seen_ms`: Unix milliseconds."""

    status: str
    last_seen_ms: int


class ReportedStatus(NamedTuple):
    """The status that an agent reported, valid while it is connected. `link`: over which it connects."""

    status: str
    link: str
    owner_id: int | None
    name: str


def load_rows(sessions: Collection[Session]) -> dict[int, TeamAgent]:
    """The rows of agents, by the id of the session; a session of a name without a row has none."""
    owners = {one.owner_id for one in sessions}
    names = {one.routing_name for one in sessions}
    rows = TeamAgent.objects.filter(owner_id__in=owners, name__in=names)
    by_name = {(row.owner_id, row.name): row for row in rows}
    found = {one.pk: by_name.get((one.owner_id, one.routing_name)) for one in sessions}
    return {pk: row for pk, row in found.items() if row is not None}


def reported_status(session: Session, row: TeamAgent | None) -> str:
    """The status of a connected agent, as it said. Only agents of the gateway can report a status."""
    return row.status if row is not None and session.link == GATEWAY_LINK else ONLINE


def merge_status(state: str, said: str) -> str:
    """The status of an agent: what the hub knows (online, busy, offline), and what the agent said of itself."""
    if state == OFFLINE:
        return OFFLINE
    return said if state == ONLINE or said == TeamAgent.Status.ERROR else state


def load_reported_status(session_id: int) -> ReportedStatus:
    """The status that one agent reported."""
    row = TeamAgent.objects.filter(owner_id=OuterRef("owner_id"), name=OuterRef("routing_name"))
    sessions = Session.objects.filter(pk=session_id).annotate(said=Subquery(row.values("status")))
    found = sessions.values_list("link", "owner_id", "routing_name", "said").first()
    link, owner_id, name, said = found or ("", None, "", None)
    return ReportedStatus(said if said and link == GATEWAY_LINK else ONLINE, link, owner_id, name)


def load_statuses(owner_id: int) -> dict[str, PushedStatus]:
    """The agents of a team by name, each with its status, the 500 seen last."""
    sessions = list(_kept(owner_id).annotate(seen_at=SEEN_AT).order_by(SEEN_AT.desc())[:MAX_PEERS])
    online = online_sessions([one.pk for one in sessions])
    rows = load_rows(sessions)
    found: dict[str, PushedStatus] = {}
    # Of two agents with one name the connected one is listed.
    for one in sorted(sessions, key=lambda one: one.pk in online):
        status = reported_status(one, rows.get(one.pk)) if one.pk in online else OFFLINE
        found[one.routing_name] = PushedStatus(status, unix_ms(seen_at(one)))
    return found


def find_unknown(owner_id: int, names: Collection[str]) -> str | None:
    """The first of these names that no agent of the team has; None when all are known."""
    known = set(_kept(owner_id).filter(routing_name__in=names).values_list("routing_name", flat=True))
    return next((name for name in names if name not in known), None)


def _kept(owner_id: int) -> QuerySet[Session]:
    kept: QuerySet[Session] = Session.objects.filter(owner_id=owner_id, archived_at=None)
    return kept


def load_agents(user_id: int) -> list[Json]:
    """The agents as discovery shows them, the own ones first; at most MAX_PEERS."""
    return _show(load_peers(user_id, at_least=SessionRole.PROMPTER, most=MAX_PEERS))


def load_own_agents(user_id: int) -> list[Json]:
    """The agents of the user's own team, as discovery shows them."""
    peers = load_peers(user_id, at_least=SessionRole.OWNER, most=MAX_PEERS)
    return _show([peer for peer in peers if peer.is_mine])


def get_agent(name: str, user_id: int) -> Json:
    """One agent by its name.

    Raises:
        NoSuchTarget, NotAllowed, AmbiguousPeer: as `get_peer`.
    """
    return _show([get_peer(name, user_id)])[0]


def load_names(user_id: int) -> list[str]:
    """The names of the agents that the user can send messages to, the own ones first; at most MAX_PEERS.

    Each handshake needs the names, so the query reads names alone, and no rows of sessions.
    """
    found = (
        sessions_visible_to(user_id, at_least=SessionRole.PROMPTER)
        .filter(archived_at=None)
        .order_by(SEEN_AT.desc())
    )
    rows = found.values_list("owner_id", "owner__login", "routing_name")[:MAX_PEERS]
    ordered = sorted(rows, key=lambda row: (row[0] != user_id, f"{row[1]}/{row[2]}".lower()))
    return [name if owner_id == user_id else f"@{login}/{name}" for owner_id, login, name in ordered]


def load_workspaces(owner_id: int) -> list[Json]:
    """The workspaces of a team: one for each agent. `sessions`: how many it has, archived ones too."""
    sessions = _count_logs(owner_id)
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
    """Check that a user may ask agents, before a frame that reaches agents without a turn.

    Raises:
        FrameRefused: 5004, the user is halted as a caller.
    """
    if Halt.objects.active().filter(kind=Halt.Kind.CALLER, user_id=user_id).exists():
        raise denied_error(Halted(is_caller=True))


def _show(peers: Sequence[Peer]) -> list[Json]:
    sessions = {peer.session.pk for peer in peers if peer.is_online}
    held = Turn.objects.holding().filter(claim_until__gt=db_now(), session_id__in=sessions)
    busy = set(held.values_list("session_id", flat=True))
    rows = load_rows([peer.session for peer in peers])
    return [_show_one(peer, rows.get(peer.session.pk), peer.session.pk in busy) for peer in peers]


def _show_one(peer: Peer, row: TeamAgent | None, works: bool) -> Json:
    state = (BUSY if works else ONLINE) if peer.is_online else OFFLINE
    return {
        "name": peer.session.routing_name if peer.is_mine else f"@{peer.name}",
        "role": row.role if row is not None else DEFAULT_ROLE,
        "status": merge_status(state, reported_status(peer.session, row)),
        "active": row is None or row.is_active,
        "workspace": f"~/.openclaw/agents/{peer.session.routing_name}",
    }


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One agent of a team. `public_id`: of the session of its seat, empty before it took one.

    `status`: online, idle, busy, error or offline. `queued`: messages that wait; `dead`: messages that were not
    delivered. `sessions`: how many session logs it has.
    """

    name: str
    role: str
    is_active: bool
    status: str
    registered_at: datetime
    last_seen_at: datetime | None = None
    public_id: str = ""
    queued: int = 0
    queued_bytes: int = 0
    dead: int = 0
    sessions: int = 0

    @property
    def is_connected(self) -> bool:
        """True if its seat is taken now."""
        return self.status != OFFLINE

    @property
    def mark(self) -> str:
        """The class of its status on pages."""
        return {"online": "on", "idle": "on", "busy": "busy", "error": "failed"}.get(self.status, "off")


def load_members(owner_id: int, names: Collection[str] | None = None) -> list[Member]:
    """The agents of a team by name, at most MAX_MEMBERS. `names`: only these.

    The number of queries is constant.
    """
    seats = Session.objects.filter(owner_id=owner_id, link=GATEWAY_LINK, archived_at=None)
    rows = TeamAgent.objects.filter(owner_id=owner_id)
    if names is not None:
        seats, rows = seats.filter(routing_name__in=names), rows.filter(name__in=names)
    by_seat = {one.routing_name: one for one in seats.annotate(seen_at=SEEN_AT).order_by("pk")[:MAX_MEMBERS]}
    by_row = {one.name: one for one in rows.order_by("pk")[:MAX_MEMBERS]}
    states = states_of([one.pk for one in by_seat.values()])
    stored_messages = _count_stored([one.pk for one in by_seat.values()])
    logs = _count_logs(owner_id)
    found = []
    for name in sorted(by_seat.keys() | by_row.keys())[:MAX_MEMBERS]:
        seat, row = by_seat.get(name), by_row.get(name)
        waiting = stored_messages.get(seat.pk, {}) if seat else {}
        queued, queued_bytes = waiting.get(Letter.State.QUEUED, (0, 0))
        one = Member(
            name=name,
            role=row.role if row else DEFAULT_ROLE,
            is_active=row.is_active if row else True,
            status=merge_status(states[seat.pk], row.status if row else ONLINE) if seat else OFFLINE,
            registered_at=min(at for at in (seat and seat.started_at, row and row.created_at) if at),
            last_seen_at=seat.seen_at if seat else None,  # type: ignore[attr-defined]  # annotated
            public_id=str(seat.public_id) if seat else "",
            queued=queued,
            queued_bytes=queued_bytes,
            dead=waiting.get(Letter.State.DEAD, (0, 0))[0],
            sessions=logs.get(name, 0),
        )
        found.append(one)
    return found


def find_member(owner_id: int, name: str) -> Member | None:
    """One agent of a team."""
    return next(iter(load_members(owner_id, [name])), None)


def _count_stored(session_ids: Collection[int]) -> dict[int, dict[str, tuple[int, int]]]:
    """Number and bytes of the stored messages of each seat, by state."""
    wanted = Letter.objects.filter(
        recipient_id__in=session_ids, state__in=[Letter.State.QUEUED, Letter.State.DEAD]
    )
    grouped = wanted.order_by().values("recipient_id", "state").annotate(count=Count("pk"), size=Sum("bytes"))
    found: dict[int, dict[str, tuple[int, int]]] = {}
    for recipient, state, count, size in grouped.values_list("recipient_id", "state", "count", "size"):
        found.setdefault(recipient, {})[state] = (count, size)
    return found


def _count_logs(owner_id: int) -> dict[str, int]:
    logs = SessionLog.objects.filter(owner_id=owner_id).order_by().values("agent").annotate(count=Count("pk"))
    return dict(logs.values_list("agent", "count"))
