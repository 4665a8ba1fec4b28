"""REST views for the hub's staff: all shares, agents, tokens, users and sessions; the timeline of a session."""

import uuid
from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

import msgspec
from django.db.models import Count, Q
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.audit_log import record_reading
from accounts.authn import TokenScope
from accounts.models import USERS_KINDS, Credential, User
from accounts.paging import MAX_LIMIT, page, page_query, read_query
from accounts.rest import HasScope, caller_of, get_one
from agents.api.session_access import ApiPermission
from agents.api.shapes import Access
from agents.models import Agent, Event, PermissionRequest, Session, Share
from agents.models.session import SEEN_AT, online_sessions
from kit.clock import iso
from kit.describe import Page, Time, Uuid
from kit.ids import read_uuid
from kit.rows import Always, RowSource, show, show_each


class IsStaff(BasePermission):
    """Permits only the hub's staff."""

    message = "this is for the staff of the hub"

    def has_permission(self, request: Request, view: Any) -> bool:
        """True if the caller is a member of the staff; a request without a caller is answered with 401."""
        return isinstance(request.user, User) and request.user.is_staff


class StaffView(APIView):
    """A view under `/admin`."""

    permission_classes = [IsStaff, HasScope]
    scope = TokenScope.ADMIN


class SearchQuery(serializers.Serializer[Any]):
    """The parameters of a search."""

    q = serializers.CharField(default="", allow_blank=True, max_length=200)


MAX_ROWS = 500
FIFTY, HUNDRED, TWO_HUNDRED, THOUSAND = map(page_query, (50, 100, 200, MAX_LIMIT))


class ListedShare(TypedDict):
    """A share of any user."""

    id: int
    sessionId: Annotated[Uuid, RowSource("session.public_id")]
    sessionRoute: Annotated[str | None, RowSource("session.shown_name")]
    subjectLogin: Annotated[str, RowSource("user.login")]
    grantorLogin: Annotated[str, RowSource("shared_by.login")]
    role: str
    createdAt: Time


class ListedAgent(TypedDict):
    """An agent of any user, drafts and deleted ones too."""

    id: int
    handle: str
    ownerLogin: Annotated[str, RowSource("owner.login")]
    tagline: str
    isolated: bool
    liveView: Annotated[bool, Always(False)]
    publicAsk: Annotated[bool, Always(False)]
    access: Access
    sessionRoute: Annotated[str | None, RowSource("session.shown_name")]
    online: bool
    status: str
    deletedAt: Time | None
    dailyBudgetQueries: Annotated[int, RowSource("daily_budget")]
    concurrencyCap: int
    createdAt: Time


class ListedToken(TypedDict):
    """A channel or app token of any user."""

    id: int
    kind: str
    name: str
    prefix: str
    userId: int
    userLogin: Annotated[str, RowSource("user.login")]
    createdAt: Time
    lastUsedAt: Time | None
    revokedAt: Time | None
    active: Annotated[bool, RowSource("is_live")]
    appName: str | None
    machineId: str | None


class ListedTokens(Page[ListedToken]):
    """A page of tokens; `returned`: how many are in it."""

    returned: int


class TokensQuery(serializers.Serializer[Any]):
    """The tokens to list."""

    active = serializers.ChoiceField(choices=["true", "false", "all"], default="all")
    kind = serializers.ChoiceField(choices=[*USERS_KINDS, "all"], default="all")


class AdminShares(StaffView):
    """`/admin/shares`"""

    @extend_schema(parameters=[HUNDRED], responses=Page[ListedShare])
    def get(self, request: Request) -> Response:
        """The shares of sessions, with owner and user, newest first."""
        shares = Share.objects.select_related("session", "user", "shared_by").order_by("-pk")
        return page(request, shares, show_each(ListedShare), HUNDRED, most=MAX_ROWS)


class AdminAgents(StaffView):
    """`/admin/agents`"""

    @extend_schema(parameters=[THOUSAND], responses=Page[ListedAgent])
    def get(self, request: Request) -> Response:
        """Agents of all users, newest first; drafts and deleted ones too."""
        agents = Agent.objects.select_related("owner", "session").order_by("-pk")
        return page(request, agents, _show_agents, THOUSAND)


class AdminTokens(StaffView):
    """`/admin/tokens`"""

    @extend_schema(parameters=[TokensQuery, TWO_HUNDRED], responses=ListedTokens)
    def get(self, request: Request) -> Response:
        """Channel and app tokens of all users, newest first."""
        query = read_query(TokensQuery, request)
        tokens = Credential.objects.filter(kind__in=USERS_KINDS if query["kind"] == "all" else [query["kind"]])
        live = Credential.objects.live().values("pk")
        if query["active"] != "all":
            tokens = tokens.filter(pk__in=live) if query["active"] == "true" else tokens.exclude(pk__in=live)
        newest = tokens.select_related("user").order_by("-pk")
        answer = page(request, newest, show_each(ListedToken), TWO_HUNDRED, most=MAX_ROWS)
        answer.data["returned"] = len(answer.data["items"])
        return answer


def _show_agents(agents: Sequence[Agent]) -> list[ListedAgent]:
    online = online_sessions([agent.session_id for agent in agents if agent.deleted_at is None])
    return [
        show(ListedAgent, agent, online=agent.deleted_at is None and agent.session_id in online)
        for agent in agents
    ]


class ListedUser(TypedDict):
    """A user, in snake_case."""

    id: int
    github_login: Annotated[str, RowSource("login")]
    avatar_url: str | None
    is_admin: Annotated[bool, RowSource("is_staff")]
    is_service: bool
    identities: list[str]
    github_id: int | None
    created_at: Time


