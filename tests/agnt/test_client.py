"""The client against a network on a real port: what it sends, what is an answer, and the hub's way to call."""

import gzip
import json
from typing import Any

import pytest

from agnt.service.asks.routes import GuardedTransport, parse_strictly
from clawbridge.agnt import Answer, Ask, CallFailed, Client, Endpoint, MemoryBreakers, describe_ask, read_response
from clawbridge.agnt.fields import ErrorCode
from clawbridge.agnt.signing import SigningKeys, verify_body, verify_payload
from clawbridge.agnt.transport import HttpxTransport
from kit.safe_http import StreamingHttp, TargetRules
from lab.receivers import Canary
from tests.agnt.lookalike import K1, Clock, client, fail, failure, network, respond, search, send
from tests.remote.servers import as_http

MOVED = as_http(b"", status="307 Moved", more="Location: /\r\n")
ZIPPED = as_http(gzip.compress(b"{}"), more="Content-Encoding: gzip\r\n")


# What is sent.


async def test_all_eight_fields_arrive_with_key_and_both_signatures() -> None:
    ask = search(to="la-brisa", agent_context={"locale": "en"}, ttl_ms=700, timestamp="2026-04-12T10:02:03Z")
    async with network() as net, client() as sender:
        answer = await sender.ask(net.endpoint, ask)
        [asked] = net.asked
    assert answer == Answer(payload={"status": "ok"}, agent_context={"locale": "en"})
    assert asked.json | {"payload": {}} == {
        "protocol": "openclaw/a2a/v1",
        "from": "my_agent_001",
        "to": "la-brisa",
        "intent": "booking.search",
        "payload": {},
        "agent_context": {"locale": "en"},
        "ttl_ms": 700,
        "timestamp": "2026-04-12T10:02:03Z",
    }
    assert asked.headers["authorization"] == "Bearer agnt_live_test"
    assert asked.headers["content-type"] == "application/json"
    header = asked.headers["x-a2a-envelope-signature"]
    verify_body(header, asked.body, keys=SigningKeys(K1), now_s=Clock().now_s)
    assert verify_payload(asked.json["payload"], keys=SigningKeys(K1), sender="my_agent_001", now_s=Clock().now_s)


async def test_without_key_and_secret_nothing_is_added() -> None:
    async with network() as net, client() as sender:
        await sender.ask(Endpoint(net.url), search())
        [asked] = net.asked
    assert asked.json["payload"] == {"query": "dinner"}
    assert not {"authorization", "x-a2a-envelope-signature"} & asked.headers.keys()


async def test_equal_asks_of_one_second_have_signatures_of_their_own() -> None:
    clock = Clock()
    async with network() as net, client(clock) as sender:
        for _ in range(3):
            await sender.ask(net.endpoint, Ask(sender="x", intent="network.ping"))
        payloads = [envelope["payload"] for envelope in net.envelopes]
    assert [payload["_ts"] - clock.now_s for payload in payloads] == [0, 1, 2]
    assert len({envelope["timestamp"] for envelope in net.envelopes}) == 3


@pytest.mark.parametrize(
    ("more", "code"),
    [
        pytest.param({"payload": {"a": float("nan")}}, ErrorCode.INVALID_ENVELOPE, id="NaN"),
        pytest.param({"payload": {"a": {1, 2}}}, ErrorCode.INVALID_ENVELOPE, id="no JSON"),
        pytest.param({"agent_context": {"a": float("inf")}}, ErrorCode.INVALID_ENVELOPE, id="infinity"),
        pytest.param({"sender": "two words"}, ErrorCode.INVALID_ENVELOPE, id="sender"),
        pytest.param({"to": ""}, ErrorCode.INVALID_ENVELOPE, id="to"),
        pytest.param({"ttl_ms": 0}, ErrorCode.INVALID_ENVELOPE, id="ttl"),
        pytest.param({"payload": {"a": "x" * 262_144}}, ErrorCode.PAYLOAD_TOO_LARGE, id="too large"),
    ],
)
async def test_what_cannot_be_an_envelope_is_not_sent(more: Any, code: ErrorCode) -> None:
    async with network() as net, client() as sender:
        for secret in (K1, b""):
            failed = await failure(sender, Endpoint(net.url, secret=secret), search(**more))
            assert (failed.code, failed.retryable, failed.was_sent, net.asked) == (code, False, False, [])


