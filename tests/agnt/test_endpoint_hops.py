"""Envelopes that agents passed on, at a real hub: taken or refused, counted once, and passed on to venues."""

import itertools
import json
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from clawbridge.agnt import (
    Ask,
    Client,
    Endpoint,
    MemoryBreakers,
    describe_ask,
    describe_response,
    find_ask,
    read_ask,
)
from clawbridge.agnt.signing import Hop, SigningKeys, Via, add_hop, describe_via, read_key
from clawbridge.agnt.transport import HttpxTransport
from lab.callers import bearer, web
from lab.frames import Json
from lab.hub_process import HubProcess
from tests.agnt import venues
from tests.agnt.lookalike import network
from tests.agnt.venues import CONFIRMED, Keeper, data, envelope_in, secret_of
from tests.agnt.wire import PATH, SENDER, Key, Program, add_venue, count, error_of, mint, result_of, stamp
from tests.channel.agents import sql
from tests.remote.servers import as_http

AGG = "agg_b"
STRANGER = Hop("agg_a", 1_775_988_123, "0" * 64)  # earlier hops are not verified
_numbers = itertools.count()
asker = venues.asker


@pytest.fixture
async def keeper(private_hub: HubProcess) -> Keeper:
    """The owner of a network that takes hops, with the venue `cafe`."""
    made = Keeper(private_hub)
    add_venue(private_hub, made.login, "cafe")
    await set_rule(made, accepts_hops=True)
    return made


async def set_rule(keeper: Keeper, *, accepts_hops: bool) -> None:
    async with web(keeper.hub.url) as client:
        headers = bearer(keeper.hub.mint(keeper.login, "session"))
        changed = await client.patch("/api/v1/network", json={"acceptsHops": accepts_hops}, headers=headers)
    assert changed.json()["acceptsHops"] is accepts_hops


def own_name(keeper: Keeper) -> str:
    return f"{keeper.hub.url.removeprefix('http://')}:{keeper.login}"


def passed_on(key: Key, intent: str = "network.ping", payload: Json | None = None, **fields: Any) -> Json:
    """An envelope of SENDER that AGG passed on just now; each has a signature of its own."""
    payload = payload or {"number": next(_numbers)}
    given = {"sender": AGG, "origin": SENDER, "timestamp": stamp()} | fields
    return describe_ask(Ask(intent=intent, payload=payload, **given), secret=read_key(key.secret), at_s=now_s())


def now_s() -> int:
    return int(time.time())


def sign_again(sent: Json, key: Key, at_s: int) -> Json:
    """The envelope with a hop of that time."""
    via = add_hop((), sent["payload"]["_sig"], agent=AGG, key=read_key(key.secret), at_s=at_s)
    return sent | {"via": describe_via(via)}


async def test_hops_are_refused_until_the_owner_takes_them(private_hub: HubProcess) -> None:
    keeper = Keeper(private_hub)
    async with web(private_hub.url) as client:
        asking = Program(client, keeper.key)
        refused = await asking.post(passed_on(keeper.key, via=(STRANGER,)))
        assert (refused.status_code, error_of(refused)) == (422, "invalid_envelope")
        assert refused.json()["payload"]["error"]["fields"] == ["via"]
        assert result_of(await asking.send())["status"] == "ok"
        await set_rule(keeper, accepts_hops=True)
        assert result_of(await asking.post(passed_on(keeper.key, via=(STRANGER,))))["agent_id"] == AGG
    logged = "SELECT metadata FROM agnt_interaction WHERE status = 'ok' AND sender = ? ORDER BY id DESC"
    metadata = json.loads(sql(private_hub, logged, AGG)[0][0])
    assert (metadata["origin"], metadata["via"]) == (SENDER, ["agg_a", AGG])


async def test_an_old_hop_is_refused_unless_its_event_is_known(keeper: Keeper, asker: Program) -> None:
    for at_s in (now_s() - 310, now_s() + 90):
        answer = await asker.post(sign_again(passed_on(keeper.key), keeper.key, at_s))
        assert (answer.status_code, error_of(answer)) == (401, "timestamp_expired")
    sent = passed_on(keeper.key)
    result_of(await asker.post(sent))
    again = await asker.post(sign_again(sent, keeper.key, now_s() - 310))
    assert again.headers["idempotent-replay"] == "true"


async def test_an_envelope_that_was_here_before_is_a_loop(keeper: Keeper, asker: Program) -> None:
    here = STRANGER._replace(agent=own_name(keeper))
    answer = await asker.post(passed_on(keeper.key, via=(STRANGER, here)))
    assert (answer.status_code, error_of(answer)) == (508, "routing_loop")
    assert answer.json()["payload"]["error"]["retryable"] is False
    neighbour = STRANGER._replace(agent=f"{own_name(keeper)}-2")
    assert result_of(await asker.post(passed_on(keeper.key, via=(neighbour,))))["status"] == "ok"


