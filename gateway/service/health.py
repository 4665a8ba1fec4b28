"""The health of the gateway and of the agents of a team (section 16): over HTTP, as a service, and
as the report of `manage.py gateway status`.
"""

from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import datetime
from time import monotonic
from typing import Any, TypedDict
from urllib.parse import urlsplit

from django.db import DatabaseError
from django.db.models import Count, QuerySet, Sum

from accounts.models import User
from agents.models import Process, Turn
from agents.models.session import alive_since, live_connections
from gateway.models import Letter, SessionLog
from gateway.service.registry import Member, find_member, load_members
from gateway.service.seat import GATEWAY_LINK
from gateway.wire.frame_types import is_agent_name
from gateway.wire.protocol import SocketState
from kit.async_db import db_call
from kit.clock import db_now, unix_ms
from kit.sql import check_connection

MAX_PENDING = 10_000
HEALTHY, DEGRADED, DOWN = 0, 1, 2
MAX_SEATS = 10_000


class GatewayHealth(TypedDict):
    """The health of the gateway. Times in ms since 1970, `uptime` in s.

    `status`: `ok`, or `degraded` while Redis is out of reach. `redisConnected`: false where none is used,
    too. `pendingResponses`: messages to the team's agents that have no response yet, 10000 at most.
    """

    status: str
    timestamp: int
    version: str
    connectedAgents: int
    running: bool
    host: str
    port: int
    agents: list[str]
    redisConnected: bool
    pendingResponses: int
    uptime: int


class ConnectedAgents(TypedDict):
    """The names of the team's agents that are connected."""

    connected: list[str]
    count: int


class AgentStatus(TypedDict):
    """One agent. Times in ms since 1970; `lastSeen` and `timeSinceLastSeenMs`: null before it ever connected.

    `connectionState`: 1 (open), or 3 (closed, or the agent never connected).
    `metadata`: `role`, `isActive`, and `queued`: messages that wait for it.
    """

    agentId: str
    status: str
    connectionState: int
    lastSeen: int | None
    registeredAt: int
    metadata: dict[str, Any]
    timeSinceLastSeenMs: int | None


class AgentStatuses(TypedDict):
    """The agents of the team, at most 500."""

    timestamp: int
    totalAgents: int
    onlineCount: int
    offlineCount: int
    agents: list[AgentStatus]


@dataclass(frozen=True, slots=True)
class HealthReport:
    """Reports the health of the gateway. `ping_redis`: whether Redis answers; None where the hub has no Redis."""

    public_url: str
    version: str
    ping_redis: Callable[[], Awaitable[bool]] | None = None

    async def show(self, user_id: int) -> GatewayHealth:
        """Get the health of the gateway for a team."""
        is_connected = await self.ping_redis() if self.ping_redis else False
        return await db_call(self._load)(user_id, is_connected)

    def _load(self, user_id: int, is_connected: bool) -> GatewayHealth:
        now, at = db_now(), urlsplit(self.public_url)
        agents = show_connected(user_id)
        pending = Turn.objects.open().filter(session__owner_id=user_id, session__link=GATEWAY_LINK)
        started = list(find_living(now).values_list("started_at", flat=True))
        return GatewayHealth(
            status="ok" if is_connected or self.ping_redis is None else "degraded",
            timestamp=unix_ms(now),
            version=self.version,
            connectedAgents=agents["count"],
            running=True,
            host=at.hostname or "",
            port=at.port or (443 if at.scheme == "https" else 80),
            agents=agents["connected"],
            redisConnected=is_connected,
            pendingResponses=pending.order_by()[:MAX_PENDING].count(),
            uptime=_seconds(min(started), now) if started else 0,
        )


def find_living(now: datetime) -> "QuerySet[Process]":
    """The processes of the hub that live."""
    return Process.objects.filter(beat_at__gt=alive_since(now))


def show_connected(user_id: int) -> ConnectedAgents:
    """The connected agents of a team."""
    names = [one.name for one in load_members(user_id) if one.is_connected]
    return ConnectedAgents(connected=names, count=len(names))


def show_statuses(user_id: int) -> AgentStatuses:
    """Every agent of a team."""
    now, members = db_now(), load_members(user_id)
    online = sum(one.is_connected for one in members)
    return AgentStatuses(
        timestamp=unix_ms(now),
        totalAgents=len(members),
        onlineCount=online,
        offlineCount=len(members) - online,
        agents=[_status_of(one, now) for one in members],
    )


def find_status(user_id: int, name: str) -> AgentStatus | None:
    """One agent of a team by its name."""
    found = find_member(user_id, name) if is_agent_name(name) else None
    return _status_of(found, db_now()) if found else None


def _status_of(member: Member, now: datetime) -> AgentStatus:
    seen = member.last_seen_at
    return AgentStatus(
        agentId=member.name,
        status=member.status,
        connectionState=SocketState.OPEN if member.is_connected else SocketState.CLOSED,
        lastSeen=unix_ms(seen) if seen else None,
        registeredAt=unix_ms(member.registered_at),
        metadata={"role": member.role, "isActive": member.is_active, "queued": member.queued},
        timeSinceLastSeenMs=max(0, unix_ms(now) - unix_ms(seen)) if seen else None,
    )


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
    started = list(find_living(now).values_list("started_at", flat=True))
    yield Line("version", version)
    yield Line("processes", str(len(started)))
    yield Line("uptime", f"{_seconds(min(started), now)} s" if started else "-")
    seats = live_connections().filter(session__link=GATEWAY_LINK)
    yield Line("connected agents", str(seats.order_by()[:MAX_SEATS].count()))


def report_probes(ping_redis: Callable[[], object] | None) -> Iterator[Line]:
    """The services that the gateway depends on, each with the time of its answer, and the number of waiting
    messages.

    `ping_redis`: raises OSError when Redis does not answer; None where the hub uses none.
    """
    yield _probe("database", check_connection)
    yield _probe("redis", ping_redis) if ping_redis else Line("redis", "not used")
    yield _probe("session store", _write_nothing)
    yield Line("inbox", _describe_queue())
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


def _describe_queue() -> str:
    queued = Letter.objects.filter(state=Letter.State.QUEUED)
    found = queued.aggregate(count=Count("pk"), size=Sum("bytes"))
    dead = Letter.objects.filter(state=Letter.State.DEAD).count()
    return f"{found['count']} queued, {found['size'] or 0} bytes, {dead} dead"


def _seconds(since: datetime, now: datetime) -> int:
    return max(0, int((now - since).total_seconds()))
