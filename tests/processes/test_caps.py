"""Limits for each owner hold when everything comes at once, on whichever process."""

import asyncio
import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from lab.agents import Echo, online
from lab.callers import bearer, reply_text, send, web
from lab.channel_agent import dial
from lab.hub_process import HubProcess
from lab.hub_storage import MakeStorage
from tests.conftest import HOMES
from tests.operators.operator import Operator

LIMITS = {
    "AGENTS_PER_OWNER": 2,
    "SESSIONS_PER_OWNER": 8,
    "SOCKETS_PER_OWNER": 3,
    "TOKENS_PER_OWNER": 5,
    "STREAMS_PER_CALLER": 2,
    "STORAGE_PER_OWNER_MB": 1,
}
AT_ONCE = 12


@pytest.fixture(params=HOMES, scope="module")
def hub(request: pytest.FixtureRequest, make_storage: MakeStorage) -> Iterator[HubProcess]:
    """A hub with low limits, on each kind of storage; with PostgreSQL it is two processes."""
    home = make_storage(request.param)
    started = HubProcess.start(home, processes=2 if home.is_grown else 1, **LIMITS)
    yield started
    started.stop()


async def register(url: str, token: str) -> tuple[str, Any]:
    """The first frame to a new agent, and its open socket."""
    socket = await dial(url.replace("http", "ws", 1) + "/channel", token)
    await socket.send(json.dumps({"type": "register", "host": "h", "cwd": "/w", "osUser": None}))
    frame = json.loads(await socket.recv())
    return frame.get("code", frame["type"]), socket


async def test_limits_hold_against_races(hub: HubProcess) -> None:
    owner, channel, urls = hub.mint("owner", "session"), hub.mint("owner", "channel"), hub.urls

    arrived = await asyncio.gather(*(register(urls[n % len(urls)], channel) for n in range(AT_ONCE)))
    assert Counter(word for word, _ in arrived) == {"welcome": 3, "quota_exceeded": AT_ONCE - 3}
    refused = next(socket for word, socket in arrived if word == "quota_exceeded")
    assert json.loads(await refused.recv()) == {"type": "bye", "reason": "quota_exceeded", "retry": True}
    await refused.wait_closed()
    assert refused.close_code == 1013
    for _, socket in arrived:
        await socket.close()

    async def mint(url: str) -> int:
        async with web(url) as client:
            answer = await client.post("/api/v1/tokens/channel", json={"name": "t"}, headers=bearer(owner))
            return answer.status_code

    minted = await asyncio.gather(*(mint(urls[n % len(urls)]) for n in range(AT_ONCE)))
    assert Counter(minted) == {201: 4, 429: AT_ONCE - 4}


async def test_an_owner_who_is_full_hurts_no_other_user(hub: HubProcess) -> None:
    """Events of the owner are refused, questions answered; others notice nothing."""
    owner, alice = hub.mint("owner", "session"), hub.mint("alice", "session")
    async with online(hub, Echo) as agent:
        payload = "x" * 200_000
        for _ in range(8):
            await agent.send(type="tail_event", eventType="note", payload=payload, ts=None)
        error = await agent.heard("error")
        assert error["code"] == "quota_exceeded"
        async with web(hub.urls[-1]) as client:
            body = {"sessionId": agent.session_id, "kind": "tail", "type": "note", "payload": payload}
            headers = bearer(hub.mint("owner", "channel"))
            answer = await client.post("/api/channel/event", json=body, headers=headers)
            assert (answer.status_code, answer.json()["error"]) == (429, "quota_exceeded")
            files = f"/api/v1/sessions/{agent.session_id}/files"
            answer = await client.post(files, files={"file": ("a", b"x" * 200_000)}, headers=bearer(owner))
            assert (answer.status_code, answer.json()["error"]) == (429, "quota_exceeded")
        assert reply_text(await send(hub.url, agent.handle, "still?", alice)) == "echo: still?"


async def test_operators_sockets_are_counted_for_each_user(hub: HubProcess) -> None:
    alice, bob = hub.mint("alice", "session"), hub.mint("bob", "session")
    async with Operator(hub.url, alice) as one, Operator(hub.url, alice) as two:
        for present in (one, two):
            assert (await present.answer("subscribe", sessionId="nothing"))["type"] == "error"
        async with Operator(hub.url, alice) as third, Operator(hub.url, bob) as other:
            assert (await third.heard("error"))["code"] == "quota_exceeded"
            await third.closed.wait()
            assert third.socket.close_code == 1013
            assert (await other.answer("subscribe", sessionId="nothing"))["code"] != "quota_exceeded"
    async with Operator(hub.url, alice) as again:
        assert (await again.answer("subscribe", sessionId="nothing"))["code"] != "quota_exceeded"
