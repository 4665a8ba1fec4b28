"""Rows of the hostile-input table that concern HTTP, sizes and time; raw sockets where a client would tidy up."""

import asyncio
import json
import re
from urllib.parse import urlsplit

import httpx
import pytest

from lab.agents import Chunker, Echo, Held, Slow, Stall, online
from lab.callers import (
    Json,
    Stream,
    bearer,
    call,
    envelope,
    get_task,
    open_stream,
    question,
    reply_text,
    rpc_path,
    web,
)
from lab.hub_process import HubProcess
from lab.waiting import eventually

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


@pytest.mark.parametrize(
    "media_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", "x"]
)
async def test_row_12_another_media_type_is_415(embedded_hub: HubProcess, media_type: str) -> None:
    async with online(embedded_hub, Echo) as agent:
        response = await post(embedded_hub, agent.handle, body_of(), Content_Type=media_type)
        assert (response.status_code, response.json()["error"]["code"]) == (415, -32005)
        assert agent.prompts == []


ACCEPTED = [
    {},
    {"Content_Type": "application/json"},
    {"Content_Type": "application/json; charset=utf-8"},
    {"Content_Type": "Application/JSON;charset=UTF-8"},
    {"Content_Type": "application/a2a+json"},
]


@pytest.mark.parametrize("headers", ACCEPTED, ids=str)
async def test_row_12_json_is_accepted_by_all_its_names(embedded_hub: HubProcess, headers: dict[str, str]) -> None:
    async with online(embedded_hub, Echo) as agent:
        response = await post(embedded_hub, agent.handle, body_of(), **headers)
        assert reply_text(response.json()["result"]) == "echo: hello"


async def test_row_13_a_body_at_the_limit_is_read_and_one_over_it_is_413(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        padded = body_of() + b" " * (MIB - len(body_of()))
        assert (await post(embedded_hub, agent.handle, padded[:MIB])).status_code == 200
        response = await post(embedded_hub, agent.handle, body_of() + b" " * MIB)
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


async def test_row_22_an_identical_message_in_flight_joins_its_task(embedded_hub: HubProcess) -> None:
    alice, params = embedded_hub.mint("alice", "session"), question("hello", "same-id")
    async with online(embedded_hub, Held) as agent, web(embedded_hub.url) as client:
        asking = asyncio.create_task(call(embedded_hub.url, agent.handle, alice, "SendMessage", params))
        await agent.heard("prompt")
        again = envelope("SendStreamingMessage", params)
        async with client.stream("POST", rpc_path(agent.handle), json=again, headers=bearer(alice)) as response:
            events = Stream(response).tasks()
            joined = await anext(events)
            agent.release.set()
            ended = [task async for task in events][-1]
        assert (await asking).json()["result"] == ended
        assert joined["id"] == ended["id"]
        assert len(agent.prompts) == 1


async def test_row_22_an_identical_message_later_is_a_new_task(embedded_hub: HubProcess) -> None:
    alice, params = embedded_hub.mint("alice", "session"), question("hello", "same-id")
    async with online(embedded_hub, Echo) as agent:
        answers = [
            (await call(embedded_hub.url, agent.handle, alice, "SendMessage", params)).json() for _ in range(2)
        ]
        assert answers[0]["result"]["id"] != answers[1]["result"]["id"]
        assert len(agent.prompts) == 2


async def test_row_22_the_same_id_over_another_body_is_a_new_task(embedded_hub: HubProcess) -> None:
    alice = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, Slow, delay_s=1.0) as agent:
        texts = ["one", "two"]
        asks = [
            call(embedded_hub.url, agent.handle, alice, "SendMessage", question(text, "same-id")) for text in texts
        ]
        tasks = [answer.json()["result"] for answer in await asyncio.gather(*asks)]
        assert [reply_text(task) for task in tasks] == ["echo: one", "echo: two"]
        assert tasks[0]["id"] != tasks[1]["id"]


async def test_row_22_the_same_message_of_another_caller_is_not_joined(embedded_hub: HubProcess) -> None:
    params = question("hello", "same-id")
    async with online(embedded_hub, Held) as agent:
        alice, bob = (embedded_hub.mint(login, "session") for login in ("alice", "bob"))
        asking = asyncio.create_task(call(embedded_hub.url, agent.handle, alice, "SendMessage", params))
        await agent.heard("prompt")
        refused = await call(embedded_hub.url, agent.handle, bob, "SendMessage", params)
        agent.release.set()
        answers = [(await asking).json(), refused.json()]
        assert [one["result"]["status"]["state"] for one in answers] == ["COMPLETED", "FAILED"]


async def test_row_25_a_caller_who_drops_the_stream_does_not_stop_the_task(embedded_hub: HubProcess) -> None:
    alice = embedded_hub.mint("alice", "session")
    async with online(embedded_hub, Stall) as agent:
        async with open_stream(embedded_hub.url, agent.handle, "hello", alice) as answer:
            task_id = (await anext(answer.tasks()))["id"]
            prompt = await agent.heard("prompt")
        await agent.reply(prompt["chatId"], "the answer")

        async def finished() -> Json | None:
            task: Json = (await get_task(embedded_hub.url, agent.handle, task_id, alice))["result"]
            return task if task["status"]["state"] != "WORKING" else None

        assert reply_text(await eventually(finished, "the task completes")) == "the answer"


