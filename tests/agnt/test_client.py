"""The client against a network on a real port: what it sends, what is an answer, and when it tries again."""

import asyncio
import gzip
import json
import time
from pathlib import Path
from typing import Any

import pytest

from agnt.breaker import COOLDOWN_S
from agnt.client import Answer, Ask, CallFailed, Client, Endpoint, MemoryBreakers, describe_ask, read_response
from agnt.client.httpx_transport import HttpxTransport
from agnt.errors import ErrorCode
from agnt.guarded_transport import GuardedTransport, parse_strictly
from agnt.signing import SigningKeys, canonical_json, verify_body
from kit.safe_http import Rules, StreamingHttp
from lab.receivers import Canary, talking
from tests.agnt.lookalike import K1, OK, Clock, Network, client, fail, network, respond, search, send
from tests.remote.servers import as_http

MOVED = as_http(b"", status="307 Moved", more="Location: /\r\n")
ZIPPED = as_http(gzip.compress(b"{}"), more="Content-Encoding: gzip\r\n")
VECTORS: list[dict[str, Any]] = json.loads((Path(__file__).parent / "vectors.json").read_text())


async def failure(sender: Client, endpoint: Endpoint, ask: Ask | None = None, **options: Any) -> CallFailed:
    with pytest.raises(CallFailed) as failed:
        await sender.ask(endpoint, ask or search(), **options)
    return failed.value


# What is sent.


@pytest.mark.parametrize("vector", VECTORS, ids=lambda vector: vector["name"])
async def test_vectors_arrive_signed(vector: dict[str, Any]) -> None:
    ask = Ask(sender=vector["sender"], intent="booking.search", payload=json.loads(vector["payload"]))
    async with network() as net, client(Clock(vector["ts"])) as sender:
        await sender.ask(Endpoint(net.url, secret=bytes.fromhex(vector["key"])), ask)
        [envelope] = net.envelopes
    assert envelope["payload"].pop("_sig") == vector["sig"]
    assert canonical_json(envelope["payload"]).decode() == vector["canonical"]


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
    assert (asked.headers["authorization"], asked.headers["content-type"]) == (
        "Bearer agnt_live_test",
        "application/json",
    )
    header = asked.headers["x-a2a-envelope-signature"]
    verify_body(header, asked.body, keys=SigningKeys(K1), now_s=Clock().now_s)


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
@pytest.mark.parametrize("secret", [K1, b""], ids=["signed", "unsigned"])
async def test_what_cannot_be_an_envelope_is_not_sent(more: Any, code: ErrorCode, secret: bytes) -> None:
    async with network() as net, client() as sender:
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
async def test_a_response_to_something_else_is_an_error(wrong: Any) -> None:
    async with network(send(200, lambda envelope: respond(envelope) | wrong)) as net, client() as sender:
        failed = await failure(sender, net.endpoint)
        assert (failed.code, failed.retryable, failed.was_sent) == (ErrorCode.VENUE_UNREACHABLE, False, True)
        assert len(net.asked) == 1
        in_a_reply = respond(net.envelopes[0]) | wrong
    with pytest.raises(CallFailed) as again:  # the same in the reply of a venue's agent
        read_response(in_a_reply, search())
    assert again.value.code == ErrorCode.VENUE_UNREACHABLE


