"""The operators' sockets of one process."""

import asyncio
from typing import Protocol

from kit.sockets import SERVICE_RESTART


class Held(Protocol):
    """A signed-in operator's socket."""

    credential_id: int
    user_id: int

    def refuse(self, code: str, message: str) -> None:
        """Close for good: it must not come back with this token."""

    def end(self, code: int) -> None:
        """Close, once what is queued was sent."""

    async def ended(self) -> None:
        """Wait until the close was sent, or could not be."""


class Room:
    """Knows them, so that a revoked credential or a restart can close them."""

    def __init__(self, sockets_per_user: int) -> None:
        self._sockets_per_user = sockets_per_user
        self._sockets: set[Held] = set()
        self.is_closed = False

    @property
    def sockets(self) -> int:
        """How many are open."""
        return len(self._sockets)

    @property
    def credential_ids(self) -> set[int]:
        """Whose sockets are open."""
        return {socket.credential_id for socket in self._sockets}

    def enter(self, socket: Held) -> bool:
        """It has signed in; False when its user holds as many already."""
        if sum(other.user_id == socket.user_id for other in self._sockets) >= self._sockets_per_user:
            return False
        self._sockets.add(socket)
        return True

    def leave(self, socket: Held) -> None:
        """It is over."""
        self._sockets.discard(socket)

    def dismiss(self, credential_ids: set[int]) -> None:
        """These credentials are no longer good."""
        for socket in self._of(credential_ids):
            socket.refuse("token_revoked", "this token was revoked")

    def halt(self, credential_ids: set[int]) -> None:
        """The users of these credentials are halted."""
        for socket in self._of(credential_ids):
            socket.refuse("halted", "your questions are halted")

    def _of(self, credential_ids: set[int]) -> list[Held]:
        return [socket for socket in self._sockets if socket.credential_id in credential_ids]

    async def close(self) -> None:
        """Send them all elsewhere, and take no more."""
        self.is_closed = True
        leaving = list(self._sockets)
        for socket in leaving:
            socket.end(SERVICE_RESTART)
        await asyncio.gather(*(socket.ended() for socket in leaving))
