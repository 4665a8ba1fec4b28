"""Extensions a request asks for: what the card has of them is active, others are ignored."""

from a2a_bridge.cards.strict import EXTENSION_PATH
from kit.asgi import Header, Scope, headers_named

NAMES = (b"a2a-extensions", b"x-a2a-extensions")


def activated(scope: Scope, public_url: str) -> list[Header]:
    """The header that says which are active, under the name they were asked for by."""
    ours = f"{public_url}{EXTENSION_PATH}"
    return [(name, ours.encode()) for name in NAMES if ours in _asked(scope, name)]


def _asked(scope: Scope, name: bytes) -> set[str]:
    return {uri.strip() for value in headers_named(scope, name) for uri in value.split(",")}
