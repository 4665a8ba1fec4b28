"""Envelopes that wait for a venue: time to live, requests with the same event meanwhile, ends of asks."""

import asyncio
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection, transaction

from accounts.models import User
from accounts.open_requests import OpenRequests
from agnt.models import ApiKey, Booking, Interaction, Network, SeenEnvelope, UsageEvent, Venue
from agnt.service.figures import AgntCounts
from agnt.service.intake.arrivals import Arrival, Outcome
from agnt.service.intake.intake import Intake
from agnt.service.intake.runner import EnvelopeRunner
from agnt.service.keys import MintedKey, mint_key
from clawbridge.agnt.fields import EnvelopeRefused, ErrorCode
from kit.async_db import db_call
from kit.clock import approximate_now
from lab.frames import Json
from lab.waiting import eventually
from tests.agnt import endpoint
from tests.agnt.endpoint import Hub, Venues, asleep, held
from tests.agnt.wire import envelope, error_of, result_of

pytestmark = pytest.mark.django_db(transaction=True)
hub = endpoint.hub


@pytest.fixture
def key() -> MintedKey:
    """A key of a network with two venues that are asked, and one that is not."""
    made = mint_key(User.objects.create(login="keeper"), "k", tier=ApiKey.Tier.PRO, scope=ApiKey.Scope.FULL)
    for slug in ("slow", "quick"):
        url, name = f"https://{slug}.example/a2a", f"{slug}_agent"
        Venue.objects.create(network=made.key.network, slug=slug, name=slug, url=url, agent_name=name)
    Venue.objects.create(network=made.key.network, slug="rows", name="rows")
    return made


def confirm(slug: str, **fields: Any) -> Json:
    return envelope("booking.confirm", {"venue_id": slug, "time": "19:30"}, **fields)


async def written() -> tuple[int, int, int]:
    """The number of bookings, charges and known events."""
    tables = (Booking, UsageEvent, SeenEnvelope)
    found = [await db_call(table._default_manager.count)() for table in tables]
    return found[0], found[1], found[2]


async def test_a_sleeping_venue_is_given_up_in_time_while_others_are_served(hub: Hub, key: MintedKey) -> None:
    hub.venues.answering["slow"] = asleep
    sent = confirm("slow", ttl_ms=2_000)
    began = time.monotonic()
    late = asyncio.create_task(hub.post(key, sent))
    for slug in ("quick", "rows"):
        assert result_of(await hub.post(key, confirm(slug)))["status"] == "pending"
    assert not late.done()
    answer = await late
    assert (answer.status_code, error_of(answer)) == (504, "ttl_exceeded")
    assert 2 <= time.monotonic() - began < 10
    assert answer.json()["ttl_ms"] == 0

    async def freed() -> bool:
        return await written() == (2, 2, 2)

    await eventually(freed, "the event is freed")
    del hub.venues.answering["slow"]
    assert result_of(await hub.post(key, sent | {"ttl_ms": 5000}))["status"] == "pending"
    rows = await db_call(lambda: list(Interaction.objects.filter(venue__slug="slow").values_list("status")))()
    assert rows == [("ttl_exceeded",), ("ok",)]


@asynccontextmanager
async def locked_network(key: MintedKey) -> AsyncIterator[None]:
    """No other transaction writes to the key's network."""
    held, release = threading.Event(), threading.Event()

    def hold() -> None:
        try:
            with transaction.atomic():
                Network.objects.select_for_update().get(pk=key.key.network_id)
                held.set()
                release.wait(30)
        finally:
            connection.close()

    holding = asyncio.create_task(asyncio.to_thread(hold))
    await asyncio.to_thread(held.wait, 30)
    try:
        yield
    finally:
        release.set()
        await holding


async def test_a_confirm_that_waited_too_long_for_a_lock_is_no_charge(hub: Hub, key: MintedKey) -> None:
    sent = confirm("rows", ttl_ms=300)
    async with locked_network(key):
        assert error_of(await hub.post(key, sent)) == "ttl_exceeded"
    assert result_of(await hub.post(key, sent | {"ttl_ms": 5000}))["status"] == "pending"
    assert hub.counts.requests == {
        ("booking.confirm", "pro", "ttl_exceeded"): 1,
        ("booking.confirm", "pro", "ok"): 1,
    }
    assert (hub.counts.metered_events, await written()) == (1, (1, 1, 1))


async def test_a_booking_whose_caller_leaves_while_it_is_written_is_counted(hub: Hub, key: MintedKey) -> None:
    may_answer = asyncio.Event()
    hub.venues.answering["slow"] = held(may_answer)
    leaving = asyncio.create_task(hub.post(key, confirm("slow")))

    async def asks(count: int) -> bool:
        return hub.runner.open_asks == count

    await eventually(lambda: asks(1), "the venue is asked")
    async with locked_network(key):
        may_answer.set()
        await eventually(lambda: asks(0), "the booking is being written")
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)

    async def is_counted() -> bool:
        return hub.counts.metered_events == 1

    await eventually(is_counted, "the charge is counted")
    assert hub.counts.requests == {("booking.confirm", "pro", "ok"): 1}
    assert await written() == (1, 1, 1)


