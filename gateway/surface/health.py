"""The health of the gateway over HTTP, for the caller's team (section 16; docs/reference/pages.md).

`/health` and `/agents` are pages, too: they answer here when the request names a token, or takes JSON and no HTML.
"""

from dataclasses import dataclass
from typing import Any, TypedDict

import msgspec
from django.db import DatabaseError

from accounts.authn import Identity, presented
from agents.core.errors import Unavailable
from agents.core.ledger import Ledger
from gateway.service.health import (
    AgentStatus,
    AgentStatuses,
    HealthReport,
    find_status,
    show_connected,
    show_statuses,
)
from gateway.wire.permissions import find_role
from kit.asgi import ClientLeft, Header, HttpRequest, RequestRefused, Send, respond
from kit.async_db import db_call
from kit.describe import BEARER, DescribedAnswer, DescribedOperation

STATUS_PATH = "/agent-status"
HEALTH_PATH, AGENTS_PATH = "/health", "/agents"
HEADERS: list[Header] = [(b"cache-control", b"no-store"), (b"vary", b"Accept, Authorization")]


class HealthError(TypedDict):
    """An error of these calls: a text, and the status of the answer."""

    error: str
    status: int


def is_health_call(request: HttpRequest) -> bool:
    """True if this module answers the request, and not a page."""
    if request.path == STATUS_PATH or request.path.startswith(f"{STATUS_PATH}/"):
        return True
    if request.path not in (HEALTH_PATH, AGENTS_PATH):
        return False
    accepted = request.headers.get("accept", "")
    return "authorization" in request.headers or ("application/json" in accepted and "text/html" not in accepted)


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


_UNAUTHORIZED = DescribedAnswer(shape=HealthError, text="No live token, or one that shows no agents.")
_DATABASE_UNAVAILABLE = DescribedAnswer(shape=HealthError, text="The database is out of reach.")
_NEEDS = "With `GATEWAY=1`. Takes a token alone, no cookie: also a channel token."


def _operation(path: str, name: str, summary: str, shape: Any) -> DescribedOperation:
    answers = {200: shape, 401: _UNAUTHORIZED, 503: _DATABASE_UNAVAILABLE}
    if path.endswith("}"):
        answers[404] = DescribedAnswer(shape=HealthError, text="The team has no such agent.")
    return DescribedOperation(
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
