"""A rate with bursts: a bucket of tokens that fills at a fixed rate."""

from collections.abc import Callable


class TokenBucket:
    """Allows `a_second` on average, and `at_once` after a pause. `clock` is monotonic."""

    def __init__(self, a_second: float, at_once: float, clock: Callable[[], float]) -> None:
        self._a_second = a_second
        self._at_once = at_once
        self._clock = clock
        self._tokens = at_once
        self._filled_at = clock()

    def take(self) -> float:
        """Take a token; returns 0, or, if there is none, the seconds until there is one."""
        self._fill()
        if self._tokens >= 1:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self._a_second

    def reserve(self, number: int) -> float:
        """Take tokens, also those that are not there yet; the seconds until those that were taken before are."""
        self._fill()
        missing = max(0.0, -self._tokens)
        self._tokens -= number
        return missing / self._a_second

    @property
    def is_full(self) -> bool:
        """True if all tokens are in the bucket."""
        self._fill()
        return self._tokens >= self._at_once

    def _fill(self) -> None:
        now = self._clock()
        self._tokens = min(self._at_once, self._tokens + (now - self._filled_at) * self._a_second)
        self._filled_at = now
