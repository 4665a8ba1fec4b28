"""Responses and streams that the attacker does not read."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress

from websockets.exceptions import ConnectionClosed

from lab.agents import Flood
from lab.attacks.attacker import AttackedHub, Attacker, together, upload_request
from lab.bench.client import BenchCaller, fetch, fetch_json, message_params, request
from lab.bench.hubs import AGENTS_PATH
from lab.bench.mcp import MCP_2025, request_of
from lab.callers import envelope
from lab.channel_agent import ChannelAgent

AT_ONCE = 60
FILES, FILE_BYTES = 3, 8_000_000
CHUNKS, CHUNK_BYTES = 250, 4_000  # of a reply: nearly the largest one
OPERATORS = 110
TEXT = "x" * 3_900
_slugs = itertools.count(1)


async def exports_unread(hub: AttackedHub, attacker: Attacker) -> None:
    """exports of all data, unread"""
    await upload(hub, attacker)
    await attacker.leave_unread(hub, AT_ONCE, lambda _: request("GET", "/api/v1/me/export", attacker.headers))


async def downloads_unread(hub: AttackedHub, attacker: Attacker) -> None:
    """downloads of a file of 8 MB, unread"""
    path = f"/api/v1/files/{await upload(hub, attacker)}/content"
    await attacker.leave_unread(hub, AT_ONCE, lambda _: request("GET", path, attacker.headers))


async def a2a_streams_unread(hub: AttackedHub, attacker: Attacker) -> None:
    """streams of A2A, unread, of replies of 1 MB"""
    async with flooding_agent(hub, attacker) as handle:

        def ask(number: int) -> bytes:
            params = message_params(f"unread-{number}", [{"text": f"flood {number}"}])
            body = envelope("SendStreamingMessage", params)
            return request("POST", AGENTS_PATH + handle, attacker.headers, body)

        await attacker.leave_unread(hub, AT_ONCE, ask)


async def mcp_streams_unread(hub: AttackedHub, attacker: Attacker) -> None:
    """streams of MCP, unread, of replies of 1 MB"""
    async with flooding_agent(hub, attacker) as handle:

        def ask(number: int) -> bytes:
            caller = BenchCaller(AGENTS_PATH + handle, attacker.headers)
            path, headers, body = request_of(MCP_2025, caller, f"flood {number}")
            body["params"]["_meta"] = {"progressToken": number}
            return request("POST", path, headers, body)

        await attacker.leave_unread(hub, AT_ONCE, ask)


async def chat_streams_unread(hub: AttackedHub, attacker: Attacker) -> None:
    """streams of chat completions, unread, of replies of 1 MB"""
    async with flooding_agent(hub, attacker) as handle:

        def ask(number: int) -> bytes:
            messages = [{"role": "user", "content": f"flood {number}"}]
            body = {"model": f"agent/{handle}", "messages": messages, "stream": True}
            return request("POST", "/v1/chat/completions", attacker.headers, body)

        await attacker.leave_unread(hub, AT_ONCE, ask)


async def gateway_unread(hub: AttackedHub, attacker: Attacker) -> None:
    """messages of the gateway to an agent that reads none"""
    reader = await attacker.open_socket(
        hub, "/gateway?agentId=reader", token=attacker.channel_token, subprotocols=["a2a-v1"]
    )
    assert reader is not None

    async def send(number: int) -> None:
        name = f"writer{number}"
        path, token = f"/gateway?agentId={name}", attacker.channel_token
        socket = await attacker.open_socket(hub, path, token=token, subprotocols=["a2a-v1"])
        if socket is None:
            return
        for count in itertools.count():
            content = {"role": "agent", "content": TEXT}
            frame = {"type": "message", "id": f"{name}-{count}", "agent": "reader", "content": content}
            await socket.send(json.dumps(frame))
            attacker.ends["frame"] += 1
            await asyncio.sleep(0)

    await together(4, send)


async def cli_unread(hub: AttackedHub, attacker: Attacker) -> None:
    """views of a session on `/cli`, unread, and messages of operators to all of them"""
    async with flooding_agent(hub, attacker):
        items = await fetch_json(hub.port, "GET", "/api/v1/sessions?connected=true", attacker.token)
        session_id = items["items"][0]["id"]
        subscribe = json.dumps({"type": "subscribe", "sessionId": session_id})
        sockets = []
        for _number in range(OPERATORS):
            if socket := await attacker.open_socket(hub, "/cli"):
                with suppress(ConnectionClosed):  # the hub closes an operator's socket when too many frames wait
                    await socket.send(subscribe)
                    sockets.append(socket)
        message = json.dumps({"type": "op_message", "sessionId": session_id, "text": TEXT})
        while True:
            await sockets[0].send(message)
            attacker.ends["frame"] += 1
            await sockets[0].recv()


async def upload(hub: AttackedHub, attacker: Attacker) -> int:
    """Store large files to ask with; the id of one."""
    file_id = 0
    for number in range(FILES):
        text = f"{number:09}\n".encode() * (FILE_BYTES // 10)
        response = await fetch(hub.port, upload_request(attacker.headers, f"{number}.txt", text, "text/plain"))
        file_id = json.loads(response.body)["id"]
    return file_id


def flooding_agent(hub: AttackedHub, attacker: Attacker) -> AbstractAsyncContextManager[str]:
    """The handle of an agent of the attacker that answers with as much as a reply may have."""
    flood = Flood(hub.url, attacker.channel_token, chunks=CHUNKS, chunk_bytes=CHUNK_BYTES)
    return published(hub, attacker, flood)


@asynccontextmanager
async def published(hub: AttackedHub, attacker: Attacker, agent: ChannelAgent) -> AsyncIterator[str]:
    """The handle of an agent of the attacker, while it is connected."""
    async with agent:
        slug = f"own-{next(_slugs)}-{agent.session_id or ''}"[:40]
        body = {"sessionId": agent.session_id, "name": "Own", "slug": slug, "status": "published"}
        most = {"concurrencyCap": 20, "dailyBudgetQueries": 10_000}
        row = await fetch_json(hub.port, "POST", "/api/v1/agents", attacker.token, body | most)
        yield row["handle"]
