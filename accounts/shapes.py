"""What accounts answer over REST (docs/reference/rest.md): the shapes, and the functions that fill them."""

from typing import Literal, TypedDict

from rest_framework.request import Request

from accounts.models import Credential, User
from accounts.tokens import Minted
from kit.describe import Time, Url
from kit.iso import iso, iso_or_none

NO_STORE = {"Cache-Control": "no-store"}


class ApiUser(TypedDict):
    """A person with an account."""

    id: int
    githubLogin: str
    avatarUrl: Url | None
    isAdmin: bool
    createdAt: Time


class Kept(TypedDict):
    """How long the text of questions to one's agents is kept, in days; null: as long as the hub keeps them."""

    questionsKeptDays: int | None
    hubsQuestionsKeptDays: int


class ApiToken(TypedDict):
    """A channel or app token; `prefix` is its beginning, all of its text that is ever shown again.

    `scopes` null: all. `agent`: the one agent that it asks. `expiresAt` null: good until it is revoked.
    """

    id: int
    kind: str
    name: str
    prefix: str
    appName: str | None
    createdAt: Time
    lastUsedAt: Time | None
    expiresAt: Time | None
    scopes: list[str] | None
    agent: str | None
    revokedAt: Time | None
    machineId: str | None
    userAgent: str | None


class MintedChannelToken(ApiToken):
    """A new channel token, or one in the place of another, with its text, this once."""

    token: str


class MintedAppToken(TypedDict):
    """A new app token with its text, this once."""

    token: str
    tokenName: str
    kind: Literal["app"]
    createdAt: Time
    expiresAt: Time | None
    scopes: list[str] | None
    agent: str | None


class AuthSession(TypedDict):
    """A place where somebody is signed in; `id` is the SHA-256 of its token."""

    id: str
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
    expiresAt: Time | None


class SignedIn(TypedDict):
    """What a command line gets for its code."""

    user: ApiUser
    session: SessionText


class ExchangedApp(TypedDict):
    """What an app gets for its code."""

    token: str
    tokenName: str
    expiresAt: Time | None


class DeviceCodes(TypedDict):
    """What a device shows, and what it polls with; times in seconds."""

    device_code: str
    user_code: str
    verification_uri: Url
    verification_uri_complete: Url
    expires_in: int
    interval: int


class DeviceGranted(TypedDict):
    """What a device gets when its user has allowed it."""

    access_token: str
    token_type: Literal["Bearer"]


def api_user(user: User) -> ApiUser:
    """ApiUser of the native API."""
    return {
        "id": user.pk,
        "githubLogin": user.login,
        "avatarUrl": user.avatar_url or None,
        "isAdmin": user.is_staff,
        "createdAt": iso(user.created_at),
    }


def api_token(credential: Credential) -> ApiToken:
    """ApiToken of the native API."""
    return {
        "id": credential.pk,
        "kind": credential.kind,
        "name": credential.name,
        "prefix": credential.prefix,
        "appName": credential.app_name or None,
        "createdAt": iso(credential.created_at),
        "lastUsedAt": iso_or_none(credential.last_used_at),
        "expiresAt": iso_or_none(credential.expires_at),
        "scopes": credential.scopes.split() or None,
        "agent": credential.only_agent or None,
        "revokedAt": iso_or_none(credential.revoked_at),
        "machineId": credential.machine_id or None,
        "userAgent": credential.user_agent or None,
    }


def api_auth_session(credential: Credential, current: int) -> AuthSession:
    """AuthSession of the native API; its id is the hash of its token, which is of no use to anybody."""
    return {
        "id": credential.digest,
        "source": "web" if credential.source == Credential.Source.WEB else "cli",
        "userAgent": credential.user_agent or None,
        "machineId": credential.machine_id or None,
        "createdAt": iso(credential.created_at),
        "lastUsedAt": iso(credential.last_used_at or credential.created_at),
        "expiresAt": iso_or_none(credential.expires_at),
        "revokedAt": iso_or_none(credential.revoked_at),
        "isCurrent": credential.pk == current,
    }


def api_session_token(minted: Minted) -> SignedIn:
    """What a command line gets for its code."""
    credential = minted.credential
    return {
        "user": api_user(credential.user),
        "session": {"token": minted.token, "expiresAt": iso_or_none(credential.expires_at)},
    }


def user_agent_of(request: Request) -> str:
    """The program that asks."""
    return str(request.headers.get("User-Agent", ""))
