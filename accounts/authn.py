"""One way to know a caller, for HTTP and for sockets: a Bearer token, or the cookie `cw_session`."""

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from functools import cache
from urllib.parse import urlsplit

from django.db import connection
from django.http import parse_cookie
from msgspec import Struct

from accounts.tokens import digest
from kit import sql

COOKIE = "cw_session"
INSUFFICIENT_SCOPE = "insufficient_scope"
SAFE_METHODS = frozenset({"GET", "HEAD", "OPTIONS", "TRACE"})
CALLER_KINDS = ("session", "app")
AGENT_KINDS = ("channel",)
TOUCH_EVERY_S = 60

# Asked anew with each look-up: no identity is cached, so a revoked token is refused from the commit on.
_FIND = """
SELECT c.digest, c.id, c.kind, c.name, u.id, u.login, u.is_staff,
       c.last_used_at IS NULL OR c.last_used_at < {stale}, c.scopes, c.only_agent
FROM accounts_credential c JOIN accounts_user u ON u.id = c.user_id
WHERE c.digest {among} AND c.revoked_at IS NULL AND u.is_active
  AND (c.expires_at IS NULL OR c.expires_at > {now})
"""
_CLOCK = {
    "sqlite": {
        # SQLite compares texts: this is the form in which Django stores a moment.
        "now": "strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now')",
        "stale": f"strftime('%%Y-%%m-%%d %%H:%%M:%%f', 'now', '-{TOUCH_EVERY_S} seconds')",
    },
    "postgresql": {
        "now": "clock_timestamp()",
        "stale": f"clock_timestamp() - interval '{TOUCH_EVERY_S} seconds'",
    },
}


_STILL_GOOD = """
SELECT c.id FROM accounts_credential c JOIN accounts_user u ON u.id = c.user_id
WHERE c.id IN ({marks}) AND c.revoked_at IS NULL AND u.is_active AND (c.expires_at IS NULL OR c.expires_at > {now})
"""


class TokenScope(StrEnum):
    """What a token may be for; stored, never renamed."""

    ASK = "ask"
    READ = "read"
    PUBLISH = "publish"
    ADMIN = "admin"


def scope_text(scope: TokenScope) -> str:
    """What a request without the scope is told."""
    return f"this token is not for this: it takes the scope {scope}, and may not be for one agent alone"


class Identity(Struct, frozen=True):
    """Who a live credential speaks for, and what for. `is_stale`: its last use should be noted again.

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
        """Whether it is for less than all that its user may."""
        return bool(self.scopes or self.only_agent)

    def may(self, scope: TokenScope, *, agent: str = "") -> bool:
        """Whether it is for this. `agent`: the handle, where an agent is asked or its card read."""
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


def identify(digests: Collection[str]) -> dict[str, Identity]:
    """The live identities among these digests, one query for all."""
    if not digests:
        return {}
    among = f"IN ({sql.marks(digests)})"
    return identities(sql.rows(_FIND.format(among=among, **_CLOCK[connection.vendor]), list(digests)))


def identity_statement(vendor: str) -> str:
    """The query behind `identify`, for the ledger: one text; its value `digests` is a list, on SQLite in JSON."""
    if vendor == "postgresql":
        return _FIND.format(among="= ANY(%(digests)s)", **_CLOCK[vendor])
    # The ledger gives statements with named values to SQLite's driver, which takes `%` as it is.
    clock = {name: text.replace("%%", "%") for name, text in _CLOCK[vendor].items()}
    return _FIND.format(among="IN (SELECT value FROM json_each(:digests))", **clock)


def identities(found: Iterable[sql.Row]) -> dict[str, Identity]:
    """What the rows of these queries stand for."""
    return {row[0]: Identity(*row[1:]) for row in found}


def still_good(credential_ids: Collection[int]) -> set[int]:
    """Those among these credentials that would be accepted now."""
    clock = _CLOCK[connection.vendor]
    statement = _STILL_GOOD.format(marks=sql.marks(credential_ids), now=clock["now"])
    return {row[0] for row in sql.rows(statement, list(credential_ids))}
