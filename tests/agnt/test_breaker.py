"""Circuit breakers: each edge of both levels, with a clock that the test sets."""

from dataclasses import dataclass, field

import msgspec
import pytest

from clawbridge.agnt.breakers import (
    FAIR_S,
    LAG_S,
    Blame,
    CircuitOpen,
    Pair,
    PairPermit,
    blame_late,
    blame_status,
    enter,
    leave,
)
from clawbridge.breaker import BreakerMemory


@dataclass
class Calls:
    """Calls to venues of one network; the states are kept as a caller of the breakers keeps them."""

    network: BreakerMemory = field(default_factory=BreakerMemory)
    venues: dict[str, BreakerMemory] = field(default_factory=dict)

    def start(self, now_s: float, venue: str = "a") -> PairPermit:
        try:
            pair, permit = enter(self._pair(venue), now_s)
        except CircuitOpen as refused:
            self._store(venue, refused.pair)
            raise
        self._store(venue, pair)
        return permit

    def end(self, permit: PairPermit, now_s: float, venue: str = "a", *, blame: Blame = Blame.NETWORK) -> None:
        self._store(venue, leave(self._pair(venue), permit, now_s, venue=venue, blame=blame))

    def give_back(self, permit: PairPermit, venue: str = "a") -> None:
        """A call that tells nothing of the venue."""
        self.end(permit, 0, venue, blame=Blame.UNKNOWN)

    def fail(self, *times_s: float, venue: str = "a") -> None:
        for now_s in times_s:
            self.end(self.start(now_s, venue), now_s, venue)

    def succeed(self, now_s: float, venue: str = "a") -> None:
        self.end(self.start(now_s, venue), now_s, venue, blame=Blame.NONE)

    def refused(self, now_s: float, venue: str = "a") -> CircuitOpen:
        with pytest.raises(CircuitOpen) as refused:
            self.start(now_s, venue)
        return refused.value

    def state(self, now_s: float, venue: str = "a") -> str:
        """The state that the next call would meet, without a call."""
        try:
            _, permit = enter(self._pair(venue), now_s)
        except CircuitOpen as refused:
            return "network open" if refused.is_network else "open"
        return "probe" if permit.venue.is_probe or permit.network.is_probe else "closed"

    def _pair(self, venue: str) -> Pair:
        return Pair(self.venues.get(venue, BreakerMemory()), self.network)

    def _store(self, venue: str, pair: Pair) -> None:
        self.venues[venue], self.network = pair.venue, pair.network


def opened() -> Calls:
    """Calls of which the fifth failure came at second 0."""
    calls = Calls()
    calls.fail(-4, -3, -2, -1, 0)
    return calls


def open_network() -> Calls:
    """The breaker of the network opened at second 0, those of its venues are closed."""
    calls = Calls()
    for number, venue in enumerate("abcde"):
        calls.fail(number - 4, venue=venue)
    return calls


def test_the_fifth_failure_opens_it() -> None:
    calls = Calls()
    calls.fail(0, 1, 2, 3)
    assert calls.state(4) == "closed"
    calls.fail(4)
    refused = calls.refused(4)
    assert (refused.retry_after_s, refused.is_network) == (300, False)
    assert calls.refused(303.5).retry_after_s == 1
    assert calls.venues["a"].openings == 1


def test_failures_age_out() -> None:
    calls = Calls()
    calls.fail(0, 1, 2, 3, 601)
    assert calls.state(601) == "closed"
    calls.fail(601)  # with those of 1, 2 and 3, of which that of 1 is 600 s ago: five
    assert calls.state(601) == "open"


def test_a_success_does_not_clear_failures() -> None:
    calls = Calls()
    calls.fail(0, 1, 2, 3)
    calls.succeed(4)
    assert calls.state(4) == "closed"
    calls.fail(5)
    assert calls.state(5) == "open"


def test_an_open_breaker_refuses_for_300_seconds() -> None:
    calls = opened()
    assert [calls.state(now_s) for now_s in (0, 150, 299.9)] == ["open"] * 3
    assert calls.start(300).venue.is_probe
    assert [calls.refused(300).retry_after_s for _ in range(9)] == [20] * 9


