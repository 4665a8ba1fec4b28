"""The health of the gateway and of the agents of a team (section 16; docs/adr/0141)."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict
from urllib.parse import urlsplit

from agents.models import Process, Turn
from agents.models.session import alive_since
from gateway.service.seats.seat import GATEWAY_LINK
from gateway.service.team.members import Member, find_member, load_members
from gateway.wire.frame_types import is_agent_name
from gateway.wire.protocol import ConnectionState
from kit.async_db import db_call
from kit.clock import db_now, unix_ms

MOST_PENDING = 10_000


class GatewayHealth(TypedDict):
    """How the gateway is. Times in ms since 1970, `uptime` in s.

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
        health = await db_call(show_health)(user_id, self.version, self.public_url)
        health["redisConnected"] = is_connected
        if self.ping_redis is not None and not is_connected:
            health["status"] = "degraded"
        return health


def show_health(user_id: int, version: str, public_url: str) -> GatewayHealth:
    """How the gateway is for a team, `redisConnected` left false."""
    now = db_now()
    at = urlsplit(public_url)
    names = [one.name for one in load_members(user_id) if one.is_connected]
    pending = Turn.objects.open().filter(session__owner_id=user_id, session__link=GATEWAY_LINK)
    first = Process.objects.filter(beat_at__gt=alive_since(now)).order_by("started_at").first()
    return GatewayHealth(
        status="ok",
        timestamp=unix_ms(now),
        version=version,
        connectedAgents=len(names),
        running=True,
        host=at.hostname or "",
        port=at.port or (443 if at.scheme == "https" else 80),
        agents=names,
        redisConnected=False,
        pendingResponses=pending.order_by()[:MOST_PENDING].count(),
        uptime=max(0, int((now - first.started_at).total_seconds())) if first else 0,
    )


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
        connectionState=ConnectionState.OPEN if member.is_connected else ConnectionState.CLOSED,
        lastSeen=unix_ms(seen) if seen else None,
        registeredAt=unix_ms(member.registered_at),
        metadata={"role": member.role, "isActive": member.is_active, "queued": member.queued},
        timeSinceLastSeenMs=max(0, unix_ms(now) - unix_ms(seen)) if seen else None,
    )
