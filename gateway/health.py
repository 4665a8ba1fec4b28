"""The health of the gateway over HTTP, for the caller's team (section 16; docs/adr/0141).

`/health` and `/agents` are pages, too: they answer here when the request names a token, or takes JSON and no HTML.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict
from urllib.parse import urlsplit

import msgspec
from django.db import DatabaseError

from accounts.authn import Identity, presented
from agents.core.errors import Unavailable
from agents.core.ledger import Ledger
from agents.models import Process, Turn
from agents.models.session import alive_since
from gateway.connections.seat import GATEWAY_LINK
from gateway.team.members import Member, find_member, load_members
from gateway.wire.frame_types import is_agent_name
from gateway.wire.permissions import find_role
from gateway.wire.protocol import ConnectionState
from kit.asgi import ClientLeft, Header, HttpRequest, RequestRefused, Send, respond
from kit.async_db import db_call
from kit.clock import db_now, unix_ms
from kit.describe import BEARER, Answer, Operation

STATUS_PATH = "/agent-status"
HEALTH_PATH, AGENTS_PATH = "/health", "/agents"
MOST_PENDING = 10_000
HEADERS: list[Header] = [(b"cache-control", b"no-store"), (b"vary", b"Accept, Authorization")]


class HealthError(TypedDict):
    """An error of these calls: a text, and the status of the answer."""

    error: str
    status: int


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


def is_health_call(request: HttpRequest) -> bool:
    """Whether it is answered here, and not by a page."""
    if request.path == STATUS_PATH or request.path.startswith(f"{STATUS_PATH}/"):
        return True
    if request.path not in (HEALTH_PATH, AGENTS_PATH):
        return False
    accepted = request.headers.get("accept", "")
    return "authorization" in request.headers or ("application/json" in accepted and "text/html" not in accepted)


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


@dataclass(frozen=True, slots=True)
class TeamHealth:
    """Answers the calls of OPERATIONS."""

    ledger: Ledger
    report: HealthReport

    async def __call__(self, request: HttpRequest, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        try:
            status, body = 200, await self._answer(request)
        except RequestRefused as refused:
            status, body = refused.status, HealthError(error=str(refused), status=refused.status)
        except (Unavailable, DatabaseError):
            status, body = 503, HealthError(error="Service unavailable", status=503)
        except ClientLeft:
            return
        await respond(send, status, msgspec.json.encode(body), HEADERS)

    async def _answer(self, request: HttpRequest) -> Any:
        await request.read_checked(("GET", "HEAD"))
        caller = await self._get_caller(request)
        if request.path == HEALTH_PATH:
            return await self.report.show(caller.user_id)
        if request.path == AGENTS_PATH:
            return await db_call(show_connected)(caller.user_id)
        name = request.path.removeprefix(STATUS_PATH).removeprefix("/")
        if not name:
            return await db_call(show_statuses)(caller.user_id)
        if (found := await db_call(find_status)(caller.user_id, name)) is None:
            raise RequestRefused(404, "not_found", "Not found")
        return found

    async def _get_caller(self, request: HttpRequest) -> Identity:
        """The caller, by a token alone: a browser sends a cookie by itself.

        Raises:
            RequestRefused: 401.
        """
        token = presented({"authorization": request.headers.get("authorization", "")})
        found = (await self.ledger.look_up(token.digest, None)).identity if token else None
        if found is None or find_role(found) is None or not found.may_list_agents or found.only_agent:
            raise RequestRefused(401, "unauthorized", "Unauthorized")
        return found


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


_UNAUTHORIZED = Answer(shape=HealthError, text="No live token, or one that shows no agents.")
_AWAY = Answer(shape=HealthError, text="The database is out of reach.")
_NEEDS = "With `GATEWAY=1`. Takes a token alone, no cookie: also a channel token."


def _operation(path: str, name: str, summary: str, shape: Any) -> Operation:
    answers = {200: shape, 401: _UNAUTHORIZED, 503: _AWAY}
    if path.endswith("}"):
        answers[404] = Answer(shape=HealthError, text="The team has no such agent.")
    return Operation(
        method="get",
        path=path,
        name=name,
        summary=summary,
        tag="gateway",
        text=_NEEDS,
        security=(BEARER,),
        answers=answers,
        adds_errors=False,
    )


# Without HEALTH_PATH and AGENTS_PATH: what they answer without a token is a page, which OpenAPI cannot say.
OPERATIONS = (
    _operation(STATUS_PATH, "getAgentStatuses", "Every agent of your team.", AgentStatuses),
    _operation(f"{STATUS_PATH}/{{agent_name}}", "getAgentStatus", "One agent of your team.", AgentStatus),
)
