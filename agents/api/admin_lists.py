"""Lists for the staff of the hub: all shares, agents, tokens and users."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Annotated, Any, TypedDict

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.authn import TokenScope
from accounts.models import Credential, User
from accounts.paging import MAX_LIMIT, PageQuery, page, read_query
from accounts.rest import HasScope
from agents.api.shapes import Access
from agents.models import Agent, Share
from agents.models.session import online_sessions
from kit.describe import Page, Time, Uuid
from kit.rows import Source, show


class IsStaff(BasePermission):
    """For the hub's staff alone."""

    message = "this is for the staff of the hub"

    def has_permission(self, request: Request, view: Any) -> bool:
        """Whether the caller is one of them; without a caller it is a 401."""
        return isinstance(request.user, User) and request.user.is_staff


class StaffView(APIView):
    """A view under `/admin`."""

    permission_classes = [IsStaff, HasScope]
    scope = TokenScope.ADMIN


class FiftyQuery(PageQuery):
    """Which part of a list, 50 rows unless asked otherwise."""

    limit = serializers.IntegerField(default=50, min_value=1)


class HundredQuery(PageQuery):
    """Which part of a list, 100 rows unless asked otherwise."""

    limit = serializers.IntegerField(default=100, min_value=1)


class TwoHundredQuery(PageQuery):
    """Which part of a list, 200 rows unless asked otherwise."""

    limit = serializers.IntegerField(default=200, min_value=1)


class SearchQuery(serializers.Serializer[Any]):
    """The parameters of a search."""

    q = serializers.CharField(default="", allow_blank=True, max_length=200)


MOST_ROWS = 500
KINDS = (Credential.Kind.CHANNEL, Credential.Kind.APP)


class ListedShare(TypedDict):
    """A share of any user."""

    id: int
    sessionId: Annotated[Uuid, Source("session.public_id")]
    sessionRoute: Annotated[str | None, Source("session.shown_name")]
    subjectLogin: Annotated[str, Source("user.login")]
    grantorLogin: Annotated[str, Source("shared_by.login")]
    role: str
    createdAt: Time


class ListedAgent(TypedDict):
    """An agent of any user, drafts and deleted ones too."""

    id: int
    handle: str
    ownerLogin: Annotated[str, Source("owner.login")]
    tagline: str
    isolated: bool
    liveView: bool
    publicAsk: bool
    access: Access
    sessionRoute: Annotated[str | None, Source("session.shown_name")]
    online: bool
    status: str
    deletedAt: Time | None
    dailyBudgetQueries: Annotated[int, Source("daily_budget")]
    concurrencyCap: int
    createdAt: Time


class ListedToken(TypedDict):
    """A channel or app token of any user."""

    id: int
    kind: str
    name: str
    prefix: str
    userId: int
    userLogin: Annotated[str, Source("user.login")]
    createdAt: Time
    lastUsedAt: Time | None
    revokedAt: Time | None
    active: Annotated[bool, Source("is_live")]
    appName: str | None
    machineId: str | None


class ListedTokens(Page[ListedToken]):
    """A page of tokens; `returned`: how many are in it."""

    returned: int


class ThousandQuery(PageQuery):
    """Which part of a list, 1000 rows unless asked otherwise."""

    limit = serializers.IntegerField(default=MAX_LIMIT, min_value=1)


class TokensQuery(serializers.Serializer[Any]):
    """Which tokens."""

    active = serializers.ChoiceField(choices=["true", "false", "all"], default="all")
    kind = serializers.ChoiceField(choices=[*KINDS, "all"], default="all")


class AdminShares(StaffView):
    """`/admin/shares`"""

    @extend_schema(parameters=[HundredQuery], responses=Page[ListedShare])
    def get(self, request: Request) -> Response:
        """The shares of sessions, with owner and user, newest first."""
        shares = Share.objects.select_related("session", "user", "shared_by").order_by("-pk")
        return page(
            request, shares, lambda rows: [show(ListedShare, one) for one in rows], HundredQuery, most=MOST_ROWS
        )


class AdminAgents(StaffView):
    """`/admin/agents`"""

    @extend_schema(parameters=[ThousandQuery], responses=Page[ListedAgent])
    def get(self, request: Request) -> Response:
        """Agents of all users, newest first; drafts and deleted ones too."""
        agents = Agent.objects.select_related("owner", "session").order_by("-pk")
        return page(request, agents, _show_agents, ThousandQuery)


class AdminTokens(StaffView):
    """`/admin/tokens`"""

    @extend_schema(parameters=[TokensQuery, TwoHundredQuery], responses=ListedTokens)
    def get(self, request: Request) -> Response:
        """Channel and app tokens of all users, newest first."""
        query = read_query(TokensQuery, request)
        tokens = Credential.objects.filter(kind__in=KINDS if query["kind"] == "all" else [query["kind"]])
        live = Credential.objects.live().values("pk")
        if query["active"] != "all":
            tokens = tokens.filter(pk__in=live) if query["active"] == "true" else tokens.exclude(pk__in=live)
        newest = tokens.select_related("user").order_by("-pk")
        answer = page(
            request, newest, lambda rows: [show(ListedToken, one) for one in rows], TwoHundredQuery, most=MOST_ROWS
        )
        answer.data["returned"] = len(answer.data["items"])
        return answer


def _show_agents(agents: Sequence[Agent]) -> list[ListedAgent]:
    online = online_sessions([agent.session_id for agent in agents if agent.deleted_at is None])
    return [
        show(
            ListedAgent,
            agent,
            liveView=False,
            publicAsk=False,
            online=agent.deleted_at is None and agent.session_id in online,
        )
        for agent in agents
    ]


WEEK = timedelta(days=7)
MOST_USERS = 500


class ListedUser(TypedDict):
    """A user, in snake_case."""

    id: int
    github_login: Annotated[str, Source("login")]
    avatar_url: str | None
    is_admin: Annotated[bool, Source("is_staff")]
    is_service: bool
    identities: list[str]
    github_id: int | None
    created_at: Time


class AdminUsers(StaffView):
    """`/admin/users`"""

    @extend_schema(parameters=[TwoHundredQuery], responses=Page[ListedUser])
    def get(self, request: Request) -> Response:
        """All users, by id. The only list in snake_case."""
        return page(
            request,
            User.objects.order_by("pk").prefetch_related("provider_identities"),
            lambda rows: [show(ListedUser, one) for one in rows],
            TwoHundredQuery,
            most=MOST_USERS,
        )
