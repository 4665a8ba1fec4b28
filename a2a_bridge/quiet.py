"""How long a stream has put nothing out: clients in use give up after 5 s of that."""

import time

from kit.durations import seconds

KEEPALIVE_S = seconds(3.0, at_least_s=0.75)


class Quiet:
    """A stream's silence since it last put something out, whatever it was told meanwhile."""

    __slots__ = ("_since",)

    def __init__(self) -> None:
        self._since = time.monotonic()

    @property
    def left_s(self) -> float:
        """How long it may go on; nothing once a comment is due."""
        return max(self._since + KEEPALIVE_S - time.monotonic(), 0.0)

    def end(self) -> None:
        """Something went out."""
        self._since = time.monotonic()
