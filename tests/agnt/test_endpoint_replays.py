"""One event, one booking: envelopes that come again, at once, to other processes, and after a kill -9."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime

import httpx
import pytest

from lab.callers import web
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from tests.agnt.wire import (
    Program,
    add_venue,
    count,
    envelope,
    error_of,
    mint,
    network_id,
    new_login,
    result_of,
    stamp,
)
from tests.channel.agents import sql

AT_ONCE, FEW_AT_ONCE = 50, 16
CHARGED = ("agnt_booking", "agnt_usageevent")
SUBSCRIBE = (
    "INSERT INTO webhooks_subscription (owner_id, url, events, session_id, routing_name, status,"
    " consecutive_failures, secret, previous_secret, created_at)"
    " SELECT id, 'https://hooks.invalid/', '*', '', '', 'active', 0, '', '', ? FROM accounts_user WHERE login = ?"
)
DELIVERIES = (
    "SELECT type, payload FROM webhooks_delivery JOIN webhooks_subscription"
    " ON subscription_id = webhooks_subscription.id JOIN accounts_user ON owner_id = accounts_user.id"
    " WHERE login = ?"
)
FORGET = "UPDATE agnt_seenenvelope SET expires_at = '2026-01-01 00:00:00' WHERE network_id = ?"


@asynccontextmanager
async def open_network(hub: HubProcess, login: str) -> AsyncIterator[Program]:
    """A program with a key of an owner with a venue `cafe` and a webhook."""
    key = mint(hub, login, "pro", "full", customer="acme")
    add_venue(hub, login, "cafe")
    now = datetime.now(UTC)
    sql(hub, SUBSCRIBE, now if hub.home.is_grown else f"{now:%Y-%m-%d %H:%M:%S.%f}", login)
    async with web(hub.url) as client:
        yield Program(client, key)


@pytest.fixture
def login() -> str:
    return new_login()


@pytest.fixture
async def asking(hub: HubProcess, login: str) -> AsyncIterator[Program]:
    """A program with a key of the network of that owner."""
    async with open_network(hub, login) as opened:
        yield opened


def charges(hub: HubProcess, login: str) -> list[int]:
    """The number of bookings, charges and deliveries."""
    return [*(count(hub, login, table) for table in CHARGED), len(sql(hub, DELIVERIES, login))]


async def test_a_replay_gets_the_stored_response(hub: HubProcess, login: str, asking: Program) -> None:
    sent = envelope("booking.confirm", {"venue_id": "cafe", "party_size": 2})
    first = await asking.post(sent)
    again = await asking.post(sent | {"ttl_ms": 15_000, "agent_context": {"try": 2}})
    assert result_of(first)["status"] == "pending"
    assert "idempotent-replay" not in first.headers
    assert again.headers["idempotent-replay"] == "true"
    assert again.content == first.content
    assert charges(hub, login) == [1, 1, 1]
    left = [int(one.headers["x-ratelimit-remaining"]) for one in (first, again)]
    assert left == [left[0], left[0] - 1]
    assert count(hub, login, "agnt_interaction", "status = 'duplicate'") == 1
    [(event_type, payload)] = sql(hub, DELIVERIES, login)
    assert event_type == "booking.confirmed"
    assert result_of(first)["booking_id"] in payload


async def test_slug_and_id_of_a_venue_are_one_venue_in_an_event(
    hub: HubProcess, login: str, asking: Program
) -> None:
    sent = envelope("booking.confirm", {"venue_id": "cafe"})
    first = await asking.post(sent)
    venue_id = result_of(first)["venue"]["venue_id"]
    for name in (venue_id, venue_id.upper(), "CAFE", "cafe"):
        again = await asking.post(sent | {"payload": {"venue_id": name}})
        assert again.content == first.content, name
    assert (await asking.post(sent | {"payload": {"venue_id": "other"}})).status_code == 409
    by_id = envelope("booking.confirm", {"venue_id": venue_id})
    second = await asking.post(by_id)
    assert (await asking.post(by_id | {"payload": {"venue_id": "cafe"}})).content == second.content
    sql(hub, "UPDATE agnt_venue SET is_active = ? WHERE public_id = ?", False, venue_id.replace("-", ""))
    assert (await asking.post(sent)).content == first.content
    assert charges(hub, login) == [2, 2, 2]


async def test_an_event_is_of_its_customer_whatever_the_key(hub: HubProcess, login: str, asking: Program) -> None:
    sent = envelope("booking.confirm", {"venue_id": "cafe"})
    first = result_of(await asking.post(sent))
    same = Program(asking.client, mint(hub, login, "enterprise", "full", customer="acme"))
    assert result_of(await same.post(sent)) == first
    other = Program(asking.client, mint(hub, login, "pro", "full", customer="other"))
    assert result_of(await other.post(sent))["booking_id"] != first["booking_id"]
    elsewhere = new_login()
    async with open_network(hub, elsewhere) as stranger:
        assert result_of(await stranger.post(sent))["booking_id"] != first["booking_id"]
    assert (charges(hub, login), charges(hub, elsewhere)) == ([2, 2, 2], [1, 1, 1])


async def test_another_payload_under_a_known_event_is_a_conflict(
    hub: HubProcess, login: str, asking: Program
) -> None:
    for intent, payloads in (
        ("booking.confirm", [{"venue_id": "cafe"}, {"venue_id": "cafe", "party_size": 2}]),
        ("booking.search", [{"limit": 7}, {"limit": 8}]),
    ):
        sent = envelope(intent, payloads[0])
        result_of(await asking.post(sent))
        answer = await asking.post(sent | {"payload": payloads[1]})
        assert (answer.status_code, error_of(answer)) == (409, "idempotency_conflict")
        assert answer.json()["payload"]["error"]["retryable"] is False
        assert (await asking.post(sent | {"to": "other"})).status_code == 409
    assert charges(hub, login) == [1, 1, 1]


async def test_a_known_event_is_answered_at_any_age_and_a_forgotten_one_is_not(
    hub: HubProcess, login: str, asking: Program
) -> None:
    old, at = stamp(seconds=4_000), stamp()
    sent = envelope("booking.confirm", {"venue_id": "cafe"}, timestamp=at)
    first = result_of(await asking.post(sent))
    sql(hub, "UPDATE agnt_seenenvelope SET timestamp = ? WHERE timestamp = ?", old, at)
    assert result_of(await asking.post(sent | {"timestamp": old})) == first
    sql(hub, FORGET, network_id(hub, login))
    assert error_of(await asking.post(sent | {"timestamp": old})) == "timestamp_expired"
    assert charges(hub, login) == [1, 1, 1]


async def test_an_expired_row_is_replaced(hub: HubProcess, login: str, asking: Program) -> None:
    sent = envelope("booking.search", {"limit": 3})
    result_of(await asking.post(sent))
    sql(hub, FORGET, network_id(hub, login))
    assert "idempotent-replay" not in (await asking.post(sent | {"payload": {"limit": 4}})).headers
    assert (await asking.post(sent | {"payload": {"limit": 4}})).headers["idempotent-replay"] == "true"


async def test_reads_without_a_timestamp_are_not_stored(hub: HubProcess, login: str, asking: Program) -> None:
    sent = envelope("venue.list", timestamp=None)
    for _ in range(2):
        answer = await asking.post(sent)
        assert result_of(answer)["count"] == 1
        assert "idempotent-replay" not in answer.headers
    assert count(hub, login, "agnt_seenenvelope") == 0


async def test_fifty_identical_confirmations_at_once_book_once(
    hub: HubProcess, login: str, asking: Program
) -> None:
    """On the grown hub they go to two processes."""
    sent = envelope("booking.confirm", {"venue_id": "cafe"}, ttl_ms=15_000)
    async with web(hub.urls[0]) as one, web(hub.urls[-1]) as other:
        programs = [Program(client, asking.key) for client in (one, other)]
        answers = await asyncio.gather(*(programs[number % 2].post(sent) for number in range(AT_ONCE)))
    assert {answer.status_code for answer in answers} == {200}
    assert len({answer.content for answer in answers}) == 1
    assert sum("idempotent-replay" not in answer.headers for answer in answers) == 1
    assert charges(hub, login) == [1, 1, 1]
    assert count(hub, login, "agnt_interaction") == AT_ONCE
    left = {int(answer.headers["x-ratelimit-remaining"]) for answer in answers}
    assert left == set(range(10_000 - AT_ONCE, 10_000))


@pytest.mark.parametrize("is_signed", [False, True])
async def test_equal_confirmations_of_one_customer_at_once_book_once(
    hub: HubProcess, login: str, asking: Program, is_signed: bool
) -> None:
    """By two keys; or with one signature, and timestamps that differ. On the grown hub by two processes."""
    key = asking.key if is_signed else mint(hub, login, "pro", "full", customer="acme")
    order = {"venue_id": "cafe"}
    sent = envelope("booking.confirm", asking.key.sign(order) if is_signed else order, ttl_ms=15_000)
    async with web(hub.urls[-1]) as client:
        programs = [asking, Program(client, key)]
        envelopes = [sent | ({"timestamp": stamp()} if is_signed else {}) for _ in range(FEW_AT_ONCE)]
        answers = await asyncio.gather(*(programs[nth % 2].post(one) for nth, one in enumerate(envelopes)))
    assert len({result_of(answer)["booking_id"] for answer in answers}) == 1
    assert charges(hub, login) == [1, 1, 1]


@pytest.mark.slow
async def test_a_kill_right_after_the_commit_keeps_the_booking(
    make_storage: MakeStorage, start_hub: StartHub, login: str
) -> None:
    hub = start_hub(make_storage("embedded"), FAIL_POINTS="agnt-confirmed")
    sent = envelope("booking.confirm", {"venue_id": "cafe"})
    async with open_network(hub, login) as asking:
        with pytest.raises(httpx.TransportError):
            await asking.post(sent)
        assert charges(hub, login) == [1, 1, 1]
        await asyncio.to_thread(hub.serve, 0)
        answer = await asking.post(sent)
    assert answer.headers["idempotent-replay"] == "true"
    [(booking_id,)] = sql(hub, "SELECT public_id FROM agnt_booking")
    assert result_of(answer)["booking_id"].replace("-", "") == booking_id
    assert charges(hub, login) == [1, 1, 1]