async def test_the_same_event_waits_for_the_first(hub: Hub, key: MintedKey) -> None:
    open_now = asyncio.Event()
    hub.venues.answering["slow"] = held(open_now)
    sent = confirm("slow")
    first = asyncio.create_task(hub.post(key, sent))
    await hub.venues.until_asked()
    second = asyncio.create_task(hub.post(key, sent))
    impatient = await hub.post(key, sent | {"ttl_ms": 1_000})
    assert (impatient.status_code, error_of(impatient)) == (409, "in_progress")
    assert impatient.json()["payload"]["error"]["retryable"] is True
    other = await hub.post(key, sent | {"payload": {"venue_id": "slow"}})
    assert (other.status_code, error_of(other)) == (409, "idempotency_conflict")
    open_now.set()
    answers = [await first, await second]
    assert answers[0].content == answers[1].content
    assert "idempotent-replay" not in answers[0].headers
    assert answers[1].headers["idempotent-replay"] == "true"
    assert (hub.venues.asked, await written()) == (["slow"], (1, 1, 1))


async def test_a_request_that_waits_goes_on_when_the_first_fails(hub: Hub, key: MintedKey) -> None:
    fail_now = asyncio.Event()

    async def answer() -> Json:
        if len(hub.venues.asked) > 1:
            return {}
        await fail_now.wait()
        raise EnvelopeRefused(ErrorCode.VENUE_UNREACHABLE, "gone")

    hub.venues.answering["slow"] = answer
    sent = confirm("slow")
    both = [asyncio.create_task(hub.post(key, sent)) for _ in range(2)]
    await asyncio.sleep(0.2)
    fail_now.set()
    statuses = sorted([(await one).status_code for one in both])
    assert (statuses, hub.venues.asked) == ([200, 502], ["slow", "slow"])
    assert await written() == (1, 1, 1)


@pytest.mark.parametrize(
    ("failure", "code", "status"),
    [
        (EnvelopeRefused(ErrorCode.CIRCUIT_OPEN, "open", retry_after_s=212), "circuit_open", 503),
        (EnvelopeRefused(ErrorCode.VENUE_UNREACHABLE, "gone"), "venue_unreachable", 502),
        (EnvelopeRefused(ErrorCode.SLOT_UNAVAILABLE, "taken"), "slot_unavailable", 409),
        (RuntimeError("secret text"), "internal_error", 500),
    ],
)
async def test_a_failed_ask_writes_nothing_and_frees_its_event(
    hub: Hub, key: MintedKey, failure: Exception, code: str, status: int
) -> None:
    async def answer() -> Json:
        raise failure

    hub.venues.answering["slow"] = answer
    sent = confirm("slow")
    answer_ = await hub.post(key, sent)
    assert (answer_.status_code, error_of(answer_)) == (status, code)
    assert "secret" not in answer_.text
    assert answer_.headers.get("retry-after") == ("212" if code == "circuit_open" else None)
    assert await written() == (0, 0, 0)
    del hub.venues.answering["slow"]
    assert result_of(await hub.post(key, sent))["status"] == "pending"


async def test_an_event_whose_process_died_runs_again(hub: Hub, key: MintedKey) -> None:
    hub.venues.answering["slow"] = asleep
    sent = confirm("slow")
    dead = Hub()
    dead.venues.answering["slow"] = asleep
    abandoned = asyncio.create_task(dead.post(key, sent))

    async def runs() -> bool:
        return await written() == (0, 0, 1)

    await eventually(runs, "it runs")
    del hub.venues.answering["slow"]
    blocked = await hub.post(key, sent | {"ttl_ms": 1_000})
    assert error_of(blocked) == "in_progress"
    await db_call(lambda: SeenEnvelope.objects.update(expires_at=approximate_now() - timedelta(seconds=1)))()
    assert result_of(await hub.post(key, sent))["status"] == "pending"
    # The other process was alive after all: its end changes nothing.
    abandoned.cancel()
    await asyncio.gather(abandoned, return_exceptions=True)
    await dead.close()
    assert await written() == (1, 1, 1)
    assert (await hub.post(key, sent)).headers["idempotent-replay"] == "true"


async def test_an_agent_is_asked_by_its_name(hub: Hub, key: MintedKey) -> None:
    sent = envelope("booking.search", {"query": "sea"}, to="quick_agent")
    answer = await hub.post(key, sent)
    assert result_of(answer)["payload"] == {"query": "sea"}
    assert answer.json()["from"] == "quick_agent"
    assert (await hub.post(key, sent)).headers["idempotent-replay"] == "true"
    assert hub.venues.asked == ["quick"]


async def test_a_caller_that_leaves_while_it_is_decided_leaves_no_event_behind(hub: Hub, key: MintedKey) -> None:
    sent = confirm("slow", ttl_ms=15_000)
    async with locked_network(key):
        leaving = asyncio.create_task(hub.post(key, sent))
        await asyncio.sleep(0.2)
        leaving.cancel()
        await asyncio.gather(leaving, return_exceptions=True)
    assert result_of(await hub.post(key, sent | {"ttl_ms": 3000}))["status"] == "pending"
    assert await written() == (1, 1, 1)


class CountedIntake(Intake):
    """Counts its looks."""

    taken = 0

    def decide(self, arrival: Arrival) -> Outcome:
        self.taken += 1
        return super().decide(arrival)


async def test_a_request_that_waits_for_another_seldom_looks(hub: Hub, key: MintedKey) -> None:
    hub.venues.answering["slow"] = asleep
    sent = confirm("slow")
    first = asyncio.create_task(hub.post(key, sent))
    await hub.venues.until_asked()
    venues = Venues()
    counted = CountedIntake()
    other = Hub(EnvelopeRunner(counted, venues, AgntCounts(), OpenRequests()))
    assert error_of(await other.post(key, sent | {"ttl_ms": 3000})) == "in_progress"
    assert counted.taken <= 20
    await other.close()
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
