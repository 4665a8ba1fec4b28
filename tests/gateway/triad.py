"""A team that decides by votes: its members, and a client that proposes."""

import itertools
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from lab.frames import Json
from lab.hub_process import HubProcess
from tests.gateway.client import GatewayClient

_numbers = itertools.count(1)


class Voter(GatewayClient):
    """A client that proposes and votes."""

    async def propose(self, key: str, text: str = "Write it in Rust", **content: Any) -> Json:
        """Propose; what acknowledges it, or the error."""
        before = len(self.frames)
        about = {"requiresResponse": True, "correlationId": key}
        await self.send("proposal", {"proposal": text, **content}, metadata=about)
        return await self.answer_after(before, key)

    async def vote(self, key: str, vote: str, **content: Any) -> Json:
        """Vote; what acknowledges it, or the error."""
        before = len(self.frames)
        about = {"correlationId": key}
        await self.send("vote", {"proposalId": key, "vote": vote, **content}, metadata=about)
        return await self.answer_after(before, key)

    async def request(self, service: str, **params: Any) -> Json:
        """Ask the gateway for a service; the content of its response."""
        key = f"request-{next(_numbers)}"
        before = len(self.frames)
        await self.send("request", {"service": service, "params": params}, metadata={"correlationId": key})
        return await self.answer_after(before, key)

    async def answer_after(self, before: int, key: str) -> Json:
        """The content of the first response or error with that correlation id that came later."""

        def is_it(frame: Json) -> bool:
            about = frame.get("metadata", {})
            return about.get("correlationId") == key and frame["type"] in ("response", "error")

        content: Json = (await self.find_any(is_it, after=before))["content"]
        return content.get("result", content)

    async def decision(self, key: str) -> Json:
        """The content of the decision on a proposal."""
        found = await self.find("decision", lambda frame: frame["content"]["proposalId"] == key)
        content: Json = found["content"]
        return content

    def count(self, type_name: str, key: str) -> int:
        """How many frames of a type about a proposal came."""
        return sum(one["type"] == type_name and one["content"].get("proposalId") == key for one in self.frames)

    async def settle(self) -> None:
        """Wait until the gateway has answered a ping: what it sent before has come."""
        before = len(self.frames)
        await self.send("ping")
        await self.find_any(lambda frame: frame["type"] == "pong", after=before)


@asynccontextmanager
async def team(hub: HubProcess, owner: str, *names: str) -> AsyncIterator[list[Voter]]:
    """The seats of these agents, spread over the processes of a hub."""
    token = hub.mint(owner, "channel")
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(seat(hub.urls[number % len(hub.urls)], token, name))
            for number, name in enumerate(names)
        ]


@asynccontextmanager
async def seat(url: str, token: str, name: str) -> AsyncIterator[Voter]:
    """A seat that is taken."""
    async with Voter(url, token, agentId=name) as voter:
        await voter.find("auth-response")
        yield voter


def in_ms(seconds: float) -> int:
    """A moment in so many seconds, as the protocol writes it."""
    return int((time.time() + seconds) * 1000)
