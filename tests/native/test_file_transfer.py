"""Files through a running hub: real agents, real bytes, and bodies that are too long, too slow or without a
user.
"""

import asyncio
import hashlib
import os
import re
import socket
from contextlib import AsyncExitStack, suppress
from urllib.parse import urlsplit

import httpx
import pytest

from kit.asgi import ClientLeft, HttpRequest, Message, RequestRefused
from lab.callers import bearer, web
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess

MIB = 1024 * 1024
CAP = 10 * MIB
START = b'--b\r\nContent-Disposition: form-data; name="file"; filename="x.bin"\r\n\r\n'
END = b"\r\n--b--\r\n"
WITHIN_S = 15


def of(session_id: str | None) -> str:
    return f"/api/v1/sessions/{session_id}/files"


async def upload(client: httpx.AsyncClient, token: str, session_id: str | None, data: bytes) -> httpx.Response:
    form = {"file": ("x.bin", data, "application/x-raw")}
    return await client.post(of(session_id), files=form, headers=bearer(token))


async def hand_out(client: httpx.AsyncClient, agent: ChannelAgent, data: bytes) -> httpx.Response:
    form = {"file": ("Größe.bin", data, "application/x-raw")}
    fields = {"sessionId": str(agent.session_id)}
    return await client.post("/api/channel/files", data=fields, files=form, headers=bearer(agent.token))


def head(path: str, token: str, *lines: str) -> bytes:
    type_ = "Content-Type: multipart/form-data; boundary=b"
    start = [f"POST {path} HTTP/1.1", "Host: 127.0.0.1", f"Authorization: Bearer {token}", type_, *lines, "", ""]
    return "\r\n".join(start).encode()


async def answered(reader: asyncio.StreamReader) -> tuple[int, bytes]:
    """The status and body of the next answer."""
    async with asyncio.timeout(WITHIN_S):
        start = await reader.readuntil(b"\r\n\r\n")
        length = re.search(rb"content-length: (\d+)", start.lower())
        assert length, start
        return int(start.split()[1]), await reader.readexactly(int(length[1]))


async def dial(hub: HubProcess) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    where = urlsplit(hub.url)
    return await asyncio.open_connection(where.hostname, where.port)


async def test_an_agent_and_its_owner_pass_files_to_and_fro(hub: HubProcess) -> None:
    owner, data = hub.mint("owner", "session"), os.urandom(3 * MIB)
    async with ChannelAgent(hub.url, hub.mint("owner", "channel")) as agent, web(hub.url) as client:
        given = (await upload(client, owner, agent.session_id, data)).json()
        fetched = await client.get(
            f"/api/channel/files/{given['id']}?sessionId={agent.session_id}", headers=bearer(agent.token)
        )
        assert fetched.content == data
        assert fetched.headers["x-clawborrator-file-name"] == "x.bin"
        assert fetched.headers["x-clawborrator-file-mime"] == "application/x-raw"
        assert fetched.headers["x-clawborrator-file-size"] == str(len(data))
        out = (await hand_out(client, agent, data)).json()
        assert (out["filename"], out["sessionId"]) == ("Größe.bin", agent.session_id)
        assert out["sha256"] == hashlib.sha256(data).hexdigest() == given["sha256"]
        content = await client.get(f"/api/v1/files/{out['id']}/content", headers=bearer(owner))
        assert content.content == data
        listed = (await client.get(of(agent.session_id), headers=bearer(owner))).json()
        assert [item["id"] for item in listed["items"]] == [out["id"], given["id"]]


