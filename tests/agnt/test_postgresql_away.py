"""PostgreSQL gives no answer for a while, as in a migration, or ends all connections, as in a restart."""

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest

from lab.callers import bearer, web
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from lab.waiting import eventually
from tests.agnt.lookalike import respond
from tests.agnt.venues import CONFIRMED, Keeper, data, state
from tests.agnt.wire import count, error_of, program, result_of
from tests.channel.agents import sql
from tests.remote.servers import Asked, as_http, raw_server

pytestmark = [pytest.mark.slow, pytest.mark.distributed]
STATUS = "/a2a/v1/status"
# It waits for the end of each connection: one that is ending may run a statement, and lose its commit.
END_CONNECTIONS = (
    "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@pytest.fixture(scope="module")
def grown_hub(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """A process on PostgreSQL."""
    with HubProcess.start(make_storage("grown"), REMOTE_ALLOW_PRIVATE=1) as running:
        yield running


@contextmanager
def locked(hub: HubProcess, statement: str) -> Iterator[None]:
    with psycopg.connect(hub.home.env["DATABASE_URL"]) as connection:
        connection.execute(statement)
        yield
        connection.rollback()


async def test_a_probe_that_cannot_lock_its_breaker_is_left_to_the_next_call(grown_hub: HubProcess) -> None:
    keeper = Keeper(grown_hub)
    asker = program(grown_hub, keeper.key)
    async with asker.client, keeper.venue("v", *[state("failed")] * 5, data(CONFIRMED)) as agent:
        for _ in range(5):
            assert error_of(await asker.confirm("v")) == "venue_unreachable"
        keeper.age_breakers(301)
        with locked(grown_hub, "SELECT 1 FROM agnt_breaker FOR UPDATE"):
            late = await asker.send("booking.confirm", {"venue_id": "v"}, ttl_ms=5_500)
            assert error_of(late) == "internal_error"  # after the lock timeout, which is within its ttl_ms

        async def confirms() -> bool:
            return (await asker.confirm("v")).status_code == 200

        await eventually(confirms, "the late call has not kept the probe", within_s=10)
        assert len(agent.prompts) == 6
    assert keeper.breaker("v") == {"failures": 0, "is_open": False, "openings": 1}


async def test_a_status_with_a_key_waits_two_seconds_for_the_database(grown_hub: HubProcess) -> None:
    keeper = Keeper(grown_hub)
    async with web(grown_hub.url, headers=bearer(keeper.key.token)) as client:
        assert (await client.get(STATUS)).json()["breaker"] == "closed"
        with locked(grown_hub, "LOCK TABLE accounts_credential IN ACCESS EXCLUSIVE MODE"):
            answer = await client.get(STATUS)
            assert (answer.status_code, answer.json()["breaker"]) == (503, "unknown")
        assert (await client.get(STATUS)).status_code == 200


async def test_envelopes_are_answered_after_their_connection_is_lost(grown_hub: HubProcess) -> None:
    keeper = Keeper(grown_hub)
    asker = program(grown_hub, keeper.key)
    may_answer, is_asked = asyncio.Event(), asyncio.Event()

    async def hold(asked: Asked, writer: asyncio.StreamWriter) -> None:
        is_asked.set()
        await may_answer.wait()
        writer.write(as_http(json.dumps(respond(asked.json, CONFIRMED)).encode()))

    async with raw_server(hold) as far, asker.client:
        keeper.add_url("holds", f"{far.url}/a2a/v1")
        booking = asyncio.create_task(asker.send("booking.confirm", {"venue_id": "holds"}, ttl_ms=15_000))
        await is_asked.wait()
        sql(grown_hub, END_CONNECTIONS)
        may_answer.set()
        assert result_of(await booking)["status"] == "pending"
        sql(grown_hub, END_CONNECTIONS)
        assert result_of(await asker.send())["active_venues"] == 1
    assert count(grown_hub, keeper.login, "agnt_usageevent") == 1
