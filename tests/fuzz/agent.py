"""An agent whose frames are drawn: it is asked before each case, so that some of them answer an open prompt."""

import asyncio
import itertools
import json
from dataclasses import dataclass, field
from typing import Self

from websockets.asyncio.client import ClientConnection

from lab.agents import publish
from lab.callers import envelope, question, rpc_path
from lab.channel_agent import dial
from lab.frames import register
from tests.fuzz.live import Live
from tests.fuzz.requests import JSON, HttpCase
from tests.malformed.raw_http import Connection

ASKED_WITHIN_S = 1.0
WITHIN_S = 30
VERSION = (("A2A-Version", "1.0"),)  # which has `returnImmediately`
PLENTY = {"concurrencyCap": 20, "dailyBudgetQueries": 100_000}
_numbers = itertools.count(1)


@dataclass
class FuzzedAgent:
    """A published session. `open` is the session again on a new socket; `ask` asks it, and returns the chat id."""

    live: Live
    session_id: str | None = None
    handle: str = ""
    connection: Connection = field(init=False)

    def __post_init__(self) -> None:
        self.connection = Connection(self.live.hub.url)

    @classmethod
    async def published(cls, live: Live) -> Self:
        agent = cls(live)
        await (await agent.open()).close()
        return agent

    async def dial(self) -> ClientConnection:
        return await dial(f"{self.live.socket_url}/channel", self.live.hub.mint("fuzzer", "channel"))

    async def open(self) -> ClientConnection:
        """A registered socket. Drawn frames may have deleted the session: then a new one is published."""
        socket = await self.dial()
        frame = register(
            session_id=self.session_id, host="t", cwd="/", pid=1, channelVersion="t", features=["cancel"]
        )
        await socket.send(json.dumps(frame))
        async with asyncio.timeout(WITHIN_S):
            while (welcome := json.loads(await socket.recv()))["type"] != "welcome":
                pass
        if welcome["sessionId"] != self.session_id:
            self.session_id = str(welcome["sessionId"])
            owner, slug = self.live.hub.mint("fuzzer", "session"), f"fuzzed-{next(_numbers)}"
            made = await publish(self.live.hub, owner, self.session_id, slug, **PLENTY)
            self.handle = made["handle"]
        return socket

    async def ask(self, socket: ClientConnection) -> str:
        """Ask the agent; the chat id of the prompt, empty when none comes, as too many are open."""
        params = question("hello", f"fuzz-{next(_numbers)}") | {"configuration": {"returnImmediately": True}}
        token = self.live.hub.mint("alice", "session")
        headers = (("Host", "127.0.0.1"), ("Authorization", f"Bearer {token}"), ("Content-Type", JSON), *VERSION)
        body = json.dumps(envelope("SendMessage", params)).encode()
        asked = HttpCase("POST", rpc_path(self.handle), headers, body)
        await self.connection.ask(asked.request(), within_s=WITHIN_S)
        try:
            async with asyncio.timeout(ASKED_WITHIN_S):
                while (frame := json.loads(await socket.recv()))["type"] != "prompt":
                    pass
        except TimeoutError:
            return ""
        return str(frame["chatId"])

    async def close(self) -> None:
        """Close the connection that asks."""
        await self.connection.__aexit__()
