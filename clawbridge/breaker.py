"""A circuit breaker as a value: after several failures it refuses calls for a while, then one call probes.

No I/O, and the clock is given: all times are Unix seconds. The caller stores the state; each change happens to a
state that was read under its lock. Needs Python alone.
"""

import math
from dataclasses import dataclass, replace


@dataclass(frozen=True, slots=True, kw_only=True)
class BreakerRules:
    """When a breaker opens, and for how long.

    Args:
        failures: so many within `window_s` open it, if they are of at least `sources` sources.
        window_s: how long a failure counts; a failure of exactly that age still does.
        cooldown_s: for so long it stays open.
        most_cooldowns: each opening after a failed probe lasts twice as long as the one before, at most so many
            times `cooldown_s`.
        probe_s: a probe without a result for so long is a failure.
        sources: see `failures`.
        clears_on_success: a success of a closed breaker clears its failures, so only failures in a row open it.
    """

    failures: int
    window_s: float
    cooldown_s: float
    probe_s: float
    most_cooldowns: int = 1
    sources: int = 1
    clears_on_success: bool = False

    def open_for_s(self, in_a_row: int) -> float:
        """The seconds for which the breaker stays open. `in_a_row`: see `BreakerMemory`."""
        doublings = min(max(in_a_row - 1, 0), self.most_cooldowns.bit_length())
        return self.cooldown_s * min(1 << doublings, self.most_cooldowns)


@dataclass(frozen=True, slots=True)
class BreakerFailure:
    """A failed call. `source`: the name of the called side that failed."""

    at_s: float
    source: str


@dataclass(frozen=True, slots=True)
class Permit:
    """A call that a breaker let through; give it back with the result. `opening`: `openings` at that time."""

    opening: int
    is_probe: bool


@dataclass(frozen=True, slots=True)
class BreakerMemory:
    """The state of one breaker. `opened_at_s` None: closed. `probe_until_s`: a probe is out until then.

    `failures`: the last ones, at most as many as open it; only a closed breaker has some. `openings`: how often it
    opened; a result counts only for the opening after which its call was let through. `in_a_row`: how often it
    opened since it was closed.
    """

    failures: tuple[BreakerFailure, ...] = ()
    opened_at_s: float | None = None
    probe_until_s: float | None = None
    openings: int = 0
    in_a_row: int = 0

    @property
    def is_open(self) -> bool:
        """True if the breaker refuses calls, except a probe."""
        return self.opened_at_s is not None

    def retry_at_s(self, rules: BreakerRules) -> float:
        """The time from which the breaker lets the next call through; 0: at any time."""
        if self.opened_at_s is None:
            return 0.0
        until_s = self.opened_at_s + rules.open_for_s(self.in_a_row)
        return until_s if self.probe_until_s is None else self.probe_until_s

    def wait_s(self, now_s: float, rules: BreakerRules) -> int:
        """The seconds for which the breaker refuses calls, at least 1; 0: it lets a call through now."""
        return max(0, math.ceil(self.retry_at_s(rules) - now_s)) if self.is_open else 0

    def release_probe(self, now_s: float) -> "BreakerMemory":
        """The breaker, opened again if a probe is overdue: the probe failed when its result was due."""
        if self.probe_until_s is None or now_s < self.probe_until_s:
            return self
        return self.open(self.probe_until_s)

    def let_through(self, now_s: float, rules: BreakerRules) -> tuple["BreakerMemory", Permit]:
        """Let a call through after `wait_s` was 0. If the breaker is open, the call is its probe."""
        permit = Permit(self.openings, is_probe=self.is_open)
        return (replace(self, probe_until_s=now_s + rules.probe_s) if permit.is_probe else self), permit

    def expects(self, permit: Permit) -> bool:
        """True if the result of a call counts: calls from before the last opening do not count, nor do late
        probes.
        """
        return permit.opening == self.openings and permit.is_probe == self.is_open

    def record(self, permit: Permit, now_s: float, rules: BreakerRules, failed: str | None) -> "BreakerMemory":
        """The breaker after the result of a call. `failed`: the source of a failure; None: the call succeeded."""
        breaker = self.release_probe(now_s)
        if not breaker.expects(permit):
            return breaker
        if permit.is_probe:
            return breaker.open(now_s) if failed is not None else BreakerMemory(openings=breaker.openings)
        if failed is None:
            return replace(breaker, failures=()) if rules.clears_on_success else breaker
        recent = [old for old in breaker.failures if now_s - old.at_s <= rules.window_s]
        failures = (*recent, BreakerFailure(now_s, failed))[-rules.failures :]
        if len(failures) == rules.failures and len({one.source for one in failures}) >= rules.sources:
            return breaker.open(now_s)
        return replace(breaker, failures=failures)

    def give_back(self, permit: Permit) -> "BreakerMemory":
        """The breaker after a call without a usable result: if the call was the probe, the next call probes."""
        return replace(self, probe_until_s=None) if permit.is_probe and self.expects(permit) else self

    def open(self, at_s: float) -> "BreakerMemory":
        """Open the breaker, or open it again."""
        return BreakerMemory(opened_at_s=at_s, openings=self.openings + 1, in_a_row=self.in_a_row + 1)
