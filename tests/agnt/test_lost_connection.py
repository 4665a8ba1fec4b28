"""PostgreSQL ends all connections, as in a restart: envelopes after that, and one that waits, are answered."""

import asyncio
import json

import pytest

from lab.hub_process import StartHub
from lab.hub_storage import MakeStorage
from tests.agnt.lookalike import respond
from tests.agnt.venues import CONFIRMED, Keeper
from tests.agnt.wire import count, program, result_of
from tests.channel.agents import sql
from tests.remote.servers import Asked, as_http, raw_server

END_CONNECTIONS = (
    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.mark.slow
@pytest.mark.distributed
async def test_envelopes_are_answered_after_their_connection_is_lost(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("grown"), REMOTE_ALLOW_PRIVATE=1)
    keeper = Keeper(hub)
    asker = program(hub, keeper.key)
    may_answer, is_asked = asyncio.Event(), asyncio.Event()

    async def hold(asked: Asked, writer: asyncio.StreamWriter) -> None:
        is_asked.set()
        await may_answer.wait()
        writer.write(as_http(json.dumps(respond(asked.json, CONFIRMED)).encode()))

    async with raw_server(hold) as far, asker.client:
        keeper.add_url("holds", f"{far.url}/a2a/v1")
        booking = asyncio.create_task(asker.send("booking.confirm", {"venue_id": "holds"}, ttl_ms=15_000))
        await is_asked.wait()
        sql(hub, END_CONNECTIONS)
        may_answer.set()
        assert result_of(await booking)["status"] == "pending"
        sql(hub, END_CONNECTIONS)
        assert result_of(await asker.send())["active_venues"] == 1
    assert count(hub, keeper.login, "agnt_usageevent") == 1
