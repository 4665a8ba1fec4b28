"""Lists for the staff of the hub: all shares, agents, tokens and users."""

from collections.abc import Sequence
from typing import Annotated, Any, TypedDict

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.authn import TokenScope
from accounts.models import USERS_KINDS, Credential, User
from accounts.paging import MAX_LIMIT, page, page_query, read_query
from accounts.rest import HasScope
from agents.api.shapes import Access
from agents.models import Agent, Share
from agents.models.session import online_sessions
from kit.describe import Page, Time, Uuid
from kit.rows import Source, show, show_each


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


class SearchQuery(serializers.Serializer[Any]):
    """The parameters of a search."""

    q = serializers.CharField(default="", allow_blank=True, max_length=200)


MOST_ROWS = 500
FIFTY, HUNDRED, TWO_HUNDRED, THOUSAND = map(page_query, (50, 100, 200, MAX_LIMIT))


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


class TokensQuery(serializers.Serializer[Any]):
    """Which tokens."""

    active = serializers.ChoiceField(choices=["true", "false", "all"], default="all")
    kind = serializers.ChoiceField(choices=[*USERS_KINDS, "all"], default="all")


class AdminShares(StaffView):
    """`/admin/shares`"""

    @extend_schema(parameters=[HUNDRED], responses=Page[ListedShare])
    def get(self, request: Request) -> Response:
        """The shares of sessions, with owner and user, newest first."""
        shares = Share.objects.select_related("session", "user", "shared_by").order_by("-pk")
        return page(request, shares, show_each(ListedShare), HUNDRED, most=MOST_ROWS)


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
        answer = page(request, newest, show_each(ListedToken), TWO_HUNDRED, most=MOST_ROWS)
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

    @extend_schema(parameters=[TWO_HUNDRED], responses=Page[ListedUser])
    def get(self, request: Request) -> Response:
        """All users, by id. The only list in snake_case."""
        users = User.objects.order_by("pk").prefetch_related("provider_identities")
        return page(request, users, show_each(ListedUser), TWO_HUNDRED, most=MOST_ROWS)
