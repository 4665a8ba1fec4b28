"""REST calls on any account, for the staff: what it has, its access, and an end to sign-ins, tokens and roles.

An account that is absent gives 404. Each change is in the audit log.
"""

from typing import Annotated, Literal, TypedDict

from django.db.models import Q
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from accounts import access, groups
from accounts.api.groups import RoleBody
from accounts.models import ClientGrant, Credential, Group, User
from accounts.oauth.signin_methods import list_signin_methods
from accounts.paging import page, page_query
from accounts.rest import Body, caller_of, get_one, identity_of
from accounts.shapes import ApiGroup
from agents.api.admin import MAX_ROWS, ListedToken, StaffView
from agents.api.agent_control import ApiHalt, show_halt
from hub.staff_accounts.overview import (
    SESSION,
    count_limits,
    find_clients,
    find_halts,
    find_memberships,
    find_sessions,
    find_tokens,
    name_kind,
)
from kit.describe import ErrorBody, Page, Time
from kit.rows import RowSource, show, show_each

HUNDRED = page_query(100)


class AccountSignInMethod(TypedDict):
    """A way in which a user can sign in; times are null where the hub does not keep them."""

    name: str
    madeAt: Time | None
    usedAt: Time | None


class AccountLimitUse(TypedDict):
    """A limit, and how much of it an account uses. `most` null: no limit. `unit`: `bytes`, or empty for rows.

    `setting`: has the limit of all accounts; null for a fixed one. A limit that is counted in memory is not here.
    """

    name: str
    used: int
    most: int | None
    unit: Literal["", "bytes"]
    setting: str | None


class StaffAccount(TypedDict):
    """An account as the staff sees it. `sessions`, `tokens`, `clients` and `groups` are numbers of live ones.

    `closedAt`: when the account was erased. `halts`: those that the staff made and that hold now.
    """

    id: int
    login: str
    kind: Literal["person", "program", "group"]
    isActive: bool
    isStaff: bool
    createdAt: Time
    closedAt: Time | None
    signInMethods: list[AccountSignInMethod]
    sessions: int
    tokens: int
    clients: int
    groups: int
    limits: list[AccountLimitUse]
    halts: list[ApiHalt]


class AccountSession(TypedDict):
    """A place where a user is signed in."""

    id: int
    name: str
    userAgent: str | None
    machineId: str | None
    createdAt: Time
    lastUsedAt: Time | None
    expiresAt: Time | None


class AccountClient(TypedDict):
    """A program that stays signed in as a user, because it refreshes its tokens."""

    id: int
    appName: str
    scopes: str
    createdAt: Time
    refreshedAt: Time | None
    expiresAt: Time


class EndedNumber(TypedDict):
    """How many sign-ins, tokens and programs ended."""

    ended: int


class StaffMembership(ApiGroup):
    """A group of a user, with the user's role; `addedBy` null: the user, or an account that is gone."""

    addedBy: Annotated[str | None, RowSource("added_by.login")]


class AccessBody(Body):
    """The access of an account; what the body does not name stays."""

    isActive = serializers.BooleanField(required=False, source="is_active")
    isStaff = serializers.BooleanField(required=False, source="is_staff")


class AccountView(StaffView):
    """A call on one account, whose login is in the path."""

    def account(self, account: str) -> User:
        """The account of a login, with or without @, in any case.

        Raises:
            NotFound: there is no such account.
        """
        found = User.objects.named(account.removeprefix("@"))
        if found is None:
            raise NotFound("no such account")
        return found


class StaffAccounts(AccountView):
    """`/admin/accounts/{login}`"""

    @extend_schema(responses=StaffAccount)
    def get(self, request: Request, account: str) -> Response:
        """One account: its access, how it signs in, what it has, and the part of each limit that it uses."""
        return Response(show_account(self.account(account)))

    @extend_schema(request=AccessBody, responses={200: StaffAccount, 409: ErrorBody})
    def patch(self, request: Request, account: str) -> Response:
        """Suspend or reinstate the account, give or take staff rights; 409 for the last administrator."""
        given = AccessBody.read(request).validated_data
        return Response(show_account(access.change_access(self.account(account), given, by=caller_of(request))))


class AccountSessions(AccountView):
    """`/admin/accounts/{login}/sessions`"""

    @extend_schema(parameters=[HUNDRED], responses=Page[AccountSession])
    def get(self, request: Request, account: str) -> Response:
        """Where the user is signed in, newest first."""
        return page(
            request, find_sessions(self.account(account)), show_each(AccountSession), HUNDRED, most=MAX_ROWS
        )

    @extend_schema(responses={200: EndedNumber})
    def delete(self, request: Request, account: str) -> Response:
        """End all sign-ins of the user; the one that calls stays."""
        user = self.account(account)
        keeps = identity_of(request).credential_id
        ended = access.revoke_credentials(user, Q(kind=SESSION), by=caller_of(request), keeps=keeps)
        return Response(EndedNumber(ended=ended))