async def test_a_chunked_upload_is_cut_off_at_the_bound(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with ChannelAgent(hub.url, hub.mint("owner", "channel")) as agent:
        reader, writer = await dial(hub)
        writer.write(head(of(agent.session_id), hub.mint("owner", "session"), "Transfer-Encoding: chunked"))
        for piece in (START, *[bytes(MIB)] * 10, bytes(60 * 1024), bytes(8 * 1024)):  # the last one is too much
            writer.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            await writer.drain()
        status, body = await answered(reader)
        assert status == 413
        assert b"payload_too_large" in body
        async with asyncio.timeout(WITHIN_S):
            assert await reader.read() == b"", "the connection ends: the rest is not read"
        writer.close()


async def test_other_bodies_keep_their_bound(embedded_hub: HubProcess) -> None:
    owner = embedded_hub.mint("owner", "session")
    async with web(embedded_hub.url) as client:
        for path in ("/api/v1/agents", f"{of('x' * 36)}", "/api/channel/event"):
            answer = await client.post(path, content=bytes(MIB + 1), headers=bearer(owner))
            assert (answer.status_code, answer.json()["error"]) == (413, "payload_too_large")


async def test_an_upload_without_a_user_is_refused_before_it_comes(embedded_hub: HubProcess) -> None:
    async with ChannelAgent(embedded_hub.url, embedded_hub.mint("owner", "channel")) as agent:
        for path in (of(agent.session_id), "/api/channel/files"):
            reader, writer = await dial(embedded_hub)
            writer.write(head(path, "cw_sess_" + "0" * 32, f"Content-Length: {CAP}"))
            status, body = await answered(reader)
            assert status == 401
            assert b"unauthorized" in body
            writer.close()


async def test_slow_uploads_block_no_others_and_one_user_has_four(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    owner = hub.mint("owner", "session")
    async with ChannelAgent(hub.url, hub.mint("owner", "channel")) as agent, web(hub.url) as client:
        slow = [await dial(hub) for _ in range(4)]
        length = f"Content-Length: {len(START) + 4 + len(END)}"
        for _, writer in slow:
            writer.write(head(of(agent.session_id), owner, length, "Expect: 100-continue"))
        for reader, writer in slow:
            async with asyncio.timeout(WITHIN_S):  # said when the hub begins to read the body
                assert b"100 Continue" in await reader.readuntil(b"\r\n\r\n")
            writer.write(START)
        refused = await upload(client, owner, agent.session_id, b"fifth")
        assert (refused.status_code, refused.json()["error"]) == (429, "rate_limited")
        assert (await client.get("/api/v1/me", headers=bearer(hub.mint("alice", "session")))).status_code == 200
        for reader, writer in slow:
            writer.write(b"slow" + END)
            assert (await answered(reader))[0] == 201
            writer.close()
        assert (await upload(client, owner, agent.session_id, b"fifth")).status_code == 201


async def test_an_upload_that_breaks_off_leaves_nothing_and_its_seat(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    owner = hub.mint("owner", "session")
    async with ChannelAgent(hub.url, hub.mint("owner", "channel")) as agent, web(hub.url) as client:
        for _ in range(5):
            _, writer = await dial(hub)
            writer.write(head(of(agent.session_id), owner, f"Content-Length: {CAP}") + START)
            await writer.drain()
            writer.close()
            await writer.wait_closed()
        async with asyncio.timeout(WITHIN_S):
            while (await upload(client, owner, agent.session_id, b"whole")).status_code != 201:
                await asyncio.sleep(0.05)
        listed = (await client.get(of(agent.session_id), headers=bearer(owner))).json()
        assert [item["size"] for item in listed["items"]] == [5]


@pytest.mark.parametrize("pieces", [0, 3])
async def test_a_body_that_takes_too_long_ends(pieces: int) -> None:
    sent = iter(range(pieces))

    async def trickle() -> Message:
        if next(sent, None) is None:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": b"x", "more_body": True}

    request = HttpRequest({"method": "POST", "path": "/", "headers": []}, trickle)
    with pytest.raises(RequestRefused) as refused:
        await request.read_body(10, 0.05)
    assert refused.value.status == 408


async def test_a_body_that_breaks_off_is_not_taken_as_whole() -> None:
    """A form that was cut off can be read, unlike JSON."""
    messages: list[Message] = [
        {"type": "http.request", "body": b"name=a", "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> Message:
        return messages.pop(0)

    with pytest.raises(ClientLeft):
        await HttpRequest({"method": "POST", "path": "/", "headers": []}, receive).read_body(10, WITHIN_S)


Unread = tuple[asyncio.StreamReader, asyncio.StreamWriter, int]


async def break_off(downloads: list[Unread]) -> None:
    """Leave in the middle."""
    for _, writer, _ in downloads:
        writer.transport.abort()
        with suppress(ConnectionError):
            await writer.wait_closed()


async def unread(hub: HubProcess, path: str, token: str) -> Unread:
    """A download of which the head alone was read; its status. Keep the reader: one that is lost reads on."""
    where = urlsplit(hub.url)
    small = socket.socket()
    small.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    small.setblocking(False)
    await asyncio.get_running_loop().sock_connect(small, (where.hostname, where.port))
    reader, writer = await asyncio.open_connection(sock=small, limit=1024)
    writer.write(f"GET {path} HTTP/1.1\r\nHost: {where.netloc}\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    async with asyncio.timeout(WITHIN_S):
        line = await reader.readline()
    return reader, writer, int(line.split()[1])


async def test_an_account_has_two_downloads_under_way(embedded_hub: HubProcess) -> None:
    """Exports, files and spreadsheets together; small files are no more than other answers."""
    hub = embedded_hub
    owner, other = hub.mint("downloads", "session"), hub.mint("alice", "session")
    async with ChannelAgent(hub.url, hub.mint("downloads", "channel")) as agent, web(hub.url) as client:
        large = (await upload(client, owner, agent.session_id, os.urandom(CAP))).json()["id"]
        small = (await upload(client, owner, agent.session_id, b"small")).json()["id"]
        paths = [f"/api/v1/files/{large}/content", "/api/v1/me/export"]
        begun = [await unread(hub, path, owner) for path in paths]
        assert [status for _, _, status in begun] == [200, 200]
        for path in paths:
            refused = await client.get(path, headers=bearer(owner))
            assert (refused.status_code, refused.json()["error"]) == (429, "rate_limited")
            assert int(refused.headers["Retry-After"]) > 0
        page = await client.get("/account/export", headers={"Cookie": f"cw_session={owner}"})
        assert (page.status_code, page.headers["Retry-After"]) == (429, "5")
        assert "2 downloads under way" in page.text
        assert (await client.get(f"/api/v1/files/{small}/content", headers=bearer(owner))).content == b"small"
        assert (await client.get("/api/v1/me/export", headers=bearer(other))).status_code == 200
        await break_off(begun)
        async with asyncio.timeout(WITHIN_S):
            while (await client.get(paths[0], headers=bearer(owner))).status_code != 200:
                await asyncio.sleep(0.05)


async def test_a_process_has_eight_downloads_under_way(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    tokens = hub.mint_sessions(f"download{number}" for number in range(5))
    async with web(hub.url) as client, AsyncExitStack() as connections:
        agents = [
            await connections.enter_async_context(ChannelAgent(hub.url, hub.mint(f"download{number}", "channel")))
            for number in range(4)
        ]
        data = os.urandom(6 * MIB)  # more than the buffers of a connection hold
        for token, agent in zip(tokens[:4], agents, strict=True):
            assert (await upload(client, token, agent.session_id, data)).status_code == 201
        begun = [await unread(hub, "/api/v1/me/export", token) for token in tokens[:4] * 2]
        assert {status for _, _, status in begun} == {200}
        refused = await client.get("/api/v1/me/export", headers=bearer(tokens[4]))
        assert (refused.status_code, refused.json()["error"]) == (503, "unavailable")
        assert int(refused.headers["Retry-After"]) > 0
        assert (await client.get("/readyz")).status_code == 200
        await break_off(begun)
