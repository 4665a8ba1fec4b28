"""The circuit breakers of a call to a venue: one of the venue and one of its network.

Five failures within 600 s open a breaker; for 300 s it refuses all calls, then one call probes. The breaker of a
network counts only the calls that did not get through (`Blame.NETWORK`), to all its venues, and opens only when
at least two venues are among them.

The functions do no I/O and take the time. `Breakers` is the port of a store, `MemoryBreakers` the store of one
process.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import Enum
from typing import Protocol

from clawbridge.breaker import BreakerMemory, BreakerRules, Permit

COOLDOWN_S = 300
LOOP_DETECTED = 508
PROBE_S = 20  # the longest time to live of an envelope, and 5 s
OF_VENUE = BreakerRules(failures=5, window_s=600, cooldown_s=COOLDOWN_S, probe_s=PROBE_S)
OF_NETWORK = replace(OF_VENUE, sources=2)
FAIR_S = 4.0  # a venue that had less time and gave no answer did not fail: its caller, or the hub, was in a hurry
LAG_S = (
    0.5  # a program that sees the end of the time so much later was slow itself, and may have missed the answer
)
_CLOSED = BreakerMemory()


class Blame(Enum):
    """The side to blame for the end of a call.

    `NONE`: the other side is well. `VENUE`: its answer is of no use, or did not come in a fair time. `NETWORK`: no
    connection, or one that broke off; that is a failure of the venue and of its network. `UNKNOWN`: the end says
    nothing of them.
    """

    NONE = "none"
    VENUE = "venue"
    NETWORK = "network"
    UNKNOWN = "unknown"

    @property
    def is_failure(self) -> bool:
        """True if a breaker counts it."""
        return self in (Blame.VENUE, Blame.NETWORK)


def blame_status(status: int) -> Blame:
    """The side to blame for an answer with this HTTP status.

    508, Loop Detected, is no failure: the envelope causes it, and its sender could open breakers by it.
    """
    return Blame.VENUE if status >= 500 and status != LOOP_DETECTED else Blame.NONE


def blame_late(had_s: float, lag_s: float = 0.0) -> Blame:
    """The side to blame if no answer came in time.

    Args:
        had_s: the time between the sending and the end of the time; it is the caller who sets that end.
        lag_s: how much later than that end this program saw it.
    """
    return Blame.VENUE if had_s >= FAIR_S and lag_s <= LAG_S else Blame.UNKNOWN


@dataclass(frozen=True, slots=True)
class Pair:
    """The breakers that a call to a venue passes."""

    venue: BreakerMemory = _CLOSED
    network: BreakerMemory = _CLOSED

    @property
    def is_open(self) -> bool:
        """True if one of the two breakers is open."""
        return self.venue.is_open or self.network.is_open


@dataclass(frozen=True, slots=True)
class PairPermit:
    """A call that both breakers let through."""

    venue: Permit
    network: Permit

    @property
    def is_probe(self) -> bool:
        """True if the call probes one of the two breakers."""
        return self.venue.is_probe or self.network.is_probe


class CircuitOpen(Exception):
    """A breaker refused the call, nothing was sent. `pair`: the states to store, as a lost probe may have counted.

    `is_network`: the breaker of the network refused it. `retry_after_s`: the earliest time of the next probe.
    """

    def __init__(self, pair: Pair, *, is_network: bool, retry_after_s: int) -> None:
        super().__init__("the network failed too often" if is_network else "the venue failed too often")
        self.pair = pair
        self.is_network = is_network
        self.retry_after_s = retry_after_s


def enter(pair: Pair, now_s: float) -> tuple[Pair, PairPermit]:
    """Let a call through both breakers, the venue's first.

    A refusal takes no probe and counts nowhere as a failure.

    Raises:
        CircuitOpen: not now.
    """
    pair = Pair(pair.venue.release_probe(now_s), pair.network.release_probe(now_s))
    if wait_s := pair.venue.wait_s(now_s, OF_VENUE):
        raise CircuitOpen(pair, is_network=False, retry_after_s=wait_s)
    if wait_s := pair.network.wait_s(now_s, OF_NETWORK):
        raise CircuitOpen(pair, is_network=True, retry_after_s=wait_s)
    venue, of_venue = pair.venue.let_through(now_s, OF_VENUE)
    network, of_network = pair.network.let_through(now_s, OF_NETWORK)
    return Pair(venue, network), PairPermit(of_venue, of_network)


def leave(pair: Pair, permit: PairPermit, now_s: float, *, venue: str, blame: Blame) -> Pair:
    """The breakers after the end of a call that `enter` let through. `venue`: what names its venue.

    After `UNKNOWN` the next call probes, if this one was the probe.
    """
    if blame is Blame.UNKNOWN:
        return Pair(pair.venue.give_back(permit.venue), pair.network.give_back(permit.network))
    return Pair(
        pair.venue.record(permit.venue, now_s, OF_VENUE, venue if blame.is_failure else None),
        pair.network.record(permit.network, now_s, OF_NETWORK, venue if blame is Blame.NETWORK else None),
    )


class Breakers(Protocol):
    """One breaker for each venue, and one for all. `venue`: the `to` of an envelope."""

    async def enter(self, venue: str) -> PairPermit:
        """Let a call through both.

        Raises:
            CircuitOpen: a breaker refuses the call; the caller must send nothing.
        """
        ...

    async def leave(self, venue: str, permit: PairPermit, blame: Blame) -> None:
        """Record the end of a call. A probe without an end has failed after `PROBE_S`."""
        ...


class MemoryBreakers:
    """Breakers of one process. `clock`: Unix seconds."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._venues: dict[str, BreakerMemory] = {}
        self._network = _CLOSED

    async def enter(self, venue: str) -> PairPermit:
        """See `Breakers`."""
        try:
            pair, permit = enter(self._pair(venue), self._clock())
        except CircuitOpen as refused:
            self._store(venue, refused.pair)
            raise
        self._store(venue, pair)
        return permit

    async def leave(self, venue: str, permit: PairPermit, blame: Blame) -> None:
        """See `Breakers`."""
        self._store(venue, leave(self._pair(venue), permit, self._clock(), venue=venue, blame=blame))

    def _pair(self, venue: str) -> Pair:
        return Pair(self._venues.get(venue, _CLOSED), self._network)

    def _store(self, venue: str, pair: Pair) -> None:
        self._network = pair.network
        if pair.venue == _CLOSED:
            self._venues.pop(venue, None)
        else:
            self._venues[venue] = pair.venue