def test_a_probe_that_succeeds_closes_it_and_clears_failures() -> None:
    calls = opened()
    calls.succeed(300)
    assert calls.venues["a"] == BreakerMemory(openings=1)
    calls.fail(301, 302, 303, 304)
    assert calls.state(304) == "closed"
    calls.fail(305)
    assert calls.state(305) == "open"


def test_a_probe_that_fails_opens_it_for_another_300_seconds() -> None:
    calls = opened()
    probe = calls.start(300)
    calls.end(probe, 310)
    assert calls.venues["a"].openings == 2
    assert [calls.state(now_s) for now_s in (310, 609.9, 610)] == ["open", "open", "probe"]


def test_a_late_result_of_a_call_before_the_opening_is_ignored() -> None:
    calls = Calls()
    late = [calls.start(-9) for _ in range(7)]
    calls.fail(-4, -3, -2, -1, 0)
    calls.end(late[0], 10)
    calls.end(late[1], 10, blame=Blame.NONE)
    assert [calls.state(now_s) for now_s in (10, 299.9, 300)] == ["open", "open", "probe"]
    probe = calls.start(300)
    calls.end(late[2], 301)
    calls.end(late[3], 301, blame=Blame.NONE)
    assert calls.state(301) == "open"
    calls.end(probe, 302, blame=Blame.NONE)
    for permit in late[4:]:
        calls.end(permit, 303)
    assert calls.venues["a"].failures == ()
    calls.fail(304, 305)
    assert calls.state(305) == "closed"


def test_a_probe_that_never_returns_is_a_failure_after_20_seconds() -> None:
    calls = opened()
    lost = calls.start(300)
    assert calls.refused(319.9).retry_after_s == 1
    assert calls.refused(320).retry_after_s == 300
    assert calls.venues["a"].openings == 2
    calls.end(lost, 330, blame=Blame.NONE)
    assert [calls.state(now_s) for now_s in (330, 619.9, 620)] == ["open", "open", "probe"]


def test_a_probe_that_tells_nothing_leaves_the_probe_to_the_next_call() -> None:
    calls = opened()
    probe = calls.start(300)
    assert calls.state(310) == "open"
    calls.give_back(probe)
    assert (calls.state(310), calls.venues["a"].openings) == ("probe", 1)
    calls.end(calls.start(310), 311)
    calls.give_back(probe)
    assert [calls.state(now_s) for now_s in (312, 611)] == ["open", "probe"]


def test_a_call_past_closed_breakers_that_tells_nothing_changes_nothing() -> None:
    calls = Calls()
    calls.fail(0)
    before = calls.venues["a"], calls.network
    calls.give_back(calls.start(1))
    assert (calls.venues["a"], calls.network) == before


def test_long_after_a_lost_probe_the_next_call_is_a_probe() -> None:
    calls = opened()
    calls.start(300)
    assert calls.start(10_000).venue.is_probe
    assert calls.venues["a"].openings == 2


def test_a_result_that_is_reported_twice_counts_once_after_a_probe() -> None:
    calls = opened()
    probe = calls.start(300)
    calls.end(probe, 301, blame=Blame.NONE)
    calls.end(probe, 301)
    assert calls.venues["a"] == BreakerMemory(openings=1)


def test_the_failures_of_one_venue_do_not_open_the_network() -> None:
    calls = opened()
    for second in range(300, 3000, 320):
        calls.fail(second)
    assert calls.network.openings == 0
    assert len(calls.network.failures) <= 5
    assert calls.state(3000, "b") == "closed"


def test_the_failures_of_two_venues_open_the_network() -> None:
    for count in (4, 5):
        calls = Calls()
        calls.fail(*range(count))
        assert calls.state(count, "b") == "closed"
        calls.fail(count, venue="b")
        assert calls.state(count, "c") == "network open"
        assert (calls.network.openings, calls.venues["b"].openings) == (1, 0)


