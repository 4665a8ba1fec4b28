"""Authenticates callers of HTTP and WebSocket requests: a Bearer token, or the cookie `cw_session`.

The ledger looks up the callers of asks by a statement of its own (`agents.core.ledger.state`).
"""

from collections.abc import Collection, Mapping
from datetime import timedelta
from enum import StrEnum
from functools import cache
from urllib.parse import urlsplit

from django.http import parse_cookie
from msgspec import Struct

from accounts.models import Credential
from accounts.tokens import digest
from kit import sql
from kit.clock import approximate_now

COOKIE = "cw_session"
INSUFFICIENT_SCOPE = "insufficient_scope"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
CALLER_KINDS = ("session", "app")
AGENT_KINDS = ("channel",)
TOUCH_EVERY = timedelta(seconds=60)
_OF_USER = ("user_id", "user__login", "user__is_staff")
_CREDENTIALS = sql.KeyedQuery(
    lambda digests: (
        Credential.objects.live()
        .filter(digest__in=digests, user__is_active=True)
        .values_list("pk", "kind", "name", *_OF_USER, "last_used_at", "scopes", "only_agent")
    )
)


class TokenScope(StrEnum):
    """The scopes of tokens; stored, never renamed."""

    ASK = "ask"
    READ = "read"
    PUBLISH = "publish"
    ADMIN = "admin"


def scope_text(scope: TokenScope) -> str:
    """The error text for a request whose token lacks the scope."""
    return f"this token is not for this: it takes the scope {scope}, and may not be for one agent alone"


class Identity(Struct, frozen=True):
    """The user and the permissions of a valid credential. `is_stale`: its last use should be stored again.

    `scopes`: separated by spaces; empty: all. `only_agent`: the handle, in lower case, of the one agent it asks.
    """

    credential_id: int
    kind: str
    credential_name: str
    user_id: int
    login: str
    is_staff: bool
    is_stale: bool
    scopes: str = ""
    only_agent: str = ""

    @property
    def is_limited(self) -> bool:
        """Whether the credential is limited by scopes or to one agent."""
        return bool(self.scopes or self.only_agent)

    def may(self, scope: TokenScope, *, agent: str = "") -> bool:
        """Whether the credential has the scope. `agent`: the handle, where an agent is asked or its card read."""
        if self.only_agent and agent.lower() != self.only_agent:
            return False
        return not self.scopes or scope in self.scopes.split()


class Presented(Struct, frozen=True):
    """A token as a request presented it; `by_cookie` when the browser sent it by itself.

    `is_foreign`: as a cookie of an unsafe request that is not provably from our own pages.
    """

    digest: str
    by_cookie: bool
    is_foreign: bool = False


def presented(headers: Mapping[str, str], method: str = "GET", public_url: str = "") -> Presented | None:
    """The token of a request, its headers named in lower case: Bearer first, else the cookie."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    # A request that names another scheme chose its credentials: its cookie does not count instead.
    if scheme:
        is_bearer = scheme == "Bearer" or scheme.lower() == "bearer"
        return Presented(digest(token.strip()), by_cookie=False) if is_bearer else None
    cookie = parse_cookie(headers.get("cookie", "")).get(COOKIE)
    if not cookie:
        return None
    is_foreign = method not in SAFE_METHODS and not is_of_own_page(headers, public_url)
    return Presented(digest(cookie), by_cookie=True, is_foreign=is_foreign)


@cache
def origin_of(url: str) -> str:
    """The scheme, host and port of an address, as browsers send it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}"


def is_of_own_page(headers: Mapping[str, str], public_url: str) -> bool:
    """Whether a page of ours sent a request: by `Origin` or, without one, by `Sec-Fetch-Site`."""
    # `Sec-Fetch-Site` counts only where no `Origin` came: sandboxed pages send `null`, which is not ours.
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site") == "same-origin"
    return origin == origin_of(public_url)


def find_identity(token: Presented | None) -> Identity | None:
    """Who presented this token, if it is live.

    Nothing is cached, so a revoked token is refused from the commit on.
    """
    rows = _CREDENTIALS.rows([token.digest]) if token else ()
    for pk, kind, name, user_id, login, is_staff, last_used_at, scopes, only_agent in rows:
        is_stale = last_used_at is None or last_used_at < approximate_now() - TOUCH_EVERY
        return Identity(pk, kind, name, user_id, login, is_staff, is_stale, scopes, only_agent)
    return None


def still_good(credential_ids: Collection[int]) -> set[int]:
    """The credentials, of these, that are still valid."""
    live = Credential.objects.live().filter(pk__in=credential_ids, user__is_active=True)
    return set(live.values_list("pk", flat=True))