@pytest.mark.parametrize(
    "body",
    [b"{}", b"[]", b"null", b"", b"{", b"\xff", b'{"payload":NaN}', b"[" * 100_000, b'{"a":1e999}'],
    ids=lambda body: repr(body[:12]),
)
async def test_what_is_no_envelope_is_an_error(body: bytes) -> None:
    async with network(lambda _: as_http(body)) as net, client() as sender:
        failed = await failure(sender, net.endpoint)
        assert (failed.code, failed.retryable) == (ErrorCode.VENUE_UNREACHABLE, False)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(as_http(b"<html>", "text/html"), ErrorCode.VENUE_UNREACHABLE, id="HTML"),
        pytest.param(as_http(b"<html>", "text/html", "404 Not Found"), ErrorCode.VENUE_UNREACHABLE, id="404"),
        pytest.param(as_http(b"", "text/html", "401 Unauthorized"), ErrorCode.UNAUTHORIZED, id="401"),
        pytest.param(as_http(b"", "text/html", "413 Too Large"), ErrorCode.PAYLOAD_TOO_LARGE, id="413"),
        pytest.param(MOVED, ErrorCode.VENUE_UNREACHABLE, id="307"),
        pytest.param(ZIPPED, ErrorCode.VENUE_UNREACHABLE, id="gzip"),
        pytest.param(as_http(b"x" * 1_048_577), ErrorCode.VENUE_UNREACHABLE, id="too large"),
    ],
)
@pytest.mark.parametrize("of_the_hub", [False, True], ids=["httpx2", "hub"])
async def test_answers_that_no_network_gives_are_not_tried_again(
    answer: bytes, code: ErrorCode, *, of_the_hub: bool
) -> None:
    http = StreamingHttp(Rules(allows_private=True))
    async with network(lambda _: answer) as net, HttpxTransport() as plain:
        transport = GuardedTransport(http) if of_the_hub else plain
        failed = await failure(Client(transport, MemoryBreakers(), parse=parse_strictly), net.endpoint)
        assert (failed.code, failed.retryable, len(net.asked)) == (code, False, 1)
    http.close()


async def test_an_error_is_typed() -> None:
    error = fail("slot_unavailable", retryable=False, retry_after_s=7)
    async with network(send(409, error)) as net, client() as sender:
        failed = await failure(sender, net.endpoint)
        assert (failed.code, str(failed), failed.retry_after_s) == (
            ErrorCode.SLOT_UNAVAILABLE,
            "no: slot_unavailable",
            7,
        )
    async with network(send(418, fail("no_tea"))) as net, client() as sender:  # a word of a later protocol
        failed = await failure(sender, net.endpoint)
        assert (failed.code, failed.retryable) == ("no_tea", False)


async def test_a_stored_answer_is_said_to_be_one() -> None:
    async with network(send(200, more="Idempotent-Replay: true\r\n")) as net, client() as sender:
        assert (await sender.ask(net.endpoint, search())).is_replay


# Tries.


async def test_an_error_that_may_pass_is_tried_again_with_the_same_bytes() -> None:
    proxy = as_http(b"<html>", "text/html", "502 Bad Gateway")
    script = (send(500, fail("internal_error")), lambda _: proxy, send(409, fail("in_progress")), OK)
    async with network(*script) as net, client() as sender:
        assert (await sender.ask(net.endpoint, search())).payload == {"status": "ok"}
        assert len(net.asked) == 4
        assert len({asked.body for asked in net.asked}) == 1
        assert len({asked.headers["x-a2a-envelope-signature"] for asked in net.asked}) == 1


async def test_the_other_side_says_when_to_come_back() -> None:
    soon, late = send(429, fail("rate_limited"), "Retry-After: 1\r\n"), send(503, fail("busy", retry_after_s=31))
    async with network(soon, OK) as net, client() as sender:
        began_at = time.monotonic()
        await sender.ask(net.endpoint, search())
        assert time.monotonic() - began_at >= 1
    for told in (late, send(429, fail("rate_limited"), "Retry-After: 86400\r\n")):
        async with network(told) as net, client() as sender:  # at once, and not when the time is up
            failed = await failure(sender, net.endpoint, within_s=30)
            assert (failed.retry_after_s >= 31, len(net.asked)) == (True, 1)


async def test_the_last_error_is_raised_when_the_time_is_up() -> None:
    async with network(send(500, fail("internal_error"))) as net, client(first_pause_s=0.4) as sender:
        failed = await failure(sender, net.endpoint, within_s=2)
        assert (failed.code, failed.retryable) == (ErrorCode.INTERNAL_ERROR, True)
        assert 2 <= len(net.asked) <= 3