def test_a_refusal_counts_nowhere() -> None:
    for calls, is_network in ((open_network(), True), (opened(), False)):
        before = calls.venues["a"], calls.network
        for _ in range(10):
            assert calls.refused(1).is_network is is_network
        assert (calls.venues["a"], calls.network) == before


def test_the_breaker_of_the_venue_is_asked_first() -> None:
    calls = open_network()
    calls.venues["a"] = BreakerMemory(opened_at_s=100, openings=1)
    refused = calls.refused(200, "a")
    assert (refused.is_network, refused.retry_after_s) == (False, 200)


def test_a_refusal_by_the_network_takes_no_probe_of_the_venue() -> None:
    calls = opened()
    for number, venue in enumerate("bcde"):
        calls.fail(100 + number, venue=venue)  # opens the network: five failures of two venues and more
        if calls.network.is_open:
            break
    assert calls.refused(301).is_network
    assert calls.venues["a"].probe_until_s is None
    assert calls.start(400).venue.is_probe


def test_a_refusal_by_a_venue_takes_no_probe_of_the_network() -> None:
    calls = open_network()
    calls.venues["a"] = BreakerMemory(opened_at_s=200, openings=1)
    assert not calls.refused(300, "a").is_network
    assert calls.network.probe_until_s is None
    assert calls.start(300, "b").network.is_probe


def test_of_ten_venues_one_probes_the_network() -> None:
    calls = open_network()
    probe = calls.start(300, "v0")
    assert probe.network.is_probe
    assert not probe.venue.is_probe
    assert all(calls.refused(300, f"v{number}").is_network for number in range(1, 10))
    calls.end(probe, 301, "v0", blame=Blame.NONE)
    assert calls.state(301, "v1") == "closed"


def test_a_failed_probe_of_the_network_opens_it_again() -> None:
    calls = open_network()
    calls.fail(300, venue="x")
    assert (calls.network.openings, calls.state(599, "y"), calls.state(600, "y")) == (2, "network open", "probe")
    assert len(calls.venues["x"].failures) == 1


def test_which_answers_are_failures() -> None:
    statuses = (200, 404, 429, 499, 500, 503, 508)
    assert [one for one in statuses if blame_status(one).is_failure] == [500, 503]


def test_a_short_time_and_a_slow_hub_are_no_failures() -> None:
    assert blame_late(FAIR_S) is blame_late(FAIR_S, LAG_S) is Blame.VENUE
    assert blame_late(FAIR_S - 0.001) is blame_late(FAIR_S, LAG_S + 0.001) is Blame.UNKNOWN


def test_answers_that_are_of_no_use_stop_their_venue_alone() -> None:
    calls = Calls()
    for number in range(10):
        permit = calls.start(number, f"v{number % 3}")
        calls.end(permit, number, f"v{number % 3}", blame=Blame.VENUE)
    assert calls.network == BreakerMemory()
    assert len(calls.venues["v0"].failures) == 4


def test_an_answer_of_no_use_shows_that_the_network_is_well() -> None:
    calls = Calls()
    calls.fail(0, 1, 2, venue="a")
    calls.fail(3, 4, venue="b")
    probe = calls.start(305, "c")
    calls.end(probe, 305, "c", blame=Blame.VENUE)
    assert not calls.network.is_open
    assert len(calls.venues["c"].failures) == 1


def test_a_breaker_remembers_at_most_five_failures() -> None:
    calls = Calls()
    permits = [calls.start(0, f"v{number}") for number in range(1000)]
    for permit in permits:
        calls.end(permit, 1, "one")
    assert len(calls.network.failures) == 5
    assert calls.venues["one"].failures == ()


def test_a_state_is_stored_and_read_again() -> None:
    calls = Calls()
    calls.fail(0, 1)
    for breaker in (calls.venues["a"], opened().venues["a"], BreakerMemory()):
        stored = msgspec.json.encode(breaker)
        assert msgspec.json.decode(stored, type=BreakerMemory) == breaker
