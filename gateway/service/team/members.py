"""The agents of a team as its pages and health endpoints show them: seats, and the rows that the owner set."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Sum

from agents.models import Session
from agents.models.session import SEEN_AT
from agents.web.availability import states_of
from gateway.models import Letter, SessionLog, TeamAgent
from gateway.service.seats.seat import DEFAULT_ROLE, GATEWAY_LINK, ONLINE
from gateway.service.team.registry import OFFLINE, merge_status

MOST_MEMBERS = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class Member:
    """One agent of a team. `public_id`: of the session of its seat, empty before it took one.

    `status`: online, idle, busy, error or offline. `queued`: letters that wait for it; `dead`: those that were not
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
        """Whether its seat is taken now."""
        return self.status != OFFLINE

    @property
    def mark(self) -> str:
        """The class of its status on pages."""
        return {"online": "on", "idle": "on", "busy": "busy", "error": "failed"}.get(self.status, "off")


def load_members(owner_id: int, names: Collection[str] | None = None) -> list[Member]:
    """The agents of a team by name, at most MOST_MEMBERS. `names`: only these.

    The number of queries is constant.
    """
    seats = Session.objects.filter(owner_id=owner_id, link=GATEWAY_LINK, archived_at=None)
    rows = TeamAgent.objects.filter(owner_id=owner_id)
    if names is not None:
        seats, rows = seats.filter(routing_name__in=names), rows.filter(name__in=names)
    by_seat = {one.routing_name: one for one in seats.annotate(seen_at=SEEN_AT).order_by("pk")[:MOST_MEMBERS]}
    by_row = {one.name: one for one in rows.order_by("pk")[:MOST_MEMBERS]}
    states = states_of([one.pk for one in by_seat.values()])
    letters = _count_letters([one.pk for one in by_seat.values()])
    logs = _count_logs(owner_id)
    found = []
    for name in sorted(by_seat.keys() | by_row.keys())[:MOST_MEMBERS]:
        seat, row = by_seat.get(name), by_row.get(name)
        found.append(_member(name, seat, row, states, letters, logs.get(name, 0)))
    return found


def find_member(owner_id: int, name: str) -> Member | None:
    """One agent of a team."""
    return next(iter(load_members(owner_id, [name])), None)


def _member(
    name: str,
    seat: Session | None,
    row: TeamAgent | None,
    states: Mapping[int, str],
    letters: Mapping[int, Mapping[str, tuple[int, int]]],
    sessions: int,
) -> Member:
    waiting = letters.get(seat.pk, {}) if seat else {}
    queued, queued_bytes = waiting.get(Letter.State.QUEUED, (0, 0))
    said = row.status if row else ONLINE
    registered = [one for one in (seat and seat.started_at, row and row.created_at) if one]
    return Member(
        name=name,
        role=row.role if row else DEFAULT_ROLE,
        is_active=row.is_active if row else True,
        status=merge_status(states[seat.pk], said) if seat else OFFLINE,
        registered_at=min(registered),
        last_seen_at=seat.seen_at if seat else None,  # type: ignore[attr-defined]  # annotated
        public_id=str(seat.public_id) if seat else "",
        queued=queued,
        queued_bytes=queued_bytes,
        dead=waiting.get(Letter.State.DEAD, (0, 0))[0],
        sessions=sessions,
    )


def _count_letters(session_ids: Collection[int]) -> dict[int, dict[str, tuple[int, int]]]:
    """Number and bytes of the letters of each seat, by state."""
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