async def test_a_key_is_for_its_senders_and_not_for_origins(keeper: Keeper, asker: Program) -> None:
    for sender, status in ((AGG, 200), (SENDER, 403)):
        key = mint(keeper.hub, keeper.login, "pro", "full", senders=[sender])
        assert (await Program(asker.client, key).post(passed_on(key))).status_code == status


async def test_an_event_is_the_origins_by_any_route(keeper: Keeper, asker: Program) -> None:
    timestamp, order = stamp(), {"venue_id": "cafe", "party_size": 2}
    private = {"trace": "of agg_b"}
    fields = {"intent": "booking.confirm", "payload": order, "timestamp": timestamp}
    first = await asker.post(passed_on(keeper.key, **fields, agent_context=private))
    booked = result_of(first)["booking_id"]
    assert (first.json()["to"], first.json()["agent_context"]) == (AGG, private | {"origin": SENDER})
    await set_rule(keeper, accepts_hops=False)
    direct = await asker.send("booking.confirm", keeper.key.sign(order), timestamp=timestamp)
    await set_rule(keeper, accepts_hops=True)
    by_another = await asker.post(passed_on(keeper.key, **fields, sender="agg_c", via=(STRANGER,)))
    for again, sender in ((by_another, "agg_c"), (direct, SENDER)):
        assert again.headers["idempotent-replay"] == "true"
        assert (result_of(again)["booking_id"], again.json()["to"]) == (booked, sender)
        assert "trace" not in again.json()["agent_context"]
    assert count(keeper.hub, keeper.login, "agnt_usageevent") == 1
    other = passed_on(keeper.key, **(fields | {"payload": order | {"user_note": "x"}}), origin="my_agent_002")
    assert result_of(await asker.post(other))["booking_id"] != booked


async def test_a_venue_verifies_a_chain_of_two_hops(keeper: Keeper, asker: Program) -> None:
    """An aggregator and the venue use `clawbridge.agnt`; the hub is between them."""
    asked: list[Ask] = []

    def serve(envelope: Json) -> bytes:
        ask, signature = read_ask(envelope, keys=keys, now_s=time.time())
        assert signature == envelope["payload"]["_sig"]
        asked.append(ask)
        response = describe_response(find_ask(envelope), CONFIRMED, elapsed_s=0, now=datetime.now(UTC))
        return as_http(json.dumps(response).encode())

    async with network(serve) as far:
        venue_id = add_venue(keeper.hub, keeper.login, "v", url=far.endpoint.url, agent_name="agent-v")
        keys = SigningKeys(secret_of(keeper.hub, venue_id))
        order = Ask(sender=AGG, intent="booking.confirm", payload={"venue_id": "v"}, origin=SENDER)
        async with HttpxTransport() as transport:
            endpoint = Endpoint(keeper.hub.url + PATH, keeper.key.token, read_key(keeper.key.secret))
            answer = await Client(transport, MemoryBreakers()).ask(endpoint, order)
        [came] = asked
        assert answer.payload["status"] == "pending"
        assert (came.sender, came.origin, came.event) == (own_name(keeper), SENDER, order.event)
        assert [hop.agent for hop in came.via] == [AGG, own_name(keeper)]
        direct = result_of(await asker.confirm("v"))
        assert (direct["status"], asked[1].sender, asked[1].via) == ("pending", SENDER, ())
        await check_full_chain(keeper, asker, "v")
        assert len(asked) == 2


async def check_full_chain(keeper: Keeper, asker: Program, slug: str) -> None:
    """Four hops reach the hub, and no venue."""
    full: Via = (STRANGER,) * 3
    order = {"venue_id": slug, "user_note": "by four"}
    refused = await asker.post(passed_on(keeper.key, "booking.confirm", order, via=full))
    assert (refused.status_code, error_of(refused)) == (508, "routing_loop")
    assert result_of(await asker.post(passed_on(keeper.key, "venue.list", {"limit": 3}, via=full)))["count"]
    assert keeper.breaker(slug)["failures"] == 0


async def test_the_agent_of_a_venue_gets_the_chain(keeper: Keeper, asker: Program) -> None:
    async with keeper.venue("la-brisa", data(CONFIRMED)) as agent:
        sent = passed_on(keeper.key, "booking.confirm", {"venue_id": "la-brisa"}, via=(STRANGER,))
        booked = result_of(await asker.post(sent))
        [prompt] = agent.prompts
        await check_full_chain(keeper, asker, "la-brisa")
        assert len(agent.prompts) == 1
    keys = SigningKeys(secret_of(keeper.hub, booked["venue"]["venue_id"]))
    came, _ = read_ask(envelope_in(prompt), keys=keys, now_s=time.time())
    assert (came.origin, came.timestamp) == (SENDER, sent["timestamp"])
    assert describe_via(came.via[:2]) == sent["via"]
    assert (came.sender, came.via[2].agent) == (own_name(keeper), own_name(keeper))
    assert f"from the outside program {SENDER}, passed on by {AGG}:" in prompt["text"]
