"""Tells whoever depends on credentials that some were revoked. `hub` hands down who that is."""

from collections.abc import Callable, Sequence

Listener = Callable[[Sequence[int]], None]

_listeners: list[Listener] = []


def on_revoked(listener: Listener) -> None:
    """Call it with the ids of credentials, inside the transaction that revokes them."""
    if listener not in _listeners:
        _listeners.append(listener)


def announce(credential_ids: Sequence[int]) -> None:
    """These were just revoked."""
    if credential_ids:
        for listener in _listeners:
            listener(credential_ids)
