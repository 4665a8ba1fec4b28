"""The pool of ten connections to PostgreSQL, while all long requests run that may: others do not wait for it."""

import asyncio
import os
import time
from collections import Counter
from contextlib import AsyncExitStack

from lab.agents import Echo, online
from lab.callers import bearer, reply_text, send, web
from lab.channel_agent import ChannelAgent
from lab.hub_process import StartHub
from lab.hub_storage import MakeStorage
from tests.listening import listening
from tests.native.test_file_transfer import CAP, break_off, unread, upload

ACCOUNTS = 10
EXPORTS = 40
ANSWERED_WITHIN_S = 10.0  # without connections for others it would wait for ever


async def test_exports_and_silent_servers_leave_connections_to_others(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("grown"), REMOTE_ALLOW_PRIVATE=1)
    tokens = hub.mint_sessions(f"busy{number}" for number in range(ACCOUNTS))
    alice = hub.mint("alice", "session")
    never = asyncio.Event()

    async def say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await never.wait()
        writer.close()

    async with listening(say_nothing) as port, web(hub.url) as client, AsyncExitStack() as connections:
        place = {"cardUrl": f"http://127.0.0.1:{port}/card.json"}
        answering = await connections.enter_async_context(online(hub, Echo))
        for number in range(4):
            token = hub.mint(f"busy{number}", "channel")
            agent = await connections.enter_async_context(ChannelAgent(hub.url, token))
            assert (await upload(client, tokens[number], agent.session_id, os.urandom(CAP))).status_code == 201
        begun = [await unread(hub, "/api/v1/me/export", token) for token in tokens[:4] * 2]
        assert [status for _, _, status in begun] == [200] * 8
        looking = [
            asyncio.create_task(client.post("/api/v1/agents/cards", json=place, headers=bearer(token)))
            for token in tokens[:8] * 4
        ]
        started = time.monotonic()
        more = [client.get("/api/v1/me/export", headers=bearer(tokens[n % ACCOUNTS])) for n in range(EXPORTS)]
        refused = await asyncio.gather(*more)
        assert Counter(one.status_code for one in refused) == {429: 16, 503: 24}
        assert (await client.get("/readyz")).status_code == 200
        assert reply_text(await send(hub.url, answering.handle, "hi", alice)) == "echo: hi"
        assert (await client.get("/api/v1/agents", headers=bearer(alice))).json()["items"][0]["online"] is True
        assert time.monotonic() - started < ANSWERED_WITHIN_S
        never.set()
        assert {one.status_code for one in await asyncio.gather(*looking)} == {400}
        await break_off(begun)
