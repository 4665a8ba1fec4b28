"""The statuses of agents, as the database has them: who is connected, and what each said of itself."""

from collections.abc import Collection
from typing import NamedTuple

from django.db.models import OuterRef, QuerySet, Subquery

from agents.core.ask_starter import MOST_PEERS
from agents.models import Session
from agents.models.session import SEEN_AT, online_sessions
from agents.transcript.access import seen_at
from gateway.models import TeamAgent
from gateway.service.seats.seat import GATEWAY_LINK, ONLINE
from kit.clock import unix_ms

OFFLINE = "offline"


class AgentStatus(NamedTuple):
    """The status of an agent as subscribers get it. `last_seen_ms`: Unix milliseconds."""

    status: str
    last_seen_ms: int


class Said(NamedTuple):
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


def said_status(session: Session, row: TeamAgent | None) -> str:
    """The status of a connected agent, as it said. Only agents of the gateway can say one."""
    return row.status if row is not None and session.link == GATEWAY_LINK else ONLINE


def merge_status(state: str, said: str) -> str:
    """The status of an agent: what the hub knows (online, busy, offline), and what the agent said of itself."""
    if state == OFFLINE:
        return OFFLINE
    return said if state == ONLINE or said == TeamAgent.Status.ERROR else state


def load_said(session_id: int) -> Said:
    """The status that one agent reported."""
    row = TeamAgent.objects.filter(owner_id=OuterRef("owner_id"), name=OuterRef("routing_name"))
    sessions = Session.objects.filter(pk=session_id).annotate(said=Subquery(row.values("status")))
    found = sessions.values_list("link", "owner_id", "routing_name", "said").first()
    link, owner_id, name, said = found or ("", None, "", None)
    return Said(said if said and link == GATEWAY_LINK else ONLINE, link, owner_id, name)


def load_statuses(owner_id: int) -> dict[str, AgentStatus]:
    """The agents of a team by name, each with its status, the 500 seen last."""
    sessions = list(_kept(owner_id).annotate(seen_at=SEEN_AT).order_by(SEEN_AT.desc())[:MOST_PEERS])
    online = online_sessions([one.pk for one in sessions])
    rows = load_rows(sessions)
    found: dict[str, AgentStatus] = {}
    for one in sorted(sessions, key=lambda one: one.pk in online):  # of two with one name the connected one counts
        status = said_status(one, rows.get(one.pk)) if one.pk in online else OFFLINE
        found[one.routing_name] = AgentStatus(status, unix_ms(seen_at(one)))
    return found


def find_unknown(owner_id: int, names: Collection[str]) -> str | None:
    """One of the names that no agent of the team has; None when all are known."""
    known = set(_kept(owner_id).filter(routing_name__in=names).values_list("routing_name", flat=True))
    return next((name for name in names if name not in known), None)


def _kept(owner_id: int) -> QuerySet[Session]:
    kept: QuerySet[Session] = Session.objects.filter(owner_id=owner_id, archived_at=None)
    return kept