# What is an answer.


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param({"protocol": "openclaw/a2a/v2"}, id="protocol"),
        pytest.param({"from": "my_agent_001"}, id="from"),
        pytest.param({"to": "network:agnt"}, id="to"),
        pytest.param({"intent": "venue.list"}, id="intent"),
        pytest.param({"payload": {}}, id="empty"),
        pytest.param({"payload": []}, id="array"),
        pytest.param({"payload": None}, id="null"),
        pytest.param({"payload": {"status": "error"}}, id="no error"),
        pytest.param({"payload": {"status": "error", "error": {"code": 7}}}, id="no code"),
    ],
)
def test_a_response_to_something_else_is_an_error(wrong: Any) -> None:
    ask = search()
    with pytest.raises(CallFailed) as failed:
        read_response(respond(describe_ask(ask, secret=b"", at_s=1)) | wrong, ask)
    assert (failed.value.code, failed.value.retryable) == (ErrorCode.VENUE_UNREACHABLE, False)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(as_http(b"<html>", "text/html"), ErrorCode.VENUE_UNREACHABLE, id="HTML"),
        pytest.param(as_http(b"<html>", "text/html", "404 Not Found"), ErrorCode.VENUE_UNREACHABLE, id="404"),
        pytest.param(as_http(b"", "text/html", "401 Unauthorized"), ErrorCode.UNAUTHORIZED, id="401"),
        pytest.param(as_http(b"", "text/html", "413 Too Large"), ErrorCode.PAYLOAD_TOO_LARGE, id="413"),
        pytest.param(as_http(b"{}"), ErrorCode.VENUE_UNREACHABLE, id="no envelope"),
        pytest.param(as_http(b"\xff"), ErrorCode.VENUE_UNREACHABLE, id="no UTF-8"),
        pytest.param(as_http(b'{"payload":NaN}'), ErrorCode.VENUE_UNREACHABLE, id="no JSON"),
        pytest.param(as_http(b"[" * 100_000), ErrorCode.VENUE_UNREACHABLE, id="deep"),
        pytest.param(MOVED, ErrorCode.VENUE_UNREACHABLE, id="307"),
        pytest.param(ZIPPED, ErrorCode.VENUE_UNREACHABLE, id="gzip"),
        pytest.param(as_http(b"x" * 1_048_577), ErrorCode.VENUE_UNREACHABLE, id="too large"),
    ],
)
@pytest.mark.parametrize("of_the_hub", [False, True], ids=["httpx2", "hub"])
async def test_answers_that_no_network_gives_are_not_tried_again(
    answer: bytes, code: ErrorCode, *, of_the_hub: bool
) -> None:
    http = StreamingHttp(TargetRules(allows_private=True))
    async with network(lambda _: answer) as net, HttpxTransport() as plain:
        transport = GuardedTransport(http) if of_the_hub else plain
        failed = await failure(Client(transport, MemoryBreakers(), parse=parse_strictly), net.endpoint)
        assert (failed.code, failed.retryable, len(net.asked)) == (code, False, 1)
    http.close()


async def test_an_error_is_typed() -> None:
    error = fail("slot_unavailable", retryable=False, retry_after_s=7)
    async with network(send(409, error)) as net, client() as sender:
        failed = await failure(sender, net.endpoint)
        assert (failed.code, failed.retry_after_s) == (ErrorCode.SLOT_UNAVAILABLE, 7)
        assert str(failed) == "no: slot_unavailable"
    async with network(send(418, fail("no_tea"))) as net, client() as sender:  # a word of a later protocol
        failed = await failure(sender, net.endpoint)
        assert (failed.code, failed.retryable) == ("no_tea", False)


async def test_a_stored_answer_is_said_to_be_one() -> None:
    async with network(send(200, more="Idempotent-Replay: true\r\n")) as net, client() as sender:
        assert (await sender.ask(net.endpoint, search())).is_replay


@pytest.mark.parametrize("url", ["http://example.com/a2a/v1", "ftp://x", "", "x", "http://127.0.0.1.example.com"])
async def test_a_key_goes_by_https_alone(url: str) -> None:
    async with client() as sender:
        failed = await failure(sender, Endpoint(url, key="agnt_live_test"))
        assert (failed.retryable, failed.was_sent) == (False, False)


# The hub's way.


async def test_the_hub_calls_venues_by_checked_addresses_and_reads_them_strictly() -> None:
    canary, http = Canary(), StreamingHttp(TargetRules())
    guarded = Client(GuardedTransport(http), MemoryBreakers(), parse=parse_strictly)
    for url in (
        f"https://localhost:{canary.port}/",
        f"http://127.0.0.1:{canary.port}/",
        "https://169.254.169.254/",
    ):
        failed = await failure(guarded, Endpoint(url, key="agnt_live_test"), within_s=2)
        assert (failed.code, failed.was_sent) == (ErrorCode.VENUE_UNREACHABLE, False)
    http.close()
    assert canary.close() == 0

    own = StreamingHttp(TargetRules(allows_private=True))
    trusting = Client(GuardedTransport(own), MemoryBreakers(), parse=parse_strictly)
    async with network() as net:
        assert (await trusting.ask(net.endpoint, search())).payload == {"status": "ok"}
        twin = json.dumps(respond(net.envelopes[0])).replace('"status"', '"status": 1, "status"').encode()
        net.script = [lambda _: as_http(twin)]
        assert (await failure(trusting, net.endpoint)).code == ErrorCode.VENUE_UNREACHABLE
        net.script = [send(200, lambda envelope: respond(envelope, {"a": "\ud800"}))]
        assert (await failure(trusting, net.endpoint)).code == ErrorCode.VENUE_UNREACHABLE
    own.close()
