"""Rows of the hostile-input table that concern HTTP, sizes and time; raw sockets where a client would tidy up."""

import asyncio
import json
import re
from urllib.parse import urlsplit

import httpx
import pytest

from lab.agents import Chunker, Echo, online
from lab.callers import (
    bearer,
    envelope,
    question,
    reply_text,
    rpc_path,
    web,
)
from lab.hub_process import HubProcess

MIB = 1024 * 1024
RAW_WITHIN_S = 10


async def raw(url: str, *parts: bytes) -> bytes:
    """Write these bytes to the hub and read its whole answer, or what there is when it hangs up."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port)
    try:
        for part in parts:
            writer.write(part)
            await writer.drain()
        async with asyncio.timeout(RAW_WITHIN_S):
            head = await reader.readuntil(b"\r\n\r\n")
            length = re.search(rb"\r\ncontent-length: (\d+)", head.lower())
            return head + await reader.readexactly(int(length[1]) if length else 0)
    except asyncio.IncompleteReadError as cut_off:
        return cut_off.partial
    except ConnectionError:
        return b""
    finally:
        writer.close()
        await asyncio.gather(writer.wait_closed(), return_exceptions=True)


def head(handle: str, token: str, *lines: str) -> bytes:
    start = [f"POST {rpc_path(handle)} HTTP/1.1", "Host: hub", f"Authorization: Bearer {token}", *lines, "", ""]
    return "\r\n".join(start).encode("latin-1")


async def post(hub: HubProcess, handle: str, content: bytes, **headers: str) -> httpx.Response:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    async with web(hub.url) as client:
        sent = bearer(hub.mint("alice", "session")) | named
        return await client.post(rpc_path(handle), content=content, headers=sent)


def body_of(text: str = "hello") -> bytes:
    return json.dumps(envelope("SendMessage", question(text))).encode()


async def test_row_13_a_body_at_the_limit_is_read_and_one_over_it_is_413(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        assert (await post(embedded_hub, agent.handle, body_of().ljust(MIB))).status_code == 200
        response = await post(embedded_hub, agent.handle, body_of().ljust(MIB + 1))
        assert (response.status_code, response.json()["error"]["code"]) == (413, -32600)


async def test_row_13_a_length_over_the_limit_is_413_before_the_body_comes(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        token = embedded_hub.mint("alice", "session")
        answer = await raw(embedded_hub.url, head(agent.handle, token, f"Content-Length: {100 * MIB}"))
    assert answer.startswith(b"HTTP/1.1 413 ")
    assert b"-32600" in answer


async def test_row_13_a_chunked_body_is_cut_off_at_the_limit(embedded_hub: HubProcess) -> None:
    piece = b"10000\r\n" + b" " * 0x10000 + b"\r\n"
    async with online(embedded_hub, Echo) as agent:
        token = embedded_hub.mint("alice", "session")
        answer = await raw(
            embedded_hub.url, head(agent.handle, token, "Transfer-Encoding: chunked"), *[piece] * 17
        )
    assert answer.startswith(b"HTTP/1.1 413 ")


async def test_a_header_of_one_value_that_comes_with_two_is_400(embedded_hub: HubProcess) -> None:
    mine, theirs = (embedded_hub.mint(login, "session") for login in ("alice", "bob"))
    async with online(embedded_hub, Echo) as agent:
        paths = ("/api/v1/agents", "/api/v1/peers/probe", "/api/channel/event", "/", rpc_path(agent.handle))
        for path in paths:
            lines = [f"POST {path} HTTP/1.1", "Host: hub", "Content-Type: application/json", "Connection: close"]
            lines += [f"authorization: Bearer {mine}", f"AUTHORIZATION: Bearer {theirs}"]
            lines += ["Content-Length: 2", "", "{}"]
            answer = await raw(embedded_hub.url, "\r\n".join(lines).encode())
            assert answer.startswith(b"HTTP/1.1 400 "), (path, answer)
            assert b"authorization came with two values" in answer, path


@pytest.mark.parametrize(("path", "kind"), [("/channel", "channel"), ("/cli", "session")])
async def test_an_upgrade_with_two_tokens_is_400(embedded_hub: HubProcess, path: str, kind: str) -> None:
    mine, theirs = (embedded_hub.mint(login, kind) for login in ("alice", "bob"))
    lines = [f"GET {path} HTTP/1.1", "Host: hub", "Connection: Upgrade", "Upgrade: websocket"]
    lines += ["Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {'A' * 22}=="]
    lines += [f"authorization: Bearer {mine}", f"AUTHORIZATION: Bearer {theirs}", "", ""]
    answer = await raw(embedded_hub.url, "\r\n".join(lines).encode())
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    assert b"authorization came with two values" in answer


async def test_another_http_method_is_405_with_allow(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent, web(embedded_hub.url) as client:
        token, path = bearer(embedded_hub.mint("alice", "session")), rpc_path(agent.handle)
        for verb in ("PUT", "PATCH", "DELETE"):
            answer = await client.request(verb, path, headers=token)
            assert (answer.status_code, "POST" in answer.headers["allow"]) == (405, True), verb
        for verb in ("POST", "PUT", "PATCH", "DELETE"):
            assert (await client.request(verb, f"{path}/agent-card.json", headers=token)).status_code == 405, verb
        for verb in ("BREW", "FOO-BAR"):  # methods that are none
            for one in ("/", "/api/v1/me", "/api/channel/event", path, "/readyz"):
                answered = await raw(embedded_hub.url, f"{verb} {one} HTTP/1.1\r\nHost: hub\r\n\r\n".encode())
                assert answered.startswith(b"HTTP/1.1 405 "), (verb, one, answered)
                assert b"\r\nallow: " in answered.lower(), (verb, one, answered)


async def test_a_post_with_a_slash_at_its_end_is_served_and_never_redirected(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        response = await post(embedded_hub, f"{agent.handle}/", body_of())
        assert reply_text(response.json()["result"]) == "echo: hello"


JUNK = [
    b"\x16\x03\x01\x02\x00\x01\x00",
    b"GET\r\n\r\n",
    b"\x00" * 64,
    b"POST / HTTP/9.9\r\n\r\n",
    b"PRI * HTTP/2.0\r\n\r\n",
]
ODD_PATHS = [
    "o/../../../etc/passwd",
    "%00/x",
    "owner/%2e%2e",
    "o/%ff",
    "a/b/c",
    "//",
    "owner/" + "x" * 5000,
    "ö/ü",
]


async def test_bytes_that_are_no_http_and_odd_handles_do_not_disturb_the_hub(embedded_hub: HubProcess) -> None:
    async with web(embedded_hub.url) as client:
        for junk in JUNK:
            answer = await raw(embedded_hub.url, junk, b"\r\n\r\n")
            assert not answer or answer.startswith(b"HTTP/1.1 4"), junk
            assert (await client.get("/livez")).status_code == 200, junk
        token = bearer(embedded_hub.mint("alice", "session"))
        for path in [f"{rpc_path(odd)}{below}" for odd in ODD_PATHS for below in ("", "/agent-card.json")]:
            assert (await client.post(path, content=body_of(), headers=token)).status_code in (404, 405), path
            assert (await client.get(path)).status_code in (404, 405), path


async def test_odd_headers_do_not_disturb_the_hub(embedded_hub: HubProcess, subtests: pytest.Subtests) -> None:
    async with online(embedded_hub, Chunker, pieces=["fine"]) as agent:
        token = embedded_hub.mint("alice", "session")
        body = body_of()
        for line in [
            "Authorization: Bearer \xff\xfe",
            "Cookie: cw_session=\xff",
            "Content-Type: \xff",
            "X: " + "y" * 9000,
        ]:
            with subtests.test(line=line):
                lines = [line, f"Content-Length: {len(body)}", "Connection: close"]
                answer = await raw(embedded_hub.url, head(agent.handle, token, *lines) + body)
                assert b" 500 " not in answer.split(b"\r\n")[0]
        assert (await post(embedded_hub, agent.handle, body)).status_code == 200