async def test_no_answer_in_time_is_an_error() -> None:
    def read_on(connection: Any) -> None:
        while connection.recv(65_536):
            pass

    with talking(read_on) as port:
        async with client() as sender:
            failed = await failure(sender, Endpoint(f"http://127.0.0.1:{port}"), within_s=0.3)
            assert (failed.code, failed.retryable, failed.was_sent) == (ErrorCode.TTL_EXCEEDED, True, True)


async def test_an_answer_byte_by_byte_ends_in_time() -> None:
    def drip(connection: Any) -> None:
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n")
        while True:
            connection.sendall(b" ")
            time.sleep(0.05)

    with talking(drip) as port:
        async with client() as sender:
            failed = await failure(sender, Endpoint(f"http://127.0.0.1:{port}"), search(ttl_ms=1), within_s=0.4)
            assert failed.code == ErrorCode.TTL_EXCEEDED


async def test_an_endless_answer_is_cut() -> None:
    def pour(connection: Any) -> None:
        connection.recv(65_536)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n\r\n")
        while True:
            connection.sendall(b" " * 65_536)

    with talking(pour) as port:
        async with client() as sender:
            failed = await failure(sender, Endpoint(f"http://127.0.0.1:{port}"))
            assert (failed.code, failed.retryable, "over" in str(failed)) == (
                ErrorCode.VENUE_UNREACHABLE,
                False,
                True,
            )


async def test_of_two_answers_the_second_is_not_that_to_the_next_ask() -> None:
    def twice(connection: Any) -> None:
        while True:  # it keeps the connection
            asked = b""
            while not asked.endswith(b"}"):
                asked += connection.recv(65_536)
            envelope = json.loads(asked.partition(b"\r\n\r\n")[2])
            both = (respond(envelope, {"number": number, "for": envelope["timestamp"]}) for number in (1, 2))
            connection.sendall(b"".join(as_http(json.dumps(one).encode()) for one in both))

    with talking(twice) as port:
        async with client() as sender:
            endpoint = Endpoint(f"http://127.0.0.1:{port}")
            for _ in range(2):
                ask = search()
                assert (await sender.ask(endpoint, ask)).payload == {"number": 1, "for": ask.timestamp}


async def test_a_connection_that_is_refused_or_lost() -> None:
    def hang_up(connection: Any) -> None:
        connection.recv(65_536)

    with talking(hang_up) as port:
        async with client(first_pause_s=60) as sender:
            failed = await failure(sender, Endpoint(f"http://127.0.0.1:{port}"))
            assert (failed.code, failed.was_sent) == (ErrorCode.VENUE_UNREACHABLE, True)
    async with client(first_pause_s=60) as sender:
        failed = await failure(sender, Endpoint(f"http://127.0.0.1:{port}"))
        assert (failed.code, failed.retryable, failed.was_sent) == (ErrorCode.VENUE_UNREACHABLE, True, False)


async def test_once_sent_always_sent() -> None:
    """The last try was refused by the breaker; an earlier one may have been read."""
    async with network(send(500, fail("internal_error"))) as net, client() as sender:
        failed = await failure(sender, net.endpoint)
        assert (failed.code, failed.was_sent, len(net.asked)) == (ErrorCode.CIRCUIT_OPEN, True, 5)


@pytest.mark.parametrize("url", ["http://example.com/a2a/v1", "ftp://x", "", "x", "http://127.0.0.1.example.com"])
async def test_a_key_goes_by_https_alone(url: str) -> None:
    async with client() as sender:
        failed = await failure(sender, Endpoint(url, key="agnt_live_test"))
        assert (failed.retryable, failed.was_sent) == (False, False)


# Breakers.


