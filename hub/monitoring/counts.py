"""Counters of this process since its start. Counting only adds to numbers, without locks."""

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

from agnt.service.figures import AgntCounts

LATENCY_BOUNDS_S = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
BATCH_BOUNDS = (1, 2, 4, 8, 16, 32, 64, 128)


class Histogram:
    """How many values were at most each bound; written by one thread."""

    def __init__(self, bounds: Sequence[float]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0.0

    def add(self, value: float) -> None:
        """Count one."""
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    def buckets(self) -> list[tuple[str, float]]:
        """Bound and how many values were at most that; the last is all."""
        total, found = 0.0, []
        for bound, count in zip([*map(str, self._bounds), "+Inf"], list(self._counts), strict=True):
            total += count
            found.append((bound, total))
        return found


class Counts:
    """Asks by how they ended and why, how long turns took, how many pieces of work the ledger wrote at once.

    `agnt`: what the endpoint of AGNT counts.
    """

    def __init__(self) -> None:
        self.asks: Counter[tuple[str, str]] = Counter()
        self.latency_s = Histogram(LATENCY_BOUNDS_S)
        self.batches = Histogram(BATCH_BOUNDS)
        self.agnt = AgntCounts()

    def refused(self, outcome: str, reason: str) -> None:
        """An ask that became no turn."""
        self.asks[outcome, reason] += 1

    def ended(self, outcome: str, reason: str, latency_ms: int | None) -> None:
        """A turn as its row says that it ended."""
        self.asks[outcome, reason] += 1
        if latency_ms is not None:
            self.latency_s.add(latency_ms / 1000)

    def committed(self, size: int) -> None:
        """The ledger took so many pieces of work at once; called by its thread."""
        self.batches.add(size)
