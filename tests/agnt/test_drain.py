"""SIGTERM while a venue is asked: its booking is finished, and nothing new begins."""

import asyncio

from lab.callers import web
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.agnt.venues import Keeper, held
from tests.agnt.wire import count, error_of, program, result_of


async def test_an_envelope_that_waits_for_a_venue_is_answered(private_hub: HubProcess) -> None:
    hub = private_hub
    keeper, release = Keeper(hub), asyncio.Event()

    asking = program(hub, keeper.key)
    async with keeper.venue("held", held(release)) as agent:
        booking = asyncio.create_task(asking.send("booking.confirm", {"venue_id": "held"}, ttl_ms=15_000))
        await agent.heard("prompt")
        hub.terminate()

        async with web(hub.url) as client:

            async def drains() -> bool:
                return (await client.get("/readyz")).status_code == 503

            await eventually(drains, "the hub drains")
        late = await asking.confirm("held")
        assert (late.status_code, error_of(late)) == (502, "venue_unreachable")
        assert not booking.done()
        release.set()
        assert result_of(await booking)["status"] == "pending"
        assert await hub.exit_code() == 0
        await asyncio.to_thread(hub.serve, 0)
    await asking.client.aclose()
    assert [count(hub, keeper.login, table) for table in ("agnt_booking", "agnt_usageevent")] == [1, 1]
    assert keeper.breaker("held")["failures"] == 0