@pytest.mark.parametrize(
    "path", ["/api/v1/agents", "/api/v1/peers/probe", "/api/channel/event", "/", rpc_path("owner/none")]
)
async def test_a_header_of_one_value_that_comes_with_two_is_400(embedded_hub: HubProcess, path: str) -> None:
    mine, theirs = (embedded_hub.mint(login, "session") for login in ("alice", "bob"))
    async with online(embedded_hub, Echo) as agent:
        target = rpc_path(agent.handle) if "none" in path else path
        lines = [f"POST {target} HTTP/1.1", "Host: hub", "Content-Type: application/json", "Connection: close"]
        lines += [f"authorization: Bearer {mine}", f"AUTHORIZATION: Bearer {theirs}"]
        lines += ["Content-Length: 2", "", "{}"]
        answer = await raw(embedded_hub.url, "\r\n".join(lines).encode())
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    assert b"authorization came with two values" in answer


@pytest.mark.parametrize(("path", "kind"), [("/channel", "channel"), ("/cli", "session")])
async def test_an_upgrade_with_two_tokens_is_400(embedded_hub: HubProcess, path: str, kind: str) -> None:
    mine, theirs = (embedded_hub.mint(login, kind) for login in ("alice", "bob"))
    lines = [f"GET {path} HTTP/1.1", "Host: hub", "Connection: Upgrade", "Upgrade: websocket"]
    lines += ["Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {'A' * 22}=="]
    lines += [f"authorization: Bearer {mine}", f"AUTHORIZATION: Bearer {theirs}", "", ""]
    answer = await raw(embedded_hub.url, "\r\n".join(lines).encode())
    assert answer.startswith(b"HTTP/1.1 400 "), answer
    assert b"authorization came with two values" in answer


@pytest.mark.parametrize("verb", ["PUT", "PATCH", "DELETE"])
async def test_another_http_method_is_405(embedded_hub: HubProcess, verb: str) -> None:
    async with online(embedded_hub, Echo) as agent, web(embedded_hub.url) as client:
        token = bearer(embedded_hub.mint("alice", "session"))
        response = await client.request(verb, rpc_path(agent.handle), headers=token)
        assert response.status_code == 405
        assert "POST" in response.headers["allow"]


@pytest.mark.parametrize("verb", ["BREW", "PROPFIND", "FOO-BAR"])
async def test_an_http_method_that_is_none_is_405_with_allow(embedded_hub: HubProcess, verb: str) -> None:
    async with online(embedded_hub, Echo) as agent:
        for path in ("/", "/api/v1/me", "/api/channel/event", rpc_path(agent.handle), "/readyz"):
            answer = await raw(embedded_hub.url, f"{verb} {path} HTTP/1.1\r\nHost: hub\r\n\r\n".encode())
            assert answer.startswith(b"HTTP/1.1 405 "), (path, answer)
            assert b"\r\nallow: " in answer.lower(), (path, answer)


@pytest.mark.parametrize("verb", ["POST", "PUT", "PATCH", "DELETE"])
async def test_the_card_is_only_ever_read(embedded_hub: HubProcess, verb: str) -> None:
    async with online(embedded_hub, Echo) as agent, web(embedded_hub.url) as client:
        token = bearer(embedded_hub.mint("alice", "session"))
        response = await client.request(verb, f"{rpc_path(agent.handle)}/agent-card.json", headers=token)
        assert response.status_code == 405


async def test_a_post_with_a_slash_at_its_end_is_served_and_never_redirected(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Echo) as agent:
        response = await post(embedded_hub, f"{agent.handle}/", body_of())
        assert reply_text(response.json()["result"]) == "echo: hello"


@pytest.mark.parametrize(
    "junk",
    [
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"\x00" * 64,
        b"POST / HTTP/9.9\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\n",
    ],
)
async def test_bytes_that_are_no_http_do_not_disturb_the_hub(embedded_hub: HubProcess, junk: bytes) -> None:
    answer = await raw(embedded_hub.url, junk, b"\r\n\r\n")
    assert not answer or answer.startswith(b"HTTP/1.1 4")
    async with web(embedded_hub.url) as client:
        assert (await client.get("/livez")).status_code == 200


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


@pytest.mark.parametrize("handle", ODD_PATHS, ids=lambda handle: handle[:12])
async def test_an_odd_handle_is_404_and_no_error_of_ours(embedded_hub: HubProcess, handle: str) -> None:
    async with web(embedded_hub.url) as client:
        token = bearer(embedded_hub.mint("alice", "session"))
        for path in (rpc_path(handle), f"{rpc_path(handle)}/agent-card.json"):
            assert (await client.post(path, content=body_of(), headers=token)).status_code in (404, 405)
            assert (await client.get(path)).status_code in (404, 405)


async def test_odd_headers_do_not_disturb_the_hub(embedded_hub: HubProcess) -> None:
    async with online(embedded_hub, Chunker, pieces=["fine"]) as agent:
        token = embedded_hub.mint("alice", "session")
        body = body_of()
        for line in [
            "Authorization: Bearer \xff\xfe",
            "Cookie: cw_session=\xff",
            "Content-Type: \xff",
            "X: " + "y" * 9000,
        ]:
            lines = [line, f"Content-Length: {len(body)}", "Connection: close"]
            answer = await raw(embedded_hub.url, head(agent.handle, token, *lines) + body)
            assert b" 500 " not in answer.split(b"\r\n")[0]
        assert (await post(embedded_hub, agent.handle, body)).status_code == 200
