"""Bookings at venues that listen themselves: the request that they get, and what their answers become."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import httpx
import pytest

from agnt.limits import OPEN_ASKS_OF_NETWORK, OPEN_ASKS_OF_VENUE
from agnt.service.asks.asker import OpenAsks
from agnt.service.asks.breakers import VenueKey
from agnt.service.asks.replies import NETWORK_BUSY, VENUE_BUSY
from clawbridge.agnt.fields import MAX_TTL_MS, EnvelopeRefused, ErrorCode
from clawbridge.agnt.signing import SigningKeys, verify_body, verify_payload
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.agnt import venues
from tests.agnt.lookalike import fail, network, respond, send
from tests.agnt.venues import CONFIRMED, Keeper, secret_of
from tests.agnt.wire import SENDER, Program, count, error_of, mint, network_id, program, result_of
from tests.channel.agents import sql
from tests.remote.servers import Asked, raw_server

Script = Callable[[Json], bytes]
OPEN_OF_VENUE, OPEN_OF_NETWORK = OPEN_ASKS_OF_VENUE.most, OPEN_ASKS_OF_NETWORK.most
LITTLE_MS = 3000  # no breaker counts that a venue takes longer than that
OPENED = (
    "INSERT INTO agnt_breaker (network_id, venue_id, failures, opened_at_s, openings)"
    " SELECT network_id, id, '[]', ?, 1 FROM agnt_venue WHERE slug = 'holds' AND network_id = ?"
)
keeper, asker = venues.private_keeper, venues.asker


def confirm(payload: Json | None = None, **fields: Any) -> Script:
    """An answer 200 with a response envelope."""
    return send(200, lambda envelope: respond(envelope, CONFIRMED | (payload or {})) | fields)


async def test_a_venue_gets_a_signed_envelope(keeper: Keeper, asker: Program) -> None:
    async with network(confirm({"slot_time": "20:00", "note": "upstairs"})) as far:
        keeper.add_url("v", far.endpoint.url)
        booked = result_of(await asker.confirm("v", time="19:30", party_size=2))
        [asked] = far.asked
    assert (booked["slot_time"], booked["party_size"], booked["note"]) == ("20:00", 2, "upstairs")
    given = asked.json
    assert (given["from"], given["to"], given["intent"]) == (SENDER, "agent-v", "booking.confirm")
    assert 0 < given["ttl_ms"] <= MAX_TTL_MS
    keys = SigningKeys(secret_of(keeper.hub, booked["venue"]["venue_id"]))
    signed_at = given["payload"]["_ts"]
    assert verify_payload(given["payload"], keys=keys, sender=SENDER, now_s=signed_at)
    verify_body(asked.headers["x-a2a-envelope-signature"], asked.body, keys=keys, now_s=signed_at)
    assert "authorization" not in asked.headers
    assert count(keeper.hub, keeper.login, "agnt_usageevent") == 1


@pytest.mark.parametrize(
    ("script", "code", "counts"),
    [
        pytest.param(send(409, fail("slot_unavailable")), "slot_unavailable", False, id="slot"),
        pytest.param(send(429, fail("rate_limited")), "rate_limited", False, id="429"),
        pytest.param(send(500, fail("internal_error")), "venue_unreachable", True, id="500"),
        pytest.param(send(508, fail("routing_loop")), "routing_loop", False, id="508"),
        pytest.param(send(504, fail("ttl_exceeded")), "ttl_exceeded", False, id="504-at-once"),
        pytest.param(send(302, more="Location: http://127.0.0.1:9/\r\n"), "venue_unreachable", False, id="302"),
        pytest.param(confirm({"party_size": "4"}), "venue_unreachable", True, id="wrong-type"),
        pytest.param(lambda _: b"", "venue_unreachable", True, id="hangs-up"),
    ],
)
async def test_what_does_not_confirm(
    keeper: Keeper, asker: Program, script: Script, code: str, *, counts: bool
) -> None:
    async with network(script) as far:
        keeper.add_url("v", far.endpoint.url)
        assert error_of(await asker.confirm("v")) == code
        assert len(far.asked) == 1
    assert count(keeper.hub, keeper.login, "agnt_booking") == 0
    assert keeper.breaker("v")["failures"] == int(counts)


@dataclass
class Holding:
    """A venue that holds its answers until it may send them. `asked`: what came."""

    asked: list[Asked]
    may_answer: asyncio.Event

    def ask_all(self, asker: Program, ttl_ms: int = 15_000) -> list["asyncio.Task[httpx.Response]"]:
        """As many orders as one venue gets at once."""
        order = {"venue_id": "holds"}
        sends = (asker.send("booking.confirm", order, ttl_ms=ttl_ms) for _ in range(OPEN_OF_VENUE))
        return [asyncio.create_task(one) for one in sends]

    async def got_all(self) -> bool:
        """True if all asks came that wait for long."""
        return sum(one.json["ttl_ms"] > LITTLE_MS for one in self.asked) == OPEN_OF_VENUE


@pytest.fixture
async def holding(keeper: Keeper) -> AsyncIterator[Holding]:
    """The venue `holds` of that network."""
    asked: list[Asked] = []
    may_answer = asyncio.Event()

    async def hold(one: Asked, writer: asyncio.StreamWriter) -> None:
        asked.append(one)
        await may_answer.wait()
        writer.write(confirm()(one.json))

    async with raw_server(hold) as far:
        keeper.add_url("holds", f"{far.url}/a2a/v1")
        yield Holding(asked, may_answer)
        may_answer.set()


def is_busy(answer: httpx.Response) -> bool:
    """True if the ask is refused because too many envelopes wait for the venue."""
    return error_of(answer) == "venue_unreachable" and VENUE_BUSY in answer.text


async def test_twenty_envelopes_at_once_and_no_more(keeper: Keeper, asker: Program, holding: Holding) -> None:
    waiting = holding.ask_all(asker)
    await eventually(holding.got_all, "twenty envelopes wait for the venue")
    refused = await asker.confirm("holds")
    assert is_busy(refused)
    assert (refused.status_code, refused.json()["payload"]["error"]["retryable"]) == (502, True)
    async with network(confirm()) as other:
        keeper.add_url("other", other.endpoint.url)
        assert result_of(await asker.confirm("other"))["status"] == "pending"
    assert not any(one.done() for one in waiting)
    assert len(holding.asked) == OPEN_OF_VENUE
    holding.may_answer.set()
    for one in waiting:
        assert result_of(await one)["status"] == "pending"
    assert result_of(await asker.confirm("holds"))["status"] == "pending"
    for table in ("agnt_booking", "agnt_usageevent"):
        assert count(keeper.hub, keeper.login, table) == OPEN_OF_VENUE + 2
    assert count(keeper.hub, keeper.login, "agnt_interaction", "status = 'venue_unreachable'") == 1
    assert keeper.breaker("holds")["failures"] == keeper.breaker()["failures"] == 0


async def test_an_envelope_that_waits_no_longer_leaves_its_place(
    keeper: Keeper, asker: Program, holding: Holding
) -> None:
    """First their time is over, then their key is revoked."""
    other = Program(asker.client, mint(keeper.hub, keeper.login))
    late = await asyncio.gather(*holding.ask_all(asker, ttl_ms=LITTLE_MS))
    assert {error_of(one) for one in late} == {"ttl_exceeded"}
    waiting = holding.ask_all(asker)
    await eventually(holding.got_all, "twenty envelopes wait for the venue")
    assert is_busy(await other.confirm("holds"))
    keeper.revoke_first_key()
    assert {error_of(await one) for one in waiting} == {"unauthorized"}
    holding.may_answer.set()
    assert result_of(await other.confirm("holds"))["status"] == "pending"
    assert count(keeper.hub, keeper.login, "agnt_usageevent") == 1
    assert keeper.breaker("holds")["failures"] == keeper.breaker()["failures"] == 0


async def test_an_envelope_that_finds_no_room_is_not_the_probe(
    keeper: Keeper, asker: Program, holding: Holding
) -> None:
    waiting = holding.ask_all(asker)
    await eventually(holding.got_all, "twenty envelopes wait for the venue")
    sql(keeper.hub, OPENED, time.time() - 301, network_id(keeper.hub, keeper.login))
    assert is_busy(await asker.confirm("holds"))
    holding.may_answer.set()
    for one in waiting:
        result_of(await one)
    assert keeper.breaker("holds")["is_open"]
    assert result_of(await asker.confirm("holds"))["status"] == "pending"
    assert keeper.breaker("holds") == {"failures": 0, "is_open": False, "openings": 1}


def test_two_hundred_asks_of_a_network_at_once_and_no_more() -> None:
    asks = OpenAsks()
    with ExitStack() as held:
        for number in range(OPEN_OF_NETWORK):
            held.enter_context(asks.hold(VenueKey(1, number // OPEN_OF_VENUE)))
        with pytest.raises(EnvelopeRefused, match=NETWORK_BUSY) as refused, asks.hold(VenueKey(1, 1_000)):
            pass
        assert refused.value.code == ErrorCode.VENUE_UNREACHABLE
        with pytest.raises(EnvelopeRefused, match=VENUE_BUSY), asks.hold(VenueKey(1, 0)):
            pass
        with asks.hold(VenueKey(2, 1_000)):
            pass
    with asks.hold(VenueKey(1, 1_000)):
        pass


async def test_a_venue_that_never_answers_and_one_that_is_not_there(keeper: Keeper, asker: Program) -> None:
    is_over = asyncio.Event()

    async def hold(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await is_over.wait()

    async with raw_server(hold) as far:
        keeper.add_url("holds", f"{far.url}/a2a/v1")

        async def counts() -> bool:
            late = await asker.send("booking.confirm", {"venue_id": "holds"}, ttl_ms=7000)
            assert error_of(late) == "ttl_exceeded"
            return keeper.breaker("holds")["failures"] > 0

        await eventually(counts, "a time-out counts, unless the hub was slow itself")
        is_over.set()
    keeper.add_url("gone", f"{far.url}/a2a/v1")
    assert error_of(await asker.confirm("gone")) == "venue_unreachable"
    assert keeper.breaker("gone")["failures"] == 1
    assert keeper.breaker()["failures"] == 1  # that a venue is slow says nothing of the network


async def test_the_network_of_the_hub_is_out_of_reach(embedded_hub: HubProcess, subtests: pytest.Subtests) -> None:
    keeper = Keeper(embedded_hub)
    asking = program(keeper.hub, keeper.key)
    async with network(confirm()) as far, asking.client:
        for number, url in enumerate(
            (far.endpoint.url, "http://169.254.169.254/latest", "https://localhost/a2a/v1", "file:///etc/passwd")
        ):
            with subtests.test(url=url):
                keeper.add_url(f"v{number}", url)
                answer = await asking.confirm(f"v{number}")
                assert error_of(answer) in ("venue_unreachable", "circuit_open")
                assert url not in answer.text
        assert far.asked == []
