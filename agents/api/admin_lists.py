"""Lists for the staff of the hub: all shares, agents, tokens and users."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any, TypedDict, cast

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
from agents.api.serializers import routing_name
from agents.api.shapes import Access
from agents.models import Agent, Share
from agents.models.session import online_sessions
from kit.clock import iso, iso_or_none
from kit.describe import Page, Time, Uuid


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
    """What to look for."""

    q = serializers.CharField(default="", allow_blank=True, max_length=200)


MOST_ROWS = 500
KINDS = (Credential.Kind.CHANNEL, Credential.Kind.APP)


class ListedShare(TypedDict):
    """A share of any user."""

    id: int
    sessionId: Uuid
    sessionRoute: str | None
    subjectLogin: str
    grantorLogin: str
    role: str
    createdAt: Time


class ListedAgent(TypedDict):
    """An agent of any user, drafts and deleted ones too."""

    id: int
    handle: str
    ownerLogin: str
    tagline: str
    isolated: bool
    liveView: bool
    publicAsk: bool
    access: Access
    sessionRoute: str | None
    online: bool
    status: str
    deletedAt: Time | None
    dailyBudgetQueries: int
    concurrencyCap: int
    createdAt: Time


class ListedToken(TypedDict):
    """A channel or app token of any user."""

    id: int
    kind: str
    name: str
    prefix: str
    userId: int
    userLogin: str
    createdAt: Time
    lastUsedAt: Time | None
    revokedAt: Time | None
    active: bool
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
        """Who lent which session to whom, newest first."""
        shares = Share.objects.select_related("session", "user", "shared_by").order_by("-pk")
        return page(request, shares, _show_shares, HundredQuery, most=MOST_ROWS)


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
        answer = page(request, newest, _show_tokens, TwoHundredQuery, most=MOST_ROWS)
        answer.data["returned"] = len(answer.data["items"])
        return answer


def _show_shares(shares: Sequence[Share]) -> list[ListedShare]:
    return [
        {
            "id": share.pk,
            "sessionId": str(share.session.public_id),
            "sessionRoute": routing_name(share.session),
            "subjectLogin": share.user.login,
            "grantorLogin": share.shared_by.login,
            "role": share.role,
            "createdAt": iso(share.created_at),
        }
        for share in shares
    ]


def _show_agents(agents: Sequence[Agent]) -> list[ListedAgent]:
    online = online_sessions([agent.session_id for agent in agents if agent.deleted_at is None])
    return [
        {
            "id": agent.pk,
            "handle": agent.handle,
            "ownerLogin": agent.owner.login,
            "tagline": agent.tagline,
            "isolated": agent.isolated,
            "liveView": False,
            "publicAsk": False,
            "access": cast(Access, agent.access),
            "sessionRoute": routing_name(agent.session),
            "online": agent.deleted_at is None and agent.session_id in online,
            "status": agent.status,
            "deletedAt": iso_or_none(agent.deleted_at),
            "dailyBudgetQueries": agent.daily_budget,
            "concurrencyCap": agent.concurrency_cap,
            "createdAt": iso(agent.created_at),
        }
        for agent in agents
    ]


def _show_tokens(tokens: Sequence[Credential]) -> list[ListedToken]:
    return [
        {
            "id": token.pk,
            "kind": token.kind,
            "name": token.name,
            "prefix": token.prefix,
            "userId": token.user_id,
            "userLogin": token.user.login,
            "createdAt": iso(token.created_at),
            "lastUsedAt": iso_or_none(token.last_used_at),
            "revokedAt": iso_or_none(token.revoked_at),
            "active": token.is_live,
            "appName": token.app_name or None,
            "machineId": token.machine_id or None,
        }
        for token in tokens
    ]


WEEK = timedelta(days=7)
MOST_USERS = 500


class ListedUser(TypedDict):
    """A user, in snake_case."""

    id: int
    github_login: str
    avatar_url: str | None
    is_admin: bool
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
            _show_users,
            TwoHundredQuery,
            most=MOST_USERS,
        )


def _show_users(users: Sequence[User]) -> list[ListedUser]:
    return [_show_user(user) for user in users]


def _show_user(user: User) -> ListedUser:
    return {
        "id": user.pk,
        "github_login": user.login,
        "avatar_url": user.avatar_url or None,
        "is_admin": user.is_staff,
        "is_service": user.is_service,
        "identities": user.identities,
        "github_id": user.github_id,
        "created_at": iso(user.created_at),
    }
