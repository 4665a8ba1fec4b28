"""The report of `manage.py gateway status`: the rows of the gateway in the database, and probes of its servers."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from time import monotonic

from django.db import DatabaseError
from django.db.models import Count, Sum

from accounts.models import User
from agents.models import Process, Turn
from agents.models.session import alive_since, live_connections
from gateway.models import Letter, SessionLog
from gateway.service.seats.seat import GATEWAY_LINK
from gateway.service.team.members import load_members
from kit.clock import db_now
from kit.sql import check_connection

HEALTHY, DEGRADED, DOWN = 0, 1, 2
MOST_SEATS = 10_000


@dataclass(frozen=True, slots=True)
class Line:
    """One line of the report. `level`: HEALTHY, DEGRADED or DOWN."""

    name: str
    text: str
    level: int = HEALTHY


def report_rows(version: str) -> Iterator[Line]:
    """Lines with the version, the processes and the uptime of the hub, and the number of connected agents.

    Raises:
        DatabaseError: the database is out of reach.
    """
    now = db_now()
    started = list(Process.objects.filter(beat_at__gt=alive_since(now)).values_list("started_at", flat=True))
    yield Line("version", version)
    yield Line("processes", str(len(started)))
    yield Line("uptime", f"{_seconds(min(started), now)} s" if started else "-")
    seats = live_connections().filter(session__link=GATEWAY_LINK)
    yield Line("connected agents", str(seats.order_by()[:MOST_SEATS].count()))


def report_probes(ping_redis: Callable[[], object] | None) -> Iterator[Line]:
    """Each thing that the gateway depends on, with the time it took to answer; and what waits.

    `ping_redis`: raises OSError when Redis does not answer; None where the hub uses none.
    """
    yield _probe("database", check_connection)
    yield _probe("redis", ping_redis) if ping_redis else Line("redis", "not used")
    yield _probe("session store", _write_nothing)
    yield Line("inbox", _describe_letters())
    waiting = Turn.objects.open().filter(session__link=GATEWAY_LINK).order_by("asked_at").first()
    oldest = f"{_seconds(waiting.asked_at, db_now())} s" if waiting else "none"
    yield Line("oldest pending correlation", oldest)


def report_team(owner: User) -> Iterator[Line]:
    """The agents of a team: status, last heartbeat and inbox."""
    now = db_now()
    for one in load_members(owner.pk):
        seen = f"last heartbeat {_seconds(one.last_seen_at, now)} s ago" if one.last_seen_at else "never connected"
        yield Line(f"agent {one.name}", f"{one.status}, {seen}, {one.queued} in its inbox")


def _probe(name: str, look: Callable[[], object]) -> Line:
    began = monotonic()
    try:
        look()
    except (DatabaseError, OSError) as failure:
        return Line(name, f"failed: {type(failure).__name__}", DEGRADED)
    return Line(name, f"ok, {(monotonic() - began) * 1000:.0f} ms")


def _write_nothing() -> None:
    """Take the lock of a write to the table of sessions, and change no row."""
    SessionLog.objects.filter(pk=0).update(entries=0)


def _describe_letters() -> str:
    queued = Letter.objects.filter(state=Letter.State.QUEUED)
    found = queued.aggregate(count=Count("pk"), size=Sum("bytes"))
    dead = Letter.objects.filter(state=Letter.State.DEAD).count()
    return f"{found['count']} queued, {found['size'] or 0} bytes, {dead} dead"


def _seconds(since: datetime, now: datetime) -> int:
    return max(0, int((now - since).total_seconds()))
