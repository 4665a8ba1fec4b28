"""Signatures of envelopes at a real hub: secrets, ages, used ones, and what a network demands."""

import hmac
import json
from datetime import UTC, datetime, timedelta

from clawbridge.agnt.signing import read_key, sign_body
from lab.hub_process import HubProcess
from tests.agnt.wire import (
    SENDER,
    Key,
    Program,
    envelope,
    error_of,
    mint,
    network_id,
    new_login,
    program,
    result_of,
    stamp,
)
from tests.channel.agents import sql

NUMBERS = {"query": "café ☕ 夕日 🦞", "limit": 5}


def ago(seconds: float) -> datetime:
    return datetime.now(UTC) - timedelta(seconds=seconds)


async def test_a_wrong_signature_is_refused(asker: Program, embedded_hub: HubProcess, keeper: str) -> None:
    signed = asker.key.sign(NUMBERS)
    result_of(await asker.send("booking.search", signed))
    other = mint(embedded_hub, keeper)
    for payload in (signed | {"limit": 6}, asker.key.sign(NUMBERS, sender="another"), other.sign(NUMBERS)):
        answer = await asker.send("booking.search", payload)
        assert (answer.status_code, error_of(answer)) == (401, "invalid_signature"), payload


async def test_an_old_signature_is_refused_unless_the_envelope_is_known(asker: Program) -> None:
    for at in (ago(310), ago(-70)):
        answer = await asker.send("booking.search", asker.key.sign(NUMBERS, at=at))
        assert (answer.status_code, error_of(answer)) == (401, "timestamp_expired")
    fresh = asker.key.sign(NUMBERS, at=ago(290))
    assert result_of(await asker.send("booking.search", fresh))["status"] == "ok"
    order = {"venue_id": "cafe", "party_size": 3}  # of this test alone: equal payloads of one second sign alike
    sent = envelope("booking.confirm", asker.key.sign(order))
    booked = result_of(await asker.post(sent))
    again = await asker.post(sent | {"payload": asker.key.sign(order, at=ago(400))})
    assert result_of(again) == booked
    assert again.headers["idempotent-replay"] == "true"


async def test_equal_signed_searches_of_one_second_are_each_answered(asker: Program) -> None:
    """Nothing but their timestamps differs, which no `_sig` covers."""
    payload = asker.key.sign({"query": "used"})
    sent = envelope("booking.search", payload)
    assert result_of(await asker.post(sent))["count"] == 0
    assert (await asker.post(sent)).headers["idempotent-replay"] == "true"
    for fields in ({"timestamp": stamp()}, {"intent": "network.ping"}, {"timestamp": ""}):
        answer = await asker.post(sent | fields)
        assert result_of(answer)["status"] == "ok"
        assert "idempotent-replay" not in answer.headers


async def test_a_used_signature_confirms_nothing_twice(asker: Program) -> None:
    order = {"venue_id": "cafe", "party_size": 4}
    at = ago(100)  # of this test alone
    sent = envelope("booking.confirm", asker.key.sign(order, at=at))
    booked = result_of(await asker.post(sent))
    signed_again = sent | {"payload": asker.key.sign(order, at=ago(99))}
    assert result_of(await asker.post(signed_again)) == booked
    for fields in (sent, signed_again):
        for timestamp in (stamp(), ""):
            answer = await asker.post(fields | {"timestamp": timestamp})
            assert (result_of(answer), answer.headers["idempotent-replay"]) == (booked, "true")
    other = asker.key.sign(order | {"_nonce": "a second table"}, at=at)
    assert result_of(await asker.post(sent | {"payload": other, "timestamp": stamp()})) != booked
    conflict = await asker.post(sent | {"to": "cafe_agent", "timestamp": stamp()})
    assert (conflict.status_code, error_of(conflict)) == (409, "idempotency_conflict")


async def test_the_previous_secret_verifies_until_its_time_is_over(embedded_hub: HubProcess, keeper: str) -> None:
    old, new = mint(embedded_hub, keeper), mint(embedded_hub, keeper)
    asking = program(embedded_hub, Key(new.token, old.secret, ""))
    swap = "UPDATE agnt_apikey SET previous_until = ?, previous_secret ="
    swap += " (SELECT secret FROM agnt_apikey AS other WHERE other.public_id = ?) WHERE public_id = ?"
    hexes = [one.key_id.replace("-", "") for one in (old, new)]
    later, before = (f"{ago(seconds):%Y-%m-%d %H:%M:%S.%f}" for seconds in (-600, 1))
    sql(embedded_hub, swap, later, *hexes)
    assert result_of(await asking.send("booking.search", asking.key.sign({})))["count"] == 1
    assert result_of(await asking.send("booking.search", new.sign({})))["count"] == 1
    sql(embedded_hub, swap, before, *hexes)
    assert error_of(await asking.send("booking.search", asking.key.sign({}))) == "invalid_signature"
    await asking.client.aclose()


async def test_the_header_signs_the_whole_envelope(asker: Program) -> None:
    body = json.dumps(envelope())
    key, now_s = read_key(asker.key.secret), int(ago(0).timestamp())
    header = sign_body(body.encode(), key=key, at_s=now_s)
    assert result_of(await asker.post(body, {"X-A2A-Envelope-Signature": header}))["status"] == "ok"
    other = body.replace("network.ping", "venue.list")
    answer = await asker.post(other, {"X-A2A-Envelope-Signature": header})
    assert (answer.status_code, error_of(answer)) == (401, "invalid_signature")
    late = sign_body(other.encode(), key=key, at_s=now_s - 310)
    assert error_of(await asker.post(other, {"X-A2A-Envelope-Signature": late})) == "timestamp_expired"


async def test_numbers_as_javascript_writes_them_verify(asker: Program) -> None:
    """A sender that signs `1e-7`, where Python writes `1e-07`: it is tried with its numbers as they came."""
    at_s = int(ago(0).timestamp())
    signed = f'{{"_from":"{SENDER}","_ts":{at_s},"n":1e-7}}'
    good = hmac.new(read_key(asker.key.secret), signed.encode(), "sha256").hexdigest()
    text = json.dumps(envelope()).replace('"payload": {}', f'"payload": {signed[:-1]},"_sig":"{good}"}}')
    assert result_of(await asker.post(text))["status"] == "ok"
    bad = text.replace(good, good[::-1])
    assert error_of(await asker.post(bad)) == "invalid_signature"


async def test_a_network_may_demand_signatures(embedded_hub: HubProcess) -> None:
    login = new_login()
    asking = program(embedded_hub, mint(embedded_hub, login))
    demand = "UPDATE agnt_network SET requires_signature = ? WHERE id = ?"
    sql(embedded_hub, demand, True, network_id(embedded_hub, login))
    answer = await asking.send()
    assert (answer.status_code, error_of(answer)) == (401, "invalid_signature")
    assert result_of(await asking.send(payload=asking.key.sign({})))["status"] == "ok"
    body = json.dumps(envelope())
    at_s = int(ago(0).timestamp())
    header = sign_body(body.encode(), key=read_key(asking.key.secret), at_s=at_s)
    assert result_of(await asking.post(body, {"X-A2A-Envelope-Signature": header}))["status"] == "ok"
    await asking.client.aclose()
