"""One link for the dispatcher: a turn goes by its agent's own."""

from collections.abc import Coroutine
from typing import Any

from agents.core.ports import Link
from agents.core.types import OpenTurn


class ChooseLink:
    """Agents' sockets, and remote servers."""

    def __init__(self, *, channel: Link, remote: Link) -> None:
        self._channel = channel
        self._remote = remote

    def deliver(self, turn: OpenTurn) -> Coroutine[Any, Any, None]:
        """See `agents.core.ports.Link`."""
        return (self._remote if turn.is_remote else self._channel).deliver(turn)

    def withdraw(self, turn: OpenTurn) -> Coroutine[Any, Any, None]:
        """See `agents.core.ports.Link`."""
        return (self._remote if turn.is_remote else self._channel).withdraw(turn)