async def fail_often(sender: Client, net: Network, *venues: str) -> None:
    for venue in venues:
        await failure(sender, net.endpoint, search(to=venue))


async def test_a_venue_that_failed_five_times_is_left_alone_for_five_minutes() -> None:
    clock = Clock()
    async with network(send(503, fail("busy", retry_after_s=60))) as net, client(clock) as sender:
        await fail_often(sender, net, *["a"] * 5)
        failed = await failure(sender, net.endpoint, search(to="a"))
        assert (failed.code, failed.retryable, failed.retry_after_s) == (ErrorCode.CIRCUIT_OPEN, True, COOLDOWN_S)
        assert (failed.was_sent, len(net.asked)) == (False, 5)

        net.script = [OK]
        await sender.ask(net.endpoint, search(to="b"))  # another venue
        clock.now_s += COOLDOWN_S
        tries = [sender.ask(net.endpoint, search(to="a"), within_s=10) for _ in range(10)]
        results = await asyncio.gather(*tries, return_exceptions=True)
        refused = [one for one in results if isinstance(one, CallFailed) and one.code == ErrorCode.CIRCUIT_OPEN]
        assert (len(refused), len(net.asked)) == (9, 7)  # one probe
        await sender.ask(net.endpoint, search(to="a"))


async def test_failures_of_two_venues_stop_all_calls() -> None:
    async with network(send(503, fail("busy", retry_after_s=60))) as net, client() as sender:
        await fail_often(sender, net, "a", "a", "a", "a", "b")
        assert (await failure(sender, net.endpoint, search(to="c"))).code == ErrorCode.CIRCUIT_OPEN
        assert len(net.asked) == 5


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(send(404, fail("venue_not_found")), id="404"),
        pytest.param(send(429, fail("rate_limited", retry_after_s=60)), id="429"),
        pytest.param(send(503, fail("circuit_open", retry_after_s=60)), id="the other side's breaker"),
        pytest.param(lambda _: as_http(b"<html>", "text/html", "404 Not Found"), id="HTML 404"),
    ],
)
async def test_what_is_no_failure_opens_nothing(answer: Any) -> None:
    async with network(answer) as net, client() as sender:
        await fail_often(sender, net, *["a"] * 6, *["b"] * 6)
        assert len(net.asked) == 12


async def test_an_unsound_answer_is_a_failure() -> None:
    async with network(lambda _: as_http(b"{}")) as net, client() as sender:
        await fail_often(sender, net, *["a"] * 6)
        assert len(net.asked) == 5


# The hub's way.


async def test_the_hub_calls_venues_by_checked_addresses_and_reads_them_strictly() -> None:
    canary, http = Canary(), StreamingHttp(Rules())
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

    own = StreamingHttp(Rules(allows_private=True))
    trusting = Client(GuardedTransport(own), MemoryBreakers(), parse=parse_strictly)
    async with network() as net:
        assert (await trusting.ask(net.endpoint, search())).payload == {"status": "ok"}
        twin = json.dumps(respond(net.envelopes[0])).replace('"status"', '"status": 1, "status"').encode()
        net.script = [lambda _: as_http(twin)]
        assert (await failure(trusting, net.endpoint)).code == ErrorCode.VENUE_UNREACHABLE
        net.script = [send(200, lambda envelope: respond(envelope, {"a": "\ud800"}))]
        assert (await failure(trusting, net.endpoint)).code == ErrorCode.VENUE_UNREACHABLE
    own.close()


def test_an_envelope_for_a_venues_agent_is_signed_with_its_secret() -> None:
    ask = search(to="la-brisa")
    envelope = describe_ask(ask, secret=K1, at_s=1)
    assert (envelope["payload"]["_from"], envelope["payload"]["_ts"], len(envelope)) == ("my_agent_001", 1, 8)
    answer = read_response(respond(envelope, {"table": 4}), ask)
    assert answer.payload == {"table": 4}