class AdminUsers(StaffView):
    """`/admin/users`"""

    @extend_schema(parameters=[TWO_HUNDRED], responses=Page[ListedUser])
    def get(self, request: Request) -> Response:
        """All users, by id. The only list in snake_case."""
        users = User.objects.order_by("pk").prefetch_related("provider_identities")
        return page(request, users, show_each(ListedUser), TWO_HUNDRED, most=MAX_ROWS)


MAX_SESSIONS = 200


class ListedSession(TypedDict):
    """A session of any user. `managedByMachineId` is for clients that look for it."""

    id: Annotated[Uuid, RowSource("public_id")]
    ownerLogin: Annotated[str, RowSource("owner.login")]
    routingName: Annotated[str | None, RowSource("shown_name")]
    cwd: str | None
    host: str | None
    startedAt: Time
    lastSeenAt: Annotated[Time, RowSource("seen_at")]
    archivedAt: Time | None
    managedByMachineId: None
    connected: bool
    shareCount: int
    agentHandle: str | None


class TimelineEntry(TypedDict):
    """An event, or a permission request as it stands now."""

    kind: Literal["event", "permission"]
    ts: Time
    data: dict[str, Any]


class ListedTimeline(TypedDict):
    """The newest part of a session's history, oldest first."""

    items: list[TimelineEntry]
    sessionId: Annotated[Uuid, RowSource("public_id")]
    sessionRoute: Annotated[str | None, RowSource("shown_name")]
    ownerLogin: Annotated[str, RowSource("owner.login")]


class StaffTimelineQuery(serializers.Serializer[Any]):
    """The number of events to show."""

    limit = serializers.IntegerField(default=50, min_value=1)


class AdminSessions(StaffView):
    """`/admin/sessions`"""

    @extend_schema(parameters=[SearchQuery, FIFTY], responses=Page[ListedSession])
    def get(self, request: Request) -> Response:
        """Sessions of all users, newest first; `q` in id, name, owner, host or folder."""
        text = read_query(SearchQuery, request)["q"]
        found = _matching(text) if text else Session.objects.all()
        listed = found.annotate(seen_at=SEEN_AT).select_related("owner").order_by("-pk")
        return page(request, listed, show_sessions, FIFTY, most=MAX_SESSIONS)


class AdminSession(StaffView):
    """`/admin/sessions/{id}`"""

    @extend_schema(responses=ListedSession)
    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        """One of them."""
        return Response(show_sessions([_get_session(public_id)])[0])


class AdminTimeline(StaffView):
    """`/admin/sessions/{id}/timeline`"""

    @extend_schema(parameters=[StaffTimelineQuery], responses=ListedTimeline)
    def get(self, request: Request, public_id: uuid.UUID) -> Response:
        """The newest events and permission requests of a session, oldest first."""
        limit = min(read_query(StaffTimelineQuery, request)["limit"], MAX_SESSIONS)
        session = _get_session(public_id)
        record_reading(caller_of(request), Session, "its timeline", session)
        events = Event.objects.filter(session=session).order_by("-pk")[:limit]
        requests = PermissionRequest.objects.filter(session=session).select_related("resolver")
        newest = [*map(_show_event, events), *map(_show_permission, requests.order_by("-pk")[:limit])]
        newest.reverse()  # sorting is stable: entries with equal times keep this order
        items = sorted(newest, key=lambda item: str(item["ts"]))[-limit:]
        return Response(show(ListedTimeline, session, items=items))


def show_sessions(sessions: Sequence[Session]) -> list[ListedSession]:
    """The JSON of sessions whose owner and `seen_at` are loaded; the number of queries is constant."""
    ids = [session.pk for session in sessions]
    online = online_sessions(ids)
    shares = Share.objects.filter(session_id__in=ids).values("session_id").annotate(count=Count("pk"))
    counts = {row["session_id"]: row["count"] for row in shares}
    handles = dict(Agent.objects.published().filter(session_id__in=ids).values_list("session_id", "handle"))
    return [
        show(
            ListedSession,
            one,
            connected=session_id in online,
            shareCount=counts.get(session_id, 0),
            agentHandle=handles.get(session_id),
        )
        for session_id, one in zip(ids, sessions, strict=True)
    ]


def _matching(text: str) -> Any:
    name = text.removeprefix("@")
    found = Q(routing_name__icontains=name) | Q(owner__login__icontains=name)
    found |= Q(host__icontains=text) | Q(cwd__icontains=text)
    if public_id := read_uuid(text):
        found |= Q(public_id=public_id)
    return Session.objects.filter(found)


def _get_session(public_id: uuid.UUID) -> Session:
    sessions = Session.objects.annotate(seen_at=SEEN_AT).select_related("owner")
    return get_one(sessions.filter(public_id=public_id), "no such session")


def _show_event(event: Event) -> TimelineEntry:
    data = {"id": event.pk, "kind": event.kind, "type": event.type, "payload": _read(event.payload)}
    return {"kind": "event", "ts": iso(event.ts), "data": data}


def _show_permission(asked: PermissionRequest) -> TimelineEntry:
    data: dict[str, Any] = {**show(ApiPermission, asked)}
    return {"kind": "permission", "ts": data.pop("requestedAt"), "data": data}


def _read(payload: str) -> Any:
    """The payload decoded from JSON; a payload that is not valid JSON is returned as its text."""
    try:
        return msgspec.json.decode(payload)
    except (msgspec.DecodeError, RecursionError):
        return {"text": payload}
