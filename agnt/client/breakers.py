"""Where the breakers of calls are kept: the port, and one in memory."""

import time
from collections.abc import Callable
from typing import Protocol

from agnt.breaker import Breaker, CircuitOpen, Pair, PairPermit, enter, leave


class Breakers(Protocol):
    """One breaker for each venue, and one for all. `venue`: the `to` of an envelope."""

    async def enter(self, venue: str) -> PairPermit:
        """Let a call through both.

        Raises:
            CircuitOpen: not now; nothing is to be sent.
        """
        ...

    async def leave(self, venue: str, permit: PairPermit, *, failed: bool) -> None:
        """Record the result of a call. A call without a result has failed after `agnt.breaker.PROBE_S`."""
        ...


class MemoryBreakers:
    """Breakers of one process. `clock`: Unix seconds."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._venues: dict[str, Breaker] = {}
        self._network = Breaker()

    async def enter(self, venue: str) -> PairPermit:
        """See `Breakers`."""
        try:
            pair, permit = enter(self._pair(venue), self._clock())
        except CircuitOpen as refused:
            self._store(venue, refused.pair)
            raise
        self._store(venue, pair)
        return permit

    async def leave(self, venue: str, permit: PairPermit, *, failed: bool) -> None:
        """See `Breakers`."""
        self._store(venue, leave(self._pair(venue), permit, self._clock(), venue=venue, failed=failed))

    def _pair(self, venue: str) -> Pair:
        return Pair(self._venues.get(venue, Breaker()), self._network)

    def _store(self, venue: str, pair: Pair) -> None:
        self._network = pair.network
        if pair.venue == Breaker():
            self._venues.pop(venue, None)
        else:
            self._venues[venue] = pair.venue
