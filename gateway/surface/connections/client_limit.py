"""How many sockets without a seat each user has in this process."""

from collections import Counter

from gateway.wire.errors import ErrorCode, FrameRefused
from kit.sockets import TRY_AGAIN_LATER


class GatewayClients:
    """Counts the sockets of each user that have no seat, at most `per_user` in this process."""

    def __init__(self, per_user: int) -> None:
        self._per_user = per_user
        self._open: Counter[int] = Counter()

    def enter(self, user_id: int) -> None:
        """Count a socket.

        Raises:
            FrameRefused: its user holds as many as one may.
        """
        if self._open[user_id] >= self._per_user:
            text = "you hold too many sockets open here"
            raise FrameRefused(ErrorCode.CONNECTION_REFUSED, text, close_code=TRY_AGAIN_LATER)
        self._open[user_id] += 1

    @property
    def total(self) -> int:
        """How many there are."""
        return self._open.total()

    def leave(self, user_id: int) -> None:
        """A socket is over, or took a seat."""
        self._open[user_id] -= 1
        if self._open[user_id] <= 0:
            del self._open[user_id]
