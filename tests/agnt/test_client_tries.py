"""The client when a network fails, is late or is not there: tries, and breakers that stop them."""

import asyncio
import json
import time
from typing import Any

import pytest

from clawbridge.agnt import CallFailed, Client, Endpoint
from clawbridge.agnt.breakers import COOLDOWN_S
from clawbridge.agnt.fields import ErrorCode
from lab.receivers import talking
from tests.agnt.lookalike import OK, Clock, Network, client, fail, failure, network, respond, search, send
from tests.remote.servers import as_http


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
            assert (failed.code, failed.retryable) == (ErrorCode.VENUE_UNREACHABLE, False)
            assert "over" in str(failed)


async def test_of_two_answers_the_second_is_not_that_to_the_next_ask() -> None:
    def twice(connection: Any) -> None:
        asked = b""
        while piece := connection.recv(65_536):  # it keeps the connection
            asked += piece
            if not asked.endswith(b"}"):
                continue
            envelope = json.loads(asked.partition(b"\r\n\r\n")[2])
            asked = b""
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


async def test_two_venues_that_do_not_answer_stop_all_calls_and_two_that_fail_do_not() -> None:
    async with network(send(503, fail("busy", retry_after_s=60))) as net, client() as sender:
        await fail_often(sender, net, "a", "a", "a", "a", "b", "b")
        assert (await failure(sender, net.endpoint, search(to="c"))).code == "busy"
    async with network(lambda _: b"") as net, client(first_pause_s=60) as sender:
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
