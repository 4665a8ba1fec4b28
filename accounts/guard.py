"""The caller of a request, checked in one way on every surface (docs/adr/0104).

A surface checks in this order: HTTP method, headers that came twice, media type, size and deadline of the body
(`kit.asgi.HttpRequest`); the caller, after it has looked up the token; the JSON (`kit.strict_json`).
"""

from collections.abc import Collection

from accounts.authn import CALLER_KINDS, INSUFFICIENT_SCOPE, Identity, Presented, TokenScope, scope_text
from accounts.error_pages import FORBIDDEN_ORIGIN, FORBIDDEN_ORIGIN_TEXT
from kit.asgi import RequestRefused


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