class AccountTokens(AccountView):
    """`/admin/accounts/{login}/tokens`"""

    @extend_schema(parameters=[HUNDRED], responses=Page[ListedToken])
    def get(self, request: Request, account: str) -> Response:
        """The live tokens of the user, newest first."""
        return page(request, find_tokens(self.account(account)), show_each(ListedToken), HUNDRED, most=MAX_ROWS)

    @extend_schema(responses={200: EndedNumber})
    def delete(self, request: Request, account: str) -> Response:
        """Revoke all tokens of the user and sign out the programs; the token that calls stays."""
        user, keeps = self.account(account), identity_of(request).credential_id
        return Response(EndedNumber(ended=access.revoke_tokens(user, by=caller_of(request), keeps=keeps)))


class AccountCredential(AccountView):
    """`/admin/accounts/{login}/credentials/{id}`"""

    @extend_schema(responses={204: None})
    def delete(self, request: Request, account: str, credential_id: int) -> Response:
        """End one sign-in, or revoke one token; a repeated call succeeds."""
        user = self.account(account)
        get_one(Credential.objects.filter(user=user, pk=credential_id), "no such sign-in or token")
        access.revoke_credentials(user, Q(pk=credential_id), by=caller_of(request))
        return Response(status=204)


class AccountClients(AccountView):
    """`/admin/accounts/{login}/clients`"""

    @extend_schema(parameters=[HUNDRED], responses=Page[AccountClient])
    def get(self, request: Request, account: str) -> Response:
        """The programs that stay signed in as the user, newest first."""
        return page(request, find_clients(self.account(account)), show_each(AccountClient), HUNDRED, most=MAX_ROWS)


class OneAccountClient(AccountView):
    """`/admin/accounts/{login}/clients/{id}`"""

    @extend_schema(responses={204: None})
    def delete(self, request: Request, account: str, grant_id: int) -> Response:
        """Sign one program out; a repeated call succeeds."""
        user = self.account(account)
        get_one(ClientGrant.objects.filter(user=user, pk=grant_id), "no such program")
        access.end_clients(user, Q(pk=grant_id), by=caller_of(request))
        return Response(status=204)


class AccountGroups(AccountView):
    """`/admin/accounts/{login}/groups`"""

    @extend_schema(parameters=[HUNDRED], responses=Page[StaffMembership])
    def get(self, request: Request, account: str) -> Response:
        """The groups of the user, by slug."""
        return page(request, find_memberships(self.account(account)), show_each(StaffMembership), HUNDRED)


class OneAccountGroup(AccountView):
    """`/admin/accounts/{login}/groups/{slug}`"""

    @extend_schema(request=RoleBody, responses={200: StaffMembership, 409: ErrorBody, 429: ErrorBody})
    def put(self, request: Request, account: str, group_slug: str) -> Response:
        """Add the user to the group in a role, or change the role; 409: no maintainer would be left."""
        user, group = self.account(account), get_group(group_slug)
        role = RoleBody.read(request).validated_data["role"]
        return Response(show(StaffMembership, groups.add_member(group, user, role, by=caller_of(request))))

    @extend_schema(responses={204: None, 409: ErrorBody})
    def delete(self, request: Request, account: str, group_slug: str) -> Response:
        """Remove the user from the group; 409: no maintainer would be left."""
        user, group = self.account(account), get_group(group_slug)
        groups.remove_member(group, user, by=caller_of(request))
        return Response(status=204)


def get_group(slug: str) -> Group:
    """The group of a slug.

    Raises:
        NotFound: there is no such group.
    """
    account = User.objects.named(slug)
    group = Group.objects.select_related("account").filter(account=account).first() if account else None
    if group is None:
        raise NotFound("no such group")
    return group


def show_account(user: User) -> StaffAccount:
    """The JSON of an account."""
    return show(
        StaffAccount,
        user,
        kind=name_kind(user),
        signInMethods=show_each(AccountSignInMethod)(list_signin_methods(user)),
        sessions=find_sessions(user).count(),
        tokens=find_tokens(user).count(),
        clients=find_clients(user).count(),
        groups=find_memberships(user).count(),
        limits=show_each(AccountLimitUse)(count_limits(user)),
        halts=[show_halt(one) for one in find_halts(user)],
    )


ACCOUNT = "admin/accounts/<str:account>"
urlpatterns = [
    path(ACCOUNT, StaffAccounts.as_view(), name="staff-account-rest"),
    path(f"{ACCOUNT}/sessions", AccountSessions.as_view(), name="staff-account-sessions"),
    path(f"{ACCOUNT}/tokens", AccountTokens.as_view(), name="staff-account-tokens"),
    path(
        f"{ACCOUNT}/credentials/<int:credential_id>", AccountCredential.as_view(), name="staff-account-credential"
    ),
    path(f"{ACCOUNT}/clients", AccountClients.as_view(), name="staff-account-clients"),
    path(f"{ACCOUNT}/clients/<int:grant_id>", OneAccountClient.as_view(), name="staff-account-client"),
    path(f"{ACCOUNT}/groups", AccountGroups.as_view(), name="staff-account-groups"),
    path(f"{ACCOUNT}/groups/<str:group_slug>", OneAccountGroup.as_view(), name="staff-account-group"),
]
