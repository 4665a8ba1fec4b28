"""The stored breakers: what they read and write, and that all threads and processes share one state."""

from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agnt.models import Breaker, Network, Venue
from agnt.service.asks.breakers import StoredBreakers, VenueKey
from agnt.service.figures import AgntCounts
from agnt.service.networks import get_or_create_network
from clawbridge.agnt.breakers import Blame, CircuitOpen, PairPermit
from kit.clock import db_now
from tests.native.rows import person
from tests.racing import at_once

AT_ONCE = 10


class Process(StoredBreakers):
    """The breakers as one process has them, with its counts."""

    def __init__(self) -> None:
        self.counts = AgntCounts()
        super().__init__(self.counts)

    @property
    def opened(self) -> tuple[int, int]:
        """The number of openings of a network's breaker, and of a venue's, by this process."""
        return self.counts.breakers_opened, self.counts.venue_breakers_opened


@pytest.fixture
def breakers() -> Process:
    return Process()


@pytest.fixture
def network(db: None) -> Network:
    return get_or_create_network(person("owner").user)


def make_venue(network: Network, slug: str) -> VenueKey:
    return VenueKey(network.pk, Venue.objects.create(network=network, slug=slug, name=slug).pk)


@pytest.fixture
def key(network: Network) -> VenueKey:
    """A venue of that network."""
    return make_venue(network, "a")


def fail(breakers: Process, key: VenueKey, times: int = 1) -> None:
    for _ in range(times):
        breakers.leave(key, breakers.enter(key), Blame.NETWORK)


def refused(breakers: Process, key: VenueKey) -> CircuitOpen:
    with pytest.raises(CircuitOpen) as refusal:
        breakers.enter(key)
    return refusal.value


def advance(seconds: float) -> None:
    """Have every breaker be that much older than it is."""
    for row in Breaker.objects.all():
        row.failures = [(at_s - seconds, source) for at_s, source in row.failures]
        row.opened_at_s = None if row.opened_at_s is None else row.opened_at_s - seconds
        row.probe_until_s = None if row.probe_until_s is None else row.probe_until_s - seconds
        row.save()


def statements(work: Callable[[], Any]) -> list[str]:
    """The first words of the statements that it runs."""
    with CaptureQueriesContext(connection) as run:
        work()
    return [one["sql"].split()[0] for one in run.captured_queries]


def test_a_call_that_succeeds_reads_once_and_writes_nothing(breakers: Process, key: VenueKey) -> None:
    assert statements(lambda: breakers.leave(key, breakers.enter(key), Blame.NONE)) == ["SELECT"]
    assert not Breaker.objects.exists()
    fail(breakers, key)
    before = list(Breaker.objects.values())
    assert statements(lambda: breakers.leave(key, breakers.enter(key), Blame.NONE)) == ["SELECT"]
    assert list(Breaker.objects.values()) == before


def test_a_refusal_while_it_is_open_takes_no_lock(breakers: Process, key: VenueKey) -> None:
    fail(breakers, key, 5)
    assert statements(lambda: refused(breakers, key)) == ["SELECT"]


def test_another_process_sees_it_open_and_counts_on(breakers: Process, network: Network) -> None:
    key, others = make_venue(network, "a"), Process()
    fail(breakers, key, 3)
    fail(others, key, 2)
    for one in (breakers, others):
        refusal = refused(one, key)
        assert (refusal.is_network, 299 <= refusal.retry_after_s <= 300) == (False, True)
    assert (breakers.opened, others.opened) == ((0, 0), (0, 1))


def test_a_probe_closes_it_for_all(breakers: Process, network: Network) -> None:
    key, others = make_venue(network, "a"), Process()
    fail(breakers, key, 5)
    advance(301)
    probe = breakers.enter(key)
    assert probe.is_probe
    assert 1 <= refused(others, key).retry_after_s <= 20
    breakers.leave(key, probe, Blame.NONE)
    row = Breaker.objects.get(venue=key.venue_id)
    assert (row.opened_at_s, row.probe_until_s, row.failures, row.openings) == (None, None, [], 1)
    assert not others.enter(key).is_probe


def test_venues_of_a_network_share_its_breaker_and_no_other(breakers: Process, network: Network) -> None:
    one, two, three = (make_venue(network, slug) for slug in ("a", "b", "c"))
    other = make_venue(get_or_create_network(person("other").user), "a")
    fail(breakers, one, 4)
    assert not breakers.enter(two).is_probe
    fail(breakers, two)
    assert refused(breakers, three).is_network
    assert not breakers.enter(other).is_probe
    assert breakers.opened == (1, 0)
    assert Breaker.objects.get(network=network, venue=None).failures == []
    assert not Breaker.objects.filter(venue=three.venue_id).exists()


@pytest.mark.django_db(transaction=True)
def test_a_venue_may_be_deleted_while_it_is_asked(breakers: Process, key: VenueKey) -> None:
    permit = breakers.enter(key)
    Venue.objects.all().delete()
    breakers.leave(key, permit, Blame.NETWORK)
    assert not Breaker.objects.exists()
    assert breakers.opened == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_failures_at_one_moment_all_count(key: VenueKey) -> None:
    breakers = Process()
    permits = [breakers.enter(key) for _ in range(AT_ONCE)]
    at_once(*[lambda: breakers.leave(key, permits.pop(), Blame.NETWORK)] * AT_ONCE)
    rows = dict(Breaker.objects.values_list("venue", "openings"))
    assert rows == {None: 0, key.venue_id: 1}
    assert breakers.opened == (0, 1)
    assert len(Breaker.objects.get(venue=None).failures) == 5


@pytest.mark.django_db(transaction=True)
def test_of_ten_calls_at_second_300_one_probes(network: Network, key: VenueKey) -> None:
    opened_at_s = db_now().timestamp() - 300
    Breaker.objects.create(network=network, venue_id=key.venue_id, opened_at_s=opened_at_s, openings=1)

    def call() -> PairPermit | None:
        try:
            return Process().enter(key)
        except CircuitOpen:
            return None

    found = [one for one in at_once(*[call] * AT_ONCE) if one is not None]
    assert [one.venue.is_probe for one in found] == [True]
