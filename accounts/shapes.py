"""The REST answers of accounts (docs/reference/rest.md) as types, and rows shown as these types."""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict, TypeVar

from django.db import models
from rest_framework import serializers
from rest_framework.request import Request

from accounts.models import Credential
from accounts.paging import read_query
from accounts.rest import caller_of
from kit.clock import iso
from kit.describe import Time, Url
from kit.rows import RowSource, show

GroupRole = Literal["member", "maintainer", "auditor"]


class ApiUser(TypedDict):
    """A person with an account."""

    id: int
    githubLogin: Annotated[str, RowSource("login")]
    avatarUrl: Url | None
    isAdmin: Annotated[bool, RowSource("is_staff")]
    createdAt: Time


class Kept(TypedDict):
    """The days for which the text of questions to one's agents is kept; null: as long as the hub keeps them."""

    questionsKeptDays: int | None
    hubsQuestionsKeptDays: int


class ApiToken(TypedDict):
    """A channel or app token; `prefix` is its beginning, all of its text that is ever shown again.

    `scopes` null: all. `agent`: the one agent that it asks. `expiresAt` null: good until it is revoked. `id` is
    the claim `jti` of a JWT, whose `prefix` names it too.
    """

    id: int
    kind: str
    name: str
    prefix: str
    format: Literal["opaque", "jwt"]
    appName: str | None
    createdAt: Time
    lastUsedAt: Time | None
    expiresAt: Time | None
    scopes: list[str] | None
    agent: Annotated[str | None, RowSource("only_agent")]
    revokedAt: Time | None
    machineId: str | None
    userAgent: str | None


class MintedChannelToken(ApiToken):
    """A new channel token, or one in the place of another, with its text, this once."""

    token: str


class MintedAppToken(TypedDict):
    """A new app token with its text, this once; `id` revokes or rotates it."""

    id: int
    token: str
    tokenName: Annotated[str, RowSource("name")]
    kind: Literal["app"]
    format: Literal["opaque", "jwt"]
    createdAt: Time
    expiresAt: Time | None
    scopes: list[str] | None
    agent: Annotated[str | None, RowSource("only_agent")]


class AuthSession(TypedDict):
    """A signed-in session of a user; `id` is the SHA-256 of its token."""

    id: Annotated[str, RowSource("digest")]
    source: Literal["web", "cli"]
    userAgent: str | None
    machineId: str | None
    createdAt: Time
    lastUsedAt: Time
    expiresAt: Time | None
    revokedAt: Time | None
    isCurrent: bool


class RevokedSession(TypedDict):
    """The session that was signed out, by its whole id."""

    ok: Literal[True]
    id: str


class SessionText(TypedDict):
    """The token of a session, this once."""

    token: str
    expiresAt: Annotated[Time | None, RowSource("credential.expires_at")]


class SignedIn(TypedDict):
    """The answer to a command line that exchanged its code."""

    user: Annotated[ApiUser, RowSource("credential.user")]
    session: Annotated[SessionText, RowSource("")]


class ExchangedApp(TypedDict):
    """The answer to an app that exchanged its code."""

    token: str
    tokenName: Annotated[str, RowSource("credential.name")]
    expiresAt: Annotated[Time | None, RowSource("credential.expires_at")]


class DeviceCodes(TypedDict):
    """The codes that a device shows and polls with; times in seconds."""

    device_code: str
    user_code: str
    verification_uri: Url
    verification_uri_complete: Url
    expires_in: int
    interval: int


class DeviceGranted(TypedDict):
    """The answer to a device after its user has allowed it."""

    access_token: Annotated[str, RowSource("token")]
    token_type: Literal["Bearer"]


class ApiGroup(TypedDict):
    """A group of the caller; `slug` is the login of its account, and `role` the caller's role in it."""

    slug: Annotated[str, RowSource("group.slug")]
    name: Annotated[str, RowSource("group.name")]
    role: GroupRole
    createdAt: Annotated[Time, RowSource("group.created_at")]


class ApiMember(TypedDict):
    """A user in a group."""

    login: Annotated[str, RowSource("user.login")]
    role: GroupRole
    addedBy: Annotated[str | None, RowSource("added_by.login")]
    createdAt: Time


class ApiGroupInvitation(TypedDict):
    """An open link to join a group."""

    id: int
    role: GroupRole
    madeBy: Annotated[str, RowSource("made_by.login")]
    createdAt: Time
    expiresAt: Time


class NewGroupInvitation(ApiGroupInvitation):
    """A new link to join a group with its address, this once."""

    url: Url


Shape = TypeVar("Shape")
NO_STORE = {"Cache-Control": "no-store"}


def show_token(shape: type[Shape], credential: Credential, **given: Any) -> Shape:
    """A channel or app token as a shape that has its format and its scopes."""
    scopes = credential.scopes.split() or None
    return show(shape, credential, format="jwt" if credential.is_jwt else "opaque", scopes=scopes, **given)


def show_auth_session(credential: Credential, current: int) -> AuthSession:
    """The sign-in as JSON. The id is the hash of the token, from which the token cannot be derived."""
    return show(
        AuthSession,
        credential,
        source="web" if credential.source == Credential.Source.WEB else "cli",
        lastUsedAt=iso(credential.last_used_at or credential.created_at),
        isCurrent=credential.pk == current,
    )


def user_agent_of(request: Request) -> str:
    """The program that asks."""
    return str(request.headers.get("User-Agent", ""))


LISTED = 1000


class ListQuery(serializers.Serializer[Any]):
    """The parameters of a list."""

    includeRevoked = serializers.BooleanField(default=False)


def listed(request: Request, kinds: Sequence[Credential.Kind]) -> models.QuerySet[Credential]:
    """The newest LISTED of these kinds, without the revoked unless asked for."""
    own = Credential.objects.filter(user=caller_of(request), kind__in=kinds)
    if not read_query(ListQuery, request)["includeRevoked"]:
        own = own.live()
    newest: models.QuerySet[Credential] = own.order_by("-created_at", "-pk")[:LISTED]
    return newest
