"""Authenticates callers of HTTP and WebSocket requests: a Bearer token, or the cookie `cw_session`.

A surface checks in this order (docs/adr/0104): HTTP method, repeated headers, media type, size and deadline of the
body (`kit.asgi.HttpRequest`); the caller, whose token it looks up first; the JSON (`kit.strict_json`).
The ledger looks up the callers of asks by a statement of its own (`agents.core.ledger.state`).
"""

import hashlib
import re
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum
from functools import cache
from urllib.parse import urlsplit

from django.http import HttpRequest, parse_cookie
from msgspec import Struct

from accounts import settings
from accounts.error_responses import FORBIDDEN_ORIGIN, FORBIDDEN_ORIGIN_TEXT
from accounts.models import Credential, User
from kit.asgi import RequestRefused
from kit.clock import approximate_now
from kit.sql import DATABASE_UNAVAILABLE

COOKIE = "cw_session"
INSUFFICIENT_SCOPE = "insufficient_scope"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
CALLER_KINDS = ("session", "app")
AGENT_KINDS = ("channel",)
TOUCH_EVERY = timedelta(seconds=60)


class TokenScope(StrEnum):
    """The scopes of tokens; stored, never renamed."""

    ASK = "ask"
    READ = "read"
    PUBLISH = "publish"
    ADMIN = "admin"
    CONNECT = "connect"


# Of a token without stated scopes.
IMPLIED_SCOPES = (TokenScope.ASK, TokenScope.READ, TokenScope.PUBLISH, TokenScope.ADMIN)
IMPLIED_SCOPES_OF_ONE_AGENT = (TokenScope.ASK, TokenScope.READ)
SCOPES_OF_ONE_AGENT = (TokenScope.ASK, TokenScope.READ, TokenScope.CONNECT)
SEAT_NAME = re.compile(r"[a-z][a-z0-9-]{0,63}")  # the form of an agent's name at the gateway
# `gateway` is the hub itself, `broadcast` all agents of a team.
RESERVED_SEATS = frozenset({"gateway", "broadcast"})


def scope_text(scope: TokenScope) -> str:
    """The error text for a request whose token lacks the scope."""
    return f"this token is not for this: it takes the scope {scope}, and may not be for one agent alone"


