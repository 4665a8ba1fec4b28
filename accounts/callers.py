"""The caller of a request: one check for every surface, and how Django's pages, admin and REST find theirs.

A surface checks in this order (docs/adr/0104): HTTP method, headers that came twice, media type, size and deadline
of the body (`kit.asgi.HttpRequest`); the caller, after it has looked up the token; the JSON (`kit.strict_json`).
"""

from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass

from django.http import HttpRequest

from accounts.authn import (
    CALLER_KINDS,
    COOKIE,
    INSUFFICIENT_SCOPE,
    Identity,
    Presented,
    TokenScope,
    find_identity,
    presented,
    scope_text,
)
from accounts.error_pages import FORBIDDEN_ORIGIN, FORBIDDEN_ORIGIN_TEXT
from accounts.models import Credential, User
from accounts.settings import get_settings
from kit.asgi import RequestRefused
from kit.sql import AWAY

NAMED = ("authorization", "origin", "sec-fetch-site")


@dataclass(frozen=True, slots=True)
class Caller:
    """A signed-in user with the credential of the request."""

    user: User
    identity: Identity


def presented_by(request: HttpRequest) -> Presented | None:
    """The token of a request, valid or not."""
    headers = {name: request.headers[name] for name in NAMED if name in request.headers}
    # Django's own parsing of cookies, because ours fails on a malformed cookie beside ours.
    headers["cookie"] = f"{COOKIE}={request.COOKIES[COOKIE]}" if COOKIE in request.COOKIES else ""
    return presented(headers, request.method or "", get_settings().public_url)


def find_caller(request: HttpRequest) -> Caller | None:
    """The caller of a request, by a valid session or app credential of an active user.

    Stores the time of its use.
    """
    identity = find_identity(presented_by(request))
    if identity is None or identity.kind not in CALLER_KINDS:
        return None
    if identity.is_stale:
        with suppress(*AWAY):  # who reads needs nothing written; the next use is noted
            Credential.touch([identity.credential_id])
    user = User.objects.filter(pk=identity.user_id).first()
    return Caller(user, identity) if user else None


class Unauthenticated(RequestRefused):
    """No live token of the right kind."""

    def __init__(self, kinds: Collection[str] = CALLER_KINDS) -> None:
        wanted = f"want a live {' or '.join(kinds)} token"
        super().__init__(401, "unauthorized", wanted, (b"www-authenticate", b"Bearer"))


class ForeignOrigin(RequestRefused):
    """A cookie came with an unsafe request that is not provably from our own pages."""

    def __init__(self) -> None:
        super().__init__(403, FORBIDDEN_ORIGIN, FORBIDDEN_ORIGIN_TEXT)


class OutOfScope(RequestRefused):
    """The token is for something else."""

    def __init__(self, scope: TokenScope) -> None:
        challenge = f'Bearer error="{INSUFFICIENT_SCOPE}", scope="{scope}"'.encode()
        super().__init__(403, INSUFFICIENT_SCOPE, scope_text(scope), (b"www-authenticate", challenge))


def check_caller(
    token: Presented | None,
    identity: Identity | None,
    *scopes: TokenScope,
    kinds: Collection[str] = CALLER_KINDS,
    agent: str = "",
) -> Identity:
    """The caller, by the token of a request and the identity that was found for it.

    `scopes`: what the token has to be for. `agent`: the handle, where an agent is asked.

    Raises:
        Unauthenticated, ForeignOrigin, OutOfScope: the first in this order.
    """
    if token is None or identity is None or identity.kind not in kinds:
        raise Unauthenticated(kinds)
    if token.is_foreign:
        raise ForeignOrigin
    for scope in scopes:
        if not identity.may(scope, agent=agent):
            raise OutOfScope(scope)
    return identity
