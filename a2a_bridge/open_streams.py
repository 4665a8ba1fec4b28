"""How many streams each caller holds open in this process."""

from collections import Counter

from a2a_bridge.errors import too_many_streams


class OpenStreams:
    """Counts streams; a caller over the limit gets HTTP 429 before anything is asked."""

    def __init__(self, per_caller: int) -> None:
        self._per_caller = per_caller
        self._open: Counter[int] = Counter()

    @property
    def total(self) -> int:
        """All that are open in this process."""
        return self._open.total()

    def enter(self, caller_id: int) -> None:
        """Count a stream that opens; `leave` when it ends.

        Raises:
            RpcError: the caller holds as many as it may.
        """
        if self._open[caller_id] >= self._per_caller:
            raise too_many_streams(self._per_caller)
        self._open[caller_id] += 1

    def leave(self, caller_id: int) -> None:
        """A stream has ended."""
        self._open[caller_id] -= 1
        if not self._open[caller_id]:
            del self._open[caller_id]
