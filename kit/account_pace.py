"""Rates with bursts, and how fast the sockets of one account are read: all of them together, in one process.

Frames are counted in bytes, and by what they make the hub do: a frame to many recipients counts for each of
them. An account that sent more than its pace allows waits, and its further frames stay in its sockets meanwhile:
nothing is refused, and other accounts get their part of the process.
"""

import asyncio
import math
import time
from collections.abc import Callable, Hashable

from kit.newest import NewestEntries

FRAME = 200  # a frame counts as so many bytes more than it has
PUSH = 500  # a frame to one recipient of many
ROUTED = 10_000  # a frame of the gateway that is routed, or whose handling reads or writes rows
STORED = 20_000  # an agent that connects, a view of a session that is opened, a message of an operator
SEAT = 40_000  # an agent of the gateway that connects: what waits for it is looked up, too
NEW_SESSION = 80_000  # counted beside `STORED` when the session of the agent is new: rows are added, and stay
TOGETHER_S = 0.1  # the shortest wait of a socket: frames that come meanwhile are read together, which costs less
AT_ONCE_S = 1.0  # as much as the pace allows in this time may come at once
ACCOUNTS_KNOWN = 10_000


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

    def reserve(self, number: float) -> float:
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


class AccountPace:
    """The pace of one account. `a_second`: in bytes; 0: no limit.

    `line`: held by what counts as `STORED` or `SEAT` while it waits and is done, so that it is done one by one.
    """

    def __init__(self, a_second: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._bucket = TokenBucket(a_second, a_second * AT_ONCE_S, clock) if a_second else None
        self.line = asyncio.Lock()

    @property
    def is_behind(self) -> bool:
        """True if the account has to wait."""
        return self._bucket is not None and self._bucket.reserve(0) > 0

    def count(self, size: int) -> None:
        """Count a frame that was read."""
        if self._bucket is not None:
            self._bucket.reserve(size)

    async def keep(self, size: int, within_s: float = math.inf, *, at_least_s: float = 0.0) -> None:
        """Wait until the account is within its pace, and count what is done then.

        `within_s`: the longest wait; `at_least_s`: the shortest one, if there is any.
        """
        if self._bucket is not None and (wait_s := self._bucket.reserve(size)):
            await asyncio.sleep(min(max(wait_s, at_least_s), within_s))


class AccountPaces:
    """The paces of all accounts of a process. What connects has a pace of its own, beside that of the frames."""

    def __init__(self, a_second: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._a_second = a_second
        self._clock = clock
        self._paces = NewestEntries[Hashable, AccountPace](ACCOUNTS_KNOWN)

    def of(self, account_id: Hashable) -> AccountPace:
        """The pace of all that is counted for one account."""
        pace = self._paces.get(account_id)
        if pace is None:
            pace = AccountPace(self._a_second, self._clock)
        # The pace that is dropped is of an account that opened no socket for longest.
        self._paces[account_id] = pace
        return pace

    def of_connections(self, account_id: int) -> AccountPace:
        """The pace at which agents of the account connect."""
        return self.of((account_id, "connections"))
