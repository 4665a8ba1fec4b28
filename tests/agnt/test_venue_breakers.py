"""Breakers of venues that have an agent, and of their network."""

import asyncio

from lab.callers import bearer
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.agnt import venues
from tests.agnt.lookalike import network
from tests.agnt.venues import CONFIRMED, NOTHING_COUNTED, Keeper, data, silent, state
from tests.agnt.wire import Program, error_of, mint, network_id, program, result_of
from tests.channel.agents import sql

keeper, asker = venues.keeper, venues.asker
TRIED = "SELECT id FROM agnt_cancellation WHERE network_id = ? AND attempts > 0 AND last_error <> ''"


async def test_callers_with_little_time_open_no_breaker_and_take_no_probe(keeper: Keeper, asker: Program) -> None:
    async with keeper.venue("v", silent):
        for _ in range(6):
            assert error_of(await asker.send("booking.confirm", {"venue_id": "v"}, ttl_ms=200)) == "ttl_exceeded"
        assert keeper.breaker("v") == NOTHING_COUNTED

        async def has_opened(times: int) -> bool:
            late = await asker.send("booking.confirm", {"venue_id": "v"}, ttl_ms=7000)
            assert error_of(late) in ("ttl_exceeded", "circuit_open")
            return bool(keeper.breaker("v")["openings"] == times)

        await asyncio.gather(*(has_opened(1) for _ in range(5)))
        await eventually(lambda: has_opened(1), "time-outs count, unless the hub was slow itself", within_s=60)
        keeper.age_breakers(301)
        hasty = await asker.send("booking.confirm", {"venue_id": "v"}, ttl_ms=3000)
        assert error_of(hasty) == "circuit_open"
        await eventually(lambda: has_opened(2), "the probe counts, unless the hub was slow itself", within_s=60)


async def test_a_venue_that_knows_no_cancellations_is_still_asked(keeper: Keeper, asker: Program) -> None:
    async with keeper.venue("v") as agent:
        agent.cancels = data(CONFIRMED)
        for _ in range(5):
            booking = result_of(await asker.confirm("v"))["booking_id"]
            result_of(await asker.send("booking.cancel", {"booking_id": booking}))

        async def have_failed() -> bool:
            failed = sql(keeper.hub, TRIED, network_id(keeper.hub, keeper.login))
            return len(failed) == 5

        await eventually(have_failed, "each cancellation was tried", within_s=20)
        assert keeper.breaker("v") == NOTHING_COUNTED


async def test_a_probe_whose_caller_leaves_is_left_to_the_next_call(keeper: Keeper, asker: Program) -> None:
    other = Program(asker.client, mint(keeper.hub, keeper.login))
    async with keeper.venue("v", *[state("failed")] * 5, silent, data(CONFIRMED)) as agent:
        for _ in range(5):
            assert error_of(await asker.confirm("v")) == "venue_unreachable"
        keeper.age_breakers(301)
        probe = asyncio.create_task(asker.send("booking.confirm", {"venue_id": "v"}, ttl_ms=15_000))

        async def is_asked() -> bool:
            return len(agent.prompts) == 6

        await eventually(is_asked, "the venue is probed")
        assert error_of(await other.confirm("v")) == "circuit_open"
        keeper.revoke_first_key()
        assert error_of(await probe) == "unauthorized"

        async def confirms() -> bool:
            return (await other.confirm("v")).status_code == 200

        await eventually(confirms, "the next call probes", within_s=10)
    assert keeper.breaker("v") == {"failures": 0, "is_open": False, "openings": 1}


async def test_two_venues_out_of_reach_stop_the_network(private_hub: HubProcess) -> None:
    keeper = Keeper(private_hub)
    asker = program(private_hub, keeper.key)
    async with network(lambda _: b"") as far, keeper.venue("c") as fine, asker.client:
        for slug in ("a", "b"):
            keeper.add_url(slug, far.endpoint.url)
        for venue in ("a", "b", "a", "b", "a"):
            assert error_of(await asker.confirm(venue)) == "venue_unreachable"
        assert error_of(await asker.confirm("c")) == "circuit_open"
        assert fine.prompts == []
        assert result_of(await asker.send("venue.list"))["count"] == 3  # the hub itself is asked as before
        shown = await asker.client.get("/a2a/v1/status", headers=bearer(keeper.key.token))
        assert (shown.status_code, shown.json()["breaker"]) == (503, "open")
        keeper.age_breakers(301)
        result_of(await asker.confirm("c"))
        assert not keeper.breaker()["is_open"]


async def test_venues_that_fail_or_are_away_stop_no_other(keeper: Keeper, asker: Program) -> None:
    async with keeper.venue("fine"):
        async with keeper.venue("a", state("failed")), keeper.venue("b", data({"status": "maybe"})):
            for venue in "aabb":
                assert error_of(await asker.confirm(venue)) == "venue_unreachable"
        for venue in "aabb":  # their agents are offline
            assert error_of(await asker.confirm(venue)) == "venue_unreachable"
        assert result_of(await asker.confirm("fine"))["status"] == "pending"
    assert keeper.breaker() == NOTHING_COUNTED
