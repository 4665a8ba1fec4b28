"""Circuit breakers as values: one of a venue and one of its network. No I/O, and the clock is given.

Five failures within 600 s open a breaker; for 300 s it refuses all calls, then one call probes. The breaker of a
network counts the failures of all its venues, and opens only when at least two venues are among them. The caller
stores the states, so that all processes share them: each change happens to a state that was read under its lock.
"""

import math
from dataclasses import dataclass, replace

FAILURES = 5
WINDOW_S = 600
COOLDOWN_S = 300
PROBE_S = 20  # the longest time to live of an envelope, and 5 s
VENUES_OF_NETWORK = 2  # so many must be among the failures that open the breaker of a network


@dataclass(frozen=True, slots=True)
class Failure:
    """A failed call. `at_s`: Unix seconds, as all times here."""

    at_s: float
    venue: str


@dataclass(frozen=True, slots=True)
class Breaker:
    """The state of one breaker. `opened_at_s` None: closed. `probe_until_s`: a probe is out until then.

    `failures`: the last ones, at most five; only a closed breaker has some. `openings`: how often it opened; a
    result counts only for the opening after which its call was let through.
    """

    failures: tuple[Failure, ...] = ()
    opened_at_s: float | None = None
    probe_until_s: float | None = None
    openings: int = 0

    @property
    def is_open(self) -> bool:
        """Whether it refuses calls, but for a probe."""
        return self.opened_at_s is not None


@dataclass(frozen=True, slots=True)
class Permit:
    """A call that a breaker let through; give it back with the result. `opening`: `openings` at that time."""

    opening: int
    is_probe: bool


@dataclass(frozen=True, slots=True)
class Pair:
    """The breakers that a call to a venue passes."""

    venue: Breaker = Breaker()
    network: Breaker = Breaker()


@dataclass(frozen=True, slots=True)
class PairPermit:
    """A call that both breakers let through."""

    venue: Permit
    network: Permit


class CircuitOpen(Exception):
    """A breaker refused the call, nothing was sent. `pair`: the states to store, as a lost probe may have counted.

    `is_network`: the breaker of the network refused it. `retry_after_s`: the earliest time of the next probe.
    """

    def __init__(self, pair: Pair, *, is_network: bool, retry_after_s: int) -> None:
        super().__init__("the network failed too often" if is_network else "the venue failed too often")
        self.pair = pair
        self.is_network = is_network
        self.retry_after_s = retry_after_s


def is_failure(status: int | None) -> bool:
    """Whether an answer of a venue counts as a failure. `status`: of HTTP; None: no answer came in time."""
    return status is None or status >= 500


def enter(pair: Pair, now_s: float) -> tuple[Pair, PairPermit]:
    """Let a call through both breakers, the venue's first.

    A refusal takes no probe and counts nowhere as a failure.

    Raises:
        CircuitOpen: not now.
    """
    pair = Pair(_release_probe(pair.venue, now_s), _release_probe(pair.network, now_s))
    for breaker, is_network in ((pair.venue, False), (pair.network, True)):
        if wait_s := _wait_s(breaker, now_s):
            raise CircuitOpen(pair, is_network=is_network, retry_after_s=wait_s)
    venue, of_venue = _let_through(pair.venue, now_s)
    network, of_network = _let_through(pair.network, now_s)
    return Pair(venue, network), PairPermit(of_venue, of_network)


def leave(pair: Pair, permit: PairPermit, now_s: float, *, venue: str, failed: bool) -> Pair:
    """The breakers after the result of a call that `enter` let through. `venue`: the agent id of its venue."""
    failure = Failure(now_s, venue) if failed else None
    return Pair(
        _record(pair.venue, permit.venue, now_s, failure, venues=1),
        _record(pair.network, permit.network, now_s, failure, venues=VENUES_OF_NETWORK),
    )


def _release_probe(breaker: Breaker, now_s: float) -> Breaker:
    """A probe that never returned is a failure at the time when it should have."""
    if breaker.probe_until_s is None or now_s < breaker.probe_until_s:
        return breaker
    return _open(breaker, breaker.probe_until_s)


def _wait_s(breaker: Breaker, now_s: float) -> int:
    """The seconds for which it refuses calls, at least 1; 0: it takes one now."""
    if breaker.opened_at_s is None:
        return 0
    until_s = breaker.opened_at_s + COOLDOWN_S if breaker.probe_until_s is None else breaker.probe_until_s
    return max(0, math.ceil(until_s - now_s))


def _let_through(breaker: Breaker, now_s: float) -> tuple[Breaker, Permit]:
    permit = Permit(breaker.openings, is_probe=breaker.is_open)
    return (replace(breaker, probe_until_s=now_s + PROBE_S) if permit.is_probe else breaker), permit


def _record(breaker: Breaker, permit: Permit, now_s: float, failure: Failure | None, *, venues: int) -> Breaker:
    """The breaker after a result. A call from before its last opening, and a late probe, change nothing."""
    breaker = _release_probe(breaker, now_s)
    if permit.opening != breaker.openings or permit.is_probe != breaker.is_open:
        return breaker
    if permit.is_probe:
        return _open(breaker, now_s) if failure else Breaker(openings=breaker.openings)
    if failure is None:
        return breaker
    recent = [old for old in breaker.failures if now_s - old.at_s <= WINDOW_S]
    failures = (*recent, failure)[-FAILURES:]
    if len(failures) == FAILURES and len({one.venue for one in failures}) >= venues:
        return _open(breaker, now_s)
    return replace(breaker, failures=failures)


def _open(breaker: Breaker, at_s: float) -> Breaker:
    return Breaker(opened_at_s=at_s, openings=breaker.openings + 1)
