"""Daily limits of keys, the status report, and the list by REST."""

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, contextmanager

import pytest

from lab.callers import bearer, web
from lab.hub_process import HubProcess
from tests.agnt.wire import (
    Key,
    Program,
    add_venue,
    count,
    envelope,
    error_of,
    mint,
    network_id,
    new_login,
    program,
    result_of,
)
from tests.channel.agents import sql

STATUS = "/a2a/v1/status"
USED = "UPDATE agnt_keyusage SET calls = ? WHERE key_id IN (SELECT id FROM agnt_apikey WHERE network_id = ?)"
ENDED = (
    "UPDATE accounts_credential SET {} = created_at WHERE user_id = (SELECT id FROM accounts_user WHERE login = ?)"
)


@contextmanager
def locked_database(hub: HubProcess) -> Iterator[None]:
    """Nothing can be written."""
    with closing(sqlite3.connect(hub.home.folder / "hub.sqlite3", isolation_level=None)) as holder:
        holder.execute("BEGIN IMMEDIATE")
        try:
            yield
        finally:
            holder.execute("ROLLBACK")


@asynccontextmanager
async def opened(hub: HubProcess, tier: str, scope: str = "full") -> AsyncIterator[tuple[str, Program]]:
    """An owner with a venue `cafe`, and a program with a key."""
    login = new_login()
    asking = program(hub, mint(hub, login, tier, scope))
    add_venue(hub, login, "cafe")
    yield login, asking
    await asking.client.aclose()


@pytest.mark.parametrize(("tier", "limit"), [("pro", 10_000), ("enterprise", 500_000)])
async def test_the_limits_of_other_tiers(embedded_hub: HubProcess, tier: str, limit: int) -> None:
    async with opened(embedded_hub, tier) as (login, asking):
        assert (await asking.send()).headers["x-ratelimit-limit"] == str(limit)
        sql(embedded_hub, USED, limit - 1, network_id(embedded_hub, login))
        assert result_of(await asking.confirm("cafe"))["status"] == "pending"
        refused = await asking.confirm("cafe")
        assert (refused.status_code, error_of(refused)) == (429, "rate_limited")
        assert count(embedded_hub, login, "agnt_booking") == 1


async def test_beyond_the_limit_every_intent_is_429(embedded_hub: HubProcess) -> None:
    async with opened(embedded_hub, "free", "query") as (login, asking):
        await asking.send()
        sql(embedded_hub, USED, 100, network_id(embedded_hub, login))
        answers = [
            await asking.send(),
            await asking.send("venue.list"),
            await asking.send("booking.search"),
            await asking.confirm("cafe"),
            await asking.send("x.y"),
            await asking.client.get("/network/venues", headers=bearer(asking.key.token)),
        ]
    assert [answer.status_code for answer in answers] == [429] * 6


async def test_a_slash_at_the_end_is_the_same_address(embedded_hub: HubProcess) -> None:
    async with opened(embedded_hub, "free") as (_, asking):
        sent = envelope("network.ping")
        answer = await asking.client.post("/a2a/v1/", json=sent, headers=bearer(asking.key.token))
    assert result_of(answer)["active_venues"] == 1


async def test_calls_at_once_are_counted_each(hub: HubProcess) -> None:
    async with opened(hub, "free", "query") as (_, asking), web(hub.urls[-1]) as client:
        other = Program(client, asking.key)
        sends = [(asking, other)[number % 2].send() for number in range(120)]
        answers = await asyncio.gather(*sends)
    assert sorted(answer.status_code for answer in answers) == [200] * 100 + [429] * 20


