"""Bookings at venues that listen themselves: the request that they get, and what their answers become."""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any

import pytest

from agnt.signing import SigningKeys, verify_body, verify_payload
from agnt.wire import MAX_TTL_MS
from lab.frames import Json
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.agnt.lookalike import fail, network, respond, send
from tests.agnt.venues import CONFIRMED, Keeper, secret_of
from tests.agnt.wire import SENDER, Program, count, error_of, program, result_of
from tests.remote.servers import Asked, raw_server

Script = Callable[[Json], bytes]


@pytest.fixture(scope="module")
def hub(make_storage: MakeStorage) -> Iterator[HubProcess]:
    """A hub that may call servers of this machine."""
    running = HubProcess.start(make_storage("embedded"), REMOTE_ALLOW_PRIVATE=1)
    yield running
    running.stop()


@pytest.fixture
def keeper(hub: HubProcess) -> Keeper:
    """The owner of a network of its own."""
    return Keeper(hub)


@pytest.fixture
async def asker(keeper: Keeper) -> AsyncIterator[Program]:
    """A program with a key of that network."""
    asking = program(keeper.hub, keeper.key)
    yield asking
    await asking.client.aclose()


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
    keys, signed_at = (
        SigningKeys(await secret_of(keeper.hub, booked["venue"]["venue_id"])),
        given["payload"]["_ts"],
    )
    assert verify_payload(given["payload"], keys=keys, sender=SENDER, now_s=signed_at)
    verify_body(asked.headers["x-a2a-envelope-signature"], asked.body, keys=keys, now_s=signed_at)
    assert "authorization" not in asked.headers
    assert count(keeper.hub, keeper.login, "agnt_usageevent") == 1


@pytest.mark.parametrize(
    ("script", "code", "counts"),
    [
        pytest.param(send(409, fail("slot_unavailable")), "slot_unavailable", False, id="slot"),
        pytest.param(confirm({"status": "slot_unavailable"}), "slot_unavailable", False, id="status"),
        pytest.param(send(404, fail("venue_not_found")), "venue_unreachable", False, id="404"),
        pytest.param(send(401, fail("invalid_signature")), "venue_unreachable", False, id="401"),
        pytest.param(send(429, fail("rate_limited")), "venue_unreachable", False, id="429"),
        pytest.param(send(500, fail("internal_error")), "venue_unreachable", True, id="500"),
        pytest.param(send(503, lambda _: "ill"), "venue_unreachable", True, id="503"),
        pytest.param(send(508, fail("routing_loop")), "routing_loop", False, id="508"),
        pytest.param(send(504, fail("ttl_exceeded")), "ttl_exceeded", True, id="504"),
        pytest.param(send(302, more="Location: http://127.0.0.1:9/\r\n"), "venue_unreachable", False, id="302"),
        pytest.param(send(200, lambda _: []), "venue_unreachable", True, id="array"),
        pytest.param(send(200, lambda _: {"status": "confirmed"}), "venue_unreachable", True, id="no-envelope"),
        pytest.param(confirm({"party_size": "4"}), "venue_unreachable", True, id="wrong-type"),
        pytest.param(confirm(intent="venue.list"), "venue_unreachable", True, id="other-intent"),
        pytest.param(confirm({"x": "y" * 1_100_000}), "venue_unreachable", True, id="too-large"),
        pytest.param(lambda _: b"SSH-2.0-OpenSSH\r\n", "venue_unreachable", True, id="not-http"),
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


async def test_a_venue_that_never_answers_and_one_that_is_not_there(keeper: Keeper, asker: Program) -> None:
    is_over = asyncio.Event()

    async def hold(asked: Asked, writer: asyncio.StreamWriter) -> None:
        await is_over.wait()

    async with raw_server(hold) as far:
        keeper.add_url("holds", f"{far.url}/a2a/v1")
        late = await asker.send("booking.confirm", {"venue_id": "holds"}, ttl_ms=1300)
        assert error_of(late) == "ttl_exceeded"
        assert keeper.breaker("holds")["failures"] == 1
        is_over.set()
    keeper.add_url("gone", f"{far.url}/a2a/v1")
    assert error_of(await asker.confirm("gone")) == "venue_unreachable"
    assert keeper.breaker("gone")["failures"] == 1
    assert keeper.breaker()["failures"] == 2


async def test_the_network_of_the_hub_is_out_of_reach(embedded_hub: HubProcess) -> None:
    keeper = Keeper(embedded_hub)
    asking = program(keeper.hub, keeper.key)
    async with network(confirm()) as far, asking.client:
        for number, url in enumerate(
            (far.endpoint.url, "http://169.254.169.254/latest", "https://localhost/a2a/v1", "file:///etc/passwd")
        ):
            keeper.add_url(f"v{number}", url)
            answer = await asking.confirm(f"v{number}")
            assert error_of(answer) in ("venue_unreachable", "circuit_open")
            assert url not in answer.text
        assert far.asked == []


async def test_five_failures_open_its_breaker(keeper: Keeper, asker: Program) -> None:
    async with network(*[send(500, fail("internal_error"))] * 5, confirm()) as far:
        keeper.add_url("v", far.endpoint.url)
        for _ in range(5):
            assert error_of(await asker.confirm("v")) == "venue_unreachable"
        assert error_of(await asker.confirm("v")) == "circuit_open"
        assert len(far.asked) == 5
        keeper.age_breakers(301)
        answers = await asyncio.gather(*(asker.confirm("v") for _ in range(3)))
        assert sorted(one.status_code for one in answers)[0] == 200
        assert not keeper.breaker("v")["is_open"]
