"""Agents that ask on, and the people and hooks around them."""

import asyncio
import itertools
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any, TypeVar

import httpx

from lab.agents import publish
from lab.callers import Json, bearer, envelope, question, rpc_path, web
from lab.channel_agent import FRAME_WITHIN_S, ChannelAgent
from lab.hub_process import HubProcess
from lab.statements import writing
from lab.waiting import eventually

Kind = TypeVar("Kind", bound=ChannelAgent)
_numbers = itertools.count(1)


class Agent(ChannelAgent):
    """An agent whose test speaks for it: it answers nothing by itself."""

    async def request(self, kind: str, **fields: Any) -> str:
        """Send a request; its correlation id."""
        correlation_id = f"c{next(_numbers)}"
        await self.send(type=f"{kind}_request", correlationId=correlation_id, **fields)
        return correlation_id

    async def answer_to(self, kind: str, correlation_id: str, **match: Any) -> Json:
        """The answer to a request, of the frame type `kind`_response."""

        def found() -> Json | None:
            wanted = {"type": f"{kind}_response", "correlationId": correlation_id, **match}
            return next((frame for frame in self.frames if wanted.items() <= frame.items()), None)

        try:
            async with asyncio.timeout(FRAME_WITHIN_S), self._heard:
                await self._heard.wait_for(lambda: found() is not None)
        except TimeoutError:
            raise AssertionError(f"no {kind}_response for {correlation_id} {match}: {self.frames}") from None
        answer = found()
        assert answer is not None
        return answer

    async def agents(self, q: str | None = None) -> Json:
        return await self.answer_to("list_agents", await self.request("list_agents", q=q))

    async def peers(self) -> list[str]:
        answer = await self.answer_to("list_peers", await self.request("list_peers"))
        return [peer["login"] for peer in answer["peers"]]

    async def route(self, peer: str, prompt: str = "hello?", mode: str = "ask") -> str:
        sent = await self.request("route", peer=peer, prompt=prompt, mode=mode)
        return (await self.answer_to("route", sent))["reply"]

    async def dispatch(self, handle: str, prompt: str = "hello?", mode: str = "ask") -> str:
        sent = await self.request("dispatch", handle=handle, prompt=prompt, mode=mode)
        return (await self.answer_to("route", sent))["reply"]

    async def probe(self, peers: list[str] | None, prompt: str = "hello?") -> dict[str, str]:
        """The answers by peer, once the probe is over."""
        sent = await self.request("probe", peers=peers, prompt=prompt)
        await self.answer_to("probe", sent, done=True)
        answers = [one for one in self.frames if one["type"] == "probe_response" and one["correlationId"] == sent]
        end = {"type": "probe_response", "correlationId": sent, "peerLogin": None, "answer": None, "done": True}
        assert answers[-1] == end
        return {one["peerLogin"]: one["answer"] for one in answers[:-1]}

    async def errors(self, code: str, count: int = 1) -> None:
        """Wait until so many error frames of a code came."""

        def seen() -> int:
            return sum(1 for one in self.frames if one["type"] == "error" and one["code"] == code)

        async with asyncio.timeout(FRAME_WITHIN_S), self._heard:
            await self._heard.wait_for(lambda: seen() >= count)

    async def stop(self) -> None:
        """Say over the socket that the turn is over."""
        await self.send(type="tail_event", eventType="Stop", payload={}, ts=None)


class Echoing(Agent):
    """Says what it is asked."""

    async def answer(self, prompt: Json) -> None:
        await self.reply(prompt["chatId"], f"echo: {prompt['text']}")


@asynccontextmanager
async def agent(
    hub: HubProcess,
    login: str,
    kind: Callable[..., Kind] = Agent,  # type: ignore[assignment]
    *,
    at: int = 0,
    publishes: bool = True,
    fields: Json | None = None,
    **options: Any,
) -> AsyncIterator[Kind]:
    """A connected agent of any owner, at the process `urls[at]`; `fields` of the published agent."""
    hub.check_running(at)
    async with kind(hub.urls[at], hub.mint(login, "channel"), **options) as peer:
        assert peer.session_id is not None
        if publishes:
            slug = f"a{next(_numbers)}"
            peer.agent = await publish(hub, hub.mint(login, "session"), peer.session_id, slug, **(fields or {}))
            peer.handle = peer.agent["handle"]
        yield peer


def route_name(login: str, peer: ChannelAgent) -> str:
    """The name by which other sessions ask this one: `owner/slug`."""
    return f"{login}/{peer.routing_name.removeprefix('@')}"


@asynccontextmanager
async def asking(hub: HubProcess, login: str, peer: ChannelAgent, text: str = "do it") -> AsyncIterator[Json]:
    """A caller asks an agent over A2A and waits until the block ends; yields the prompt as the agent got it."""
    before = len(peer.prompts)
    async with web(hub.url) as client:
        body, token = envelope("SendMessage", question(text)), hub.mint(login, "session")
        asked = asyncio.create_task(client.post(rpc_path(peer.handle), json=body, headers=bearer(token)))
        try:
            yield await peer.heard("prompt", count=before + 1)
        finally:
            asked.cancel()
            await asyncio.gather(asked, return_exceptions=True)


async def hook(
    hub: HubProcess, login: str, peer: ChannelAgent, type_: str, *, kind: str = "tail", at: int = 0, **payload: Any
) -> httpx.Response:
    """One hook of the agent's program, to the process `urls[at]`."""
    event = {"sessionId": peer.session_id, "kind": kind, "type": type_, "payload": payload}
    async with web(hub.urls[at]) as client:
        return await client.post("/api/channel/event", json=event, headers=bearer(hub.mint(login, "channel")))


def sql(hub: HubProcess, statement: str, *values: object) -> list[tuple[Any, ...]]:
    """Run one statement on the hub's database, `?` for each value; its rows."""
    with writing(hub.home.env) as run:
        done = run(statement, *values)
        return done.fetchall() if done.description else []


async def eventually_queued(hub: HubProcess, peer: ChannelAgent, count: int) -> None:
    """Wait until so many asks wait for an agent."""

    async def are_queued() -> bool:
        return sql(hub, "SELECT count(*) FROM agents_queuedask WHERE agent_id = ?", peer.agent["id"]) == [(count,)]

    await eventually(are_queued, f"{count} asks wait for {peer.handle}")


def events_of(hub: HubProcess, peer: ChannelAgent) -> list[tuple[str, str, Json]]:
    """The transcript of an agent's session without its comings and goings: kind, type, payload."""
    assert peer.session_id is not None
    public_id = peer.session_id if hub.home.is_grown else peer.session_id.replace("-", "")
    statement = (
        "SELECT e.kind, e.type, e.payload FROM agents_event e JOIN agents_session s ON s.id = e.session_id"
        " WHERE s.public_id = ? AND e.type NOT IN ('SessionStart', 'SessionEnd') ORDER BY e.id"
    )
    return [(kind, type_, json.loads(payload)) for kind, type_, payload in sql(hub, statement, public_id)]


async def rows(hub: HubProcess, handle_owner: str, agent_id: int) -> list[Json]:
    """The audit of an agent, newest first."""
    async with web(hub.url) as client:
        path = f"/api/v1/agents/{agent_id}/inbound?days=1"
        answer = await client.get(path, headers=bearer(hub.mint(handle_owner, "session")))
    assert answer.status_code == 200, answer.text
    recent: list[Json] = answer.json()["recent"]
    return recent