async def test_while_nothing_can_be_written_reads_are_served_and_bookings_refused(
    embedded_hub: HubProcess,
) -> None:
    async with opened(embedded_hub, "pro") as (login, asking):
        assert result_of(await asking.send("venue.list"))["count"] == 1
        with locked_database(embedded_hub):
            read = asking.send("venue.list", ttl_ms=15_000)
            booked = asking.send("booking.confirm", {"venue_id": "cafe"}, ttl_ms=15_000)
            late = asking.send("venue.list", ttl_ms=300)
            answers = await asyncio.gather(read, booked, late)
        assert result_of(answers[0])["count"] == 1
        assert "x-ratelimit-limit" not in answers[0].headers
        assert (answers[1].status_code, error_of(answers[1])) == (500, "internal_error")
        assert answers[1].json()["payload"]["error"]["retryable"] is True
        assert (answers[2].status_code, error_of(answers[2])) == (504, "ttl_exceeded")
        assert count(embedded_hub, login, "agnt_booking") == 0
        assert result_of(await asking.confirm("cafe"))["status"] == "pending"


async def test_a_key_that_is_not_live_is_refused_while_nothing_can_be_written(embedded_hub: HubProcess) -> None:
    """In less than the 5 s for which a transaction waits for the write lock of SQLite."""
    ended = {"revoked_at": "", "expires_at": ""}
    for column in ended:
        login = new_login()
        ended[column] = mint(embedded_hub, login).token
        sql(embedded_hub, ENDED.format(column), login)
    async with web(embedded_hub.url) as client:
        with locked_database(embedded_hub):
            for token in ("agnt_live_" + "0" * 32, *ended.values()):
                asking = Program(client, Key(token, "", ""))
                answer = await asking.send(ttl_ms=3000)
                assert (answer.status_code, error_of(answer)) == (401, "unauthorized")


async def test_the_status_with_a_key_is_no_call(embedded_hub: HubProcess) -> None:
    async with opened(embedded_hub, "free", "query") as (login, asking):
        for _ in range(3):
            answer = await asking.client.get(STATUS, headers=bearer(asking.key.token))
            assert (answer.status_code, answer.json()["breaker"]) == (200, "closed")
            assert "x-ratelimit-limit" not in answer.headers
        assert (await asking.send()).headers["x-ratelimit-remaining"] == "99"
        assert count(embedded_hub, login, "agnt_interaction") == 1


async def test_the_status_with_another_credential_is_refused(
    embedded_hub: HubProcess, subtests: pytest.Subtests
) -> None:
    async with web(embedded_hub.url) as client:
        for header in (f"Bearer agnt_live_{'0' * 32}", "Bearer other", "Basic YTpi", "Bearer"):
            answer = await client.get(STATUS, headers={"Authorization": header})
            with subtests.test(header=header):
                assert (answer.status_code, error_of(answer)) == (401, "unauthorized")
                assert answer.headers["www-authenticate"] == "Bearer"


async def test_venues_are_listed_by_rest(embedded_hub: HubProcess) -> None:
    async with opened(embedded_hub, "free", "query") as (login, asking):
        add_venue(embedded_hub, login, "bar", category="bar")
        client = asking.client
        client.headers.update(bearer(asking.key.token))
        listed = await client.get("/network/venues", params={"limit": 1, "category": "bar"})
        assert listed.status_code == 200
        by_envelope = result_of(await asking.send("venue.list", {"category": "bar"}))
        assert listed.json() == {"venues": by_envelope["venues"], "count": 1}
        assert listed.headers["x-ratelimit-remaining"] == "99"
        for query in ("limit=0", "limit=x", "limit=1&limit=2", "category=%00", "location=" + "x" * 200):
            refused = await client.get(f"/network/venues?{query}")
            assert (refused.status_code, refused.json()["error"]) == (422, "invalid_envelope"), query
        assert "city, zip" in (await client.get("/network/venues?city=canggu&category=bar&zip=")).text
        sql(embedded_hub, USED, 100, network_id(embedded_hub, login))
        assert (await client.get("/network/venues")).status_code == 429
        assert (await client.head("/network/venues")).status_code == 429
    async with web(embedded_hub.url) as client:
        answer = await client.get("/network/venues")
        assert (answer.status_code, answer.json()["error"]) == (401, "unauthorized")
        assert answer.headers["www-authenticate"] == "Bearer"
