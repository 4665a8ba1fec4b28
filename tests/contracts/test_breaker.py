"""The circuit breaker of kit with rules that agents/links/remote uses: failures in a row, longer each time.

tests/agnt/test_breaker.py tests the rules of AGNT, edge by edge.
"""

import math

from clawbridge.breaker import BreakerMemory, BreakerRules, Permit

RULES = BreakerRules(
    failures=3,
    window_s=math.inf,
    cooldown_s=10,
    most_cooldowns=20,
    probe_s=60,
    clears_on_success=True,
)


def fail(breaker: BreakerMemory, *times_s: float) -> BreakerMemory:
    """Calls that fail at once."""
    for now_s in times_s:
        assert not breaker.wait_s(now_s, RULES)
        breaker, permit = breaker.let_through(now_s, RULES)
        breaker = breaker.record(permit, now_s, RULES, "far")
    return breaker


def test_only_failures_in_a_row_open_it() -> None:
    breaker = fail(BreakerMemory(), 0, 1)
    breaker = breaker.record(Permit(0, is_probe=False), 2, RULES, None)
    assert breaker == BreakerMemory()
    breaker = fail(breaker, 3, 100_000)
    assert not breaker.is_open
    assert fail(breaker, 900_000).is_open


def test_each_opening_in_a_row_lasts_twice_as_long_up_to_twenty_times() -> None:
    breaker, lasted = fail(BreakerMemory(), 0, 0, 0), []
    for _ in range(40):
        opened_at_s = breaker.opened_at_s or 0.0
        retry_at_s = breaker.retry_at_s(RULES)
        lasted.append(retry_at_s - opened_at_s)
        assert breaker.wait_s(retry_at_s - 0.5, RULES) == 1
        breaker = fail(breaker, retry_at_s)
    assert lasted[:7] == [10, 20, 40, 80, 160, 200, 200]
    assert lasted[-1] == 200
    assert breaker.openings == 41


def test_a_probe_that_succeeds_makes_the_next_opening_short_again() -> None:
    breaker = fail(fail(BreakerMemory(), 0, 0, 0), 10)
    assert breaker.retry_at_s(RULES) == 30
    breaker, probe = breaker.let_through(30, RULES)
    assert breaker.wait_s(31, RULES) == 59
    breaker = breaker.record(probe, 32, RULES, None)
    assert (breaker.is_open, breaker.in_a_row, breaker.openings) == (False, 0, 2)
    assert fail(breaker, 40, 41, 42).retry_at_s(RULES) == 52


def test_what_was_sent_before_it_opened_changes_nothing() -> None:
    before = Permit(0, is_probe=False)
    breaker = fail(BreakerMemory(), 0, 0, 0)
    for failed in (None, "far"):
        assert not breaker.expects(before)
        assert breaker.record(before, 5, RULES, failed) == breaker