class Identity(Struct, frozen=True):
    """The user and the permissions of a valid credential. `is_stale`: its last use should be stored again.

    `scopes`: separated by spaces; empty: all. `only_agent`: the handle, in lower case, of the one agent it asks.
    `is_group`: the user is the account of a group, which never has the scope `ask`: as a second caller a user
    would get around blocks, halts and budgets of the user's own account (docs/adr/0192).
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
    is_group: bool = False

    @property
    def is_limited(self) -> bool:
        """True if the credential is limited by scopes or to one agent."""
        return bool(self.scopes or self.only_agent)

    def may(self, scope: TokenScope | None, *, agent: str = "") -> bool:
        """True if the credential has the scope; for None, if the credential has any scope but `connect`.

        `agent`: the handle of the agent that is asked, or whose card is read.
        """
        if scope is None:
            return self.scopes != TokenScope.CONNECT
        if self.only_agent and agent.lower() != self.only_agent:
            return False
        if self.is_group and scope == TokenScope.ASK:
            return False
        return scope in ((self.scopes and self.scopes.split()) or IMPLIED_SCOPES)

    def may_see(self, agent: str) -> bool:
        """True if the credential may ask the agent of this handle, or read its card."""
        return self.may(TokenScope.READ, agent=agent) or self.may(TokenScope.ASK, agent=agent)

    @property
    def may_list_agents(self) -> bool:
        """True if the credential may list agents; a credential for one agent lists only that one."""
        return self.may_see(self.only_agent)


@dataclass(frozen=True, slots=True)
class Caller:
    """A signed-in user with the credential of the request.

    `acts_for`: the account of a group that the browser's session names; not checked (`accounts.acting`).
    """

    user: User
    identity: Identity
    acts_for: int | None = None


class Presented(Struct, frozen=True):
    """The token of a request, not looked up yet. `by_cookie`: it came in the cookie, which browsers send unasked.

    `is_foreign`: it came in the cookie of an unsafe request that is not provably from a page of the hub.
    """

    digest: str
    by_cookie: bool
    is_foreign: bool = False


def digest(token: str) -> str:
    """The stored form of a token: SHA-256 in hex. 128 random bits need no salt and no slow hash."""
    return hashlib.sha256(token.encode()).hexdigest()


def presented(headers: Mapping[str, str], method: str = "GET", public_url: str = "") -> Presented | None:
    """The token of a request, its headers named in lower case: Bearer first, else the cookie."""
    scheme, _, token = headers.get("authorization", "").partition(" ")
    # A request with an Authorization header of another scheme is not authenticated by its cookie instead.
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
    """True if a page of the hub sent the request: by `Origin` or, without it, by `Sec-Fetch-Site`."""
    # `Sec-Fetch-Site` counts only without an `Origin`: sandboxed pages send the origin `null`, which is foreign.
    origin = headers.get("origin")
    if origin is None:
        return headers.get("sec-fetch-site") == "same-origin"
    return origin == origin_of(public_url)


def presented_by(request: HttpRequest) -> Presented | None:
    """The token of a request that Django serves, valid or not."""
    # The hub's own address is needed only for a cookie.
    public_url = "" if "Authorization" in request.headers else settings.PUBLIC_URL
    return presented(request.headers, request.method or "", public_url)


def find_caller(request: HttpRequest) -> Caller | None:
    """The caller of a request, by a valid session or app credential of an active user.

    Stores when the credential was used.
    """
    caller = find_holder(presented_by(request), *CALLER_KINDS)
    if caller is not None and caller.identity.is_stale:
        # A request that only reads succeeds also if the database takes no writes.
        with suppress(*DATABASE_UNAVAILABLE):
            Credential.touch([caller.identity.credential_id])
    return caller


def find_holder(token: Presented | None, *kinds: str) -> Caller | None:
    """The active user of this token, if the token is valid and of one of these kinds.

    Nothing is cached, so a revoked token is refused as soon as its revocation is committed.
    """
    if token is None:
        return None
    live = Credential.objects.accepted().filter(digest=token.digest, kind__in=kinds)
    # At most one: digests are unique.
    found: Credential | None = next(iter(live.select_related("user").order_by()), None)
    if found is None:
        return None
    used_at, user = found.last_used_at, found.user
    identity = Identity(
        credential_id=found.pk,
        kind=found.kind,
        credential_name=found.name,
        user_id=user.pk,
        login=user.login,
        is_staff=user.is_staff,
        is_stale=used_at is None or used_at < approximate_now() - TOUCH_EVERY,
        scopes=found.scopes,
        only_agent=found.only_agent,
        is_group=user.is_group,
    )
    return Caller(user, identity, found.acts_for_id)


def still_good(credential_ids: Collection[int]) -> set[int]:
    """The ids of those of these credentials that are still valid."""
    live = Credential.objects.accepted().filter(pk__in=credential_ids)
    return set(live.values_list("pk", flat=True))


class Unauthenticated(RequestRefused):
    """The request has no valid token of an accepted kind."""

    def __init__(self, kinds: Collection[str] = CALLER_KINDS) -> None:
        wanted = f"want a live {' or '.join(kinds)} token"
        super().__init__(401, "unauthorized", wanted, (b"www-authenticate", b"Bearer"))


class ForeignOrigin(RequestRefused):
    """The request is unsafe, has a cookie, and is not provably from a page of the hub."""

    def __init__(self) -> None:
        super().__init__(403, FORBIDDEN_ORIGIN, FORBIDDEN_ORIGIN_TEXT)


class OutOfScope(RequestRefused):
    """The token lacks the scope. `scope`: see `Identity.may`; for None the error names a scope that suffices."""

    def __init__(self, scope: TokenScope | None) -> None:
        scope = scope or TokenScope.READ
        challenge = f'Bearer error="{INSUFFICIENT_SCOPE}", scope="{scope}"'.encode()
        super().__init__(403, INSUFFICIENT_SCOPE, scope_text(scope), (b"www-authenticate", challenge))


def check_caller(
    token: Presented | None,
    identity: Identity | None,
    *scopes: TokenScope,
    kinds: Collection[str] = CALLER_KINDS,
    agent: str = "",
) -> Identity:
    """Check the token of a request and the identity that was found for it; returns the identity.

    `scopes`: the scopes that the token needs; without them, any scope but `connect`. `agent`: the handle of the
    agent that is asked.

    Raises:
        Unauthenticated, ForeignOrigin, OutOfScope: the first in this order.
    """
    if token is None or identity is None or identity.kind not in kinds:
        raise Unauthenticated(kinds)
    if token.is_foreign:
        raise ForeignOrigin
    for scope in scopes or (None,):
        if not identity.may(scope, agent=agent):
            raise OutOfScope(scope)
    return identity
