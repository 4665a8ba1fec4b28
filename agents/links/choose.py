"""One link for the dispatcher: a turn goes by its agent's own."""

from agents.ports import Link
from agents.types import OpenTurn


class ChooseLink:
    """Agents' sockets, and remote servers."""

    def __init__(self, *, channel: Link, remote: Link) -> None:
        self._channel = channel
        self._remote = remote

    async def deliver(self, turn: OpenTurn) -> None:
        """See `agents.ports.Link`."""
        await self._of(turn).deliver(turn)

    async def withdraw(self, turn: OpenTurn) -> None:
        """See `agents.ports.Link`."""
        await self._of(turn).withdraw(turn)

    def _of(self, turn: OpenTurn) -> Link:
        return self._remote if turn.is_remote else self._channel
