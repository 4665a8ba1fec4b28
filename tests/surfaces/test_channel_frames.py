"""`/channel` after welcome: frames that are odd, too large, or no frames at all, and the hooks' REST beside it."""

import asyncio
import contextlib
import uuid
from typing import Any

import httpx
import pytest
from websockets.exceptions import ConnectionClosed

from lab.agents import Chunker, Echo, Flood, Stall, online
from lab.callers import bearer, failed_text, get_task, reply_text, send, stream, text_of, web
from lab.channel_agent import ChannelAgent
from lab.hub_process import HubProcess
from lab.waiting import eventually

BUSY = "agent is processing a turn for another caller"
KIB = 1024


async def check_alive(hub: HubProcess, agent: ChannelAgent, token: str) -> None:
    """The connection that misbehaved still serves."""
    assert not agent.closed.is_set()
    assert reply_text(await send(hub.url, agent.handle, "still there?", token)) == "echo: still there?"


async def test_a_frame_that_is_not_in_order_never_ends_the_connection(hub: HubProcess, alice: str) -> None:
    """The table of such frames is in `tests/contracts/test_channel_protocol.py`."""
    async with online(hub, Echo) as agent:
        for kind in ("list_hubs_request", "", "welcome", "prompt"):
            await agent.send(type=kind, correlationId="c1")
        for malformed in ("not json", '{"type":"register","pid":"x"}', b"\x00\xff", b'{"type":"pong"}'):
            await agent.socket.send(malformed)
        await check_alive(hub, agent, alice)
        assert {frame["type"] for frame in agent.frames} <= {"welcome", "error", "prompt"}


async def test_a_second_register_changes_nothing(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        await agent.send(type="register", osUser=None, sessionId=str(uuid.uuid4()), **agent.register)
        await agent.heard("error")
        await check_alive(hub, agent, alice)


async def test_a_frame_over_the_cap_closes_its_connection_cleanly_and_the_agent_may_return(
    embedded_hub: HubProcess,
) -> None:
    async with online(embedded_hub, Echo) as agent:
        with contextlib.suppress(ConnectionClosed):
            await agent.send(type="pong", ts="x" * 5000 * KIB)
        await asyncio.wait_for(agent.closed.wait(), 15)
        assert agent.socket.close_code == 1009
        await agent.connect()
        await check_alive(embedded_hub, agent, embedded_hub.mint("alice", "session"))


@pytest.mark.parametrize(
    ("chunks", "chunk_bytes"), [(1, 64 * KIB + 1), (1001, 1), (20, 60 * KIB)], ids=["wide", "many", "long"]
)
async def test_a_flood_of_chunks_fails_its_turn_and_no_others(
    hub: HubProcess, chunks: int, chunk_bytes: int
) -> None:
    alice = hub.mint("alice", "session")
    async with online(hub, Flood, chunks=chunks, chunk_bytes=chunk_bytes) as agent:
        tasks = await stream(hub.urls[-1], agent.handle, "go", alice)
        assert failed_text(tasks[-1])
        error = await agent.heard("error")
        assert error["code"] not in ("auth_failed", "token_revoked")
        assert not agent.closed.is_set()
        agent.chunks, agent.chunk_bytes = 3, 5
        bob = hub.mint("bob", "session")

        async def served() -> bool:  # once the agent has finished the reply that failed
            return text_of((await send(hub.url, agent.handle, "again", bob))["history"][-1]) == "x" * 15

        await eventually(served, "another caller is served")


async def test_a_reply_up_to_the_cap_arrives_whole(hub: HubProcess, alice: str) -> None:
    async with online(hub, Chunker, pieces=["y" * 64 * KIB] * 16) as agent:
        assert reply_text(await send(hub.urls[-1], agent.handle, "go", alice)) == "y" * 1024 * KIB


async def test_a_reply_in_one_frame_over_the_cap_fails_its_turn(hub: HubProcess, alice: str) -> None:
    async with online(hub, Stall) as agent:
        asked = asyncio.create_task(send(hub.url, agent.handle, "go", alice))
        chat_id = (await agent.heard("prompt"))["chatId"]
        await agent.reply(chat_id, "z" * 1100 * KIB)
        assert failed_text(await asked)
        assert (await agent.heard("error"))["code"] not in ("auth_failed", "token_revoked")


async def report(
    hub: HubProcess, token: str, session_id: str | None, kind: str = "Stop", **more: Any
) -> httpx.Response:
    event = {
        "sessionId": session_id,
        "kind": "tail",
        "type": kind,
        "payload": {},
        "ts": "2026-01-01T00:00:00Z",
    } | more
    async with web(hub.url) as client:
        return await client.post("/api/channel/event", json=event, headers=bearer(token))


async def test_stop_frees_the_claim_of_a_turn_that_ran_out(short_wait_hub: HubProcess) -> None:
    hub = short_wait_hub
    alice, bob, token = hub.mint("alice", "session"), hub.mint("bob", "session"), hub.mint("owner", "channel")
    async with online(hub, Stall, only_first=True) as agent:
        assert failed_text(await send(hub.url, agent.handle, "stall", alice)) == "agent did not reply within 2s"
        assert failed_text(await send(hub.url, agent.handle, "mine?", bob)) == BUSY
        assert (await report(hub, token, agent.session_id, "PreToolUse")).is_success
        assert failed_text(await send(hub.url, agent.handle, "mine?", bob)) == BUSY
        assert (await report(hub, token, agent.session_id)).is_success
        assert reply_text(await send(hub.url, agent.handle, "mine?", bob)) == "echo: mine?"


@pytest.mark.slow
async def test_a_late_reply_frees_the_claim_and_does_not_revive_the_task(short_wait_hub: HubProcess) -> None:
    hub = short_wait_hub
    alice, bob = hub.mint("alice", "session"), hub.mint("bob", "session")
    async with online(hub, Stall, only_first=True) as agent:
        task = await send(hub.url, agent.handle, "stall", alice)
        assert failed_text(task) == "agent did not reply within 2s"
        assert failed_text(await send(hub.url, agent.handle, "mine?", bob)) == BUSY
        await agent.reply(agent.prompts[0]["chatId"], "late")

        async def free() -> bool:
            task = await send(hub.url, agent.handle, "mine?", bob)
            return bool(task["status"]["state"] == "COMPLETED")

        await eventually(free, "the claim is free")
        assert (await get_task(hub.url, agent.handle, task["id"], alice))["result"] == task


async def test_events_are_for_the_token_that_registered_the_session(hub: HubProcess) -> None:
    async with online(hub, Echo) as agent:
        assert (await report(hub, hub.mint("owner", "channel"), agent.session_id)).is_success
        for token in (hub.mint("bob", "channel"), hub.mint("owner", "session"), "ck_live_wrong"):
            assert (await report(hub, token, agent.session_id)).status_code in (401, 403, 404)
        assert (await report(hub, hub.mint("owner", "channel"), str(uuid.uuid4()))).status_code in (403, 404)


async def test_a_broken_event_is_refused_in_json(embedded_hub: HubProcess) -> None:
    token = embedded_hub.mint("owner", "channel")
    changes: list[dict[str, Any]] = [{"sessionId": 5}, {"sessionId": "x"}, {"kind": 5}, {"type": None}, {"ts": {}}]
    for change in changes:
        response = await report(embedded_hub, token, None, **change)
        assert 400 <= response.status_code < 500, change
        assert {"error", "message"} <= set(response.json()), change
