"""Agents send more than text, over real sockets: pieces, ends in their own words, and cancels."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx
import pytest

from agents.core.post import CancelTurn
from hub.distributed import RedisPost
from lab.agents import TaskPeer, online
from lab.callers import Json, bearer, failed_text, reply_text, send, web
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.channel.agents import Agent, Echoing, agent, events_of, sql
from tests.http_json import client

BUSY = "agent is processing a turn for another caller"


async def route(hub: HubProcess, handle: str, prompt: str) -> httpx.Response:
    """A routed ask of an operator."""
    async with web(hub.urls[-1]) as client:
        return await client.post(
            f"/api/v1/peers/{handle}/route",
            json={"prompt": prompt, "mode": "ask"},
            headers=bearer(hub.mint("alice", "session")),
        )


async def kept(hub: HubProcess, peer: Any, count: int) -> list[tuple[str, Json]]:
    """The transcript once it holds so many events: type and payload, without chat ids."""

    async def seen() -> list[tuple[str, str, Json]] | None:
        events = events_of(hub, peer)
        return events if len(events) >= count else None

    events = await eventually(seen, f"{count} events")
    assert {kind for kind, _, _ in events} == {"chat"}
    assert all(payload.pop("chatId", "") for _, type_, payload in events if type_ != "peer-timeout")
    return [(type_, payload) for _, type_, payload in events]


async def test_the_hub_says_what_it_takes(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with online(hub, TaskPeer, features=["telepathy", "cancel"]) as peer:
        welcome = await peer.heard("welcome")
        assert welcome["features"] == ["cancel", "direct_message", "task_artifact", "task_status"]


async def test_notes_and_artifacts_are_kept_and_the_text_is_the_reply(hub: HubProcess, alice: str) -> None:
    async with online(hub, TaskPeer, at=-1) as peer:
        script = 'note reading | text a1 one | last a1 two | data a2 {"n": 1} | raw a3 hi | say all | say  done'
        assert reply_text(await send(hub.url, peer.handle, script, alice)) == "all done"
        events = await kept(hub, peer, 7)
        assert [type_ for type_, _ in events[1:]] == ["task_status", *["task_artifact"] * 4, "reply"]
        assert events[1][1] == {"state": "working", "text": "reading"}
        assert events[3][1] == {"artifactId": "a1", "parts": [{"text": "two"}], "append": True, "lastChunk": True}
        assert events[4][1] == {"artifactId": "a2", "parts": [{"data": {"n": 1}}]}
        [part] = events[5][1]["parts"]
        assert part == {"raw": "", "filename": "a3.txt", "mediaType": "text/plain"}
        assert not [frame for frame in peer.frames if frame["type"] == "error"]


async def test_an_operator_reads_why_in_the_agents_words(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with online(hub, TaskPeer) as peer:
        for script, code, words in (
            ("fail no such file", "agent_failed", "no such file"),
            ("fail", "agent_failed", "the agent failed"),
            ("note hm | reject not my job", "rejected", "not my job"),
        ):
            answer = await route(hub, peer.handle, script)
            assert (answer.status_code, answer.json()) == (502, {"error": code, "message": words})
        answer = await route(hub, peer.handle, "ask which one?")
        assert (answer.status_code, answer.json()["reply"]) == (200, "which one?")
        events = await kept(hub, peer, 9)
        assert [type_ for type_, _ in events if type_ != "prompt"] == ["task_status"] * 4 + ["reply"]
        assert events[-1] == ("reply", {"text": "which one?"})


async def test_an_agent_reads_why_in_the_other_agents_words(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with agent(hub, "alice", Agent, publishes=False) as asker, online(hub, TaskPeer, at=-1) as peer:
        reply = await asker.dispatch(peer.handle, "fail no such file")
        assert reply == f"error: @{peer.handle} failed: no such file"
        assert await asker.dispatch(peer.handle, "ask which one?") == "which one?"


async def test_a_mirrored_ask_shows_why_instead_of_a_timeout(hub: HubProcess) -> None:
    async with agent(hub, "alice", Agent, publishes=False) as source, online(hub, TaskPeer, at=-1) as peer:
        async with web(hub.url) as client:
            answer = await client.post(
                f"/api/v1/sessions/{source.session_id}/prompt",
                json={"text": f"@{peer.handle} fail no such file"},
                headers=bearer(hub.mint("alice", "session")),
            )
        assert answer.is_success, answer.text
        assert (await source.heard("route_reply"))["text"] == "error: no such file"
        [(_, asked), (type_, reply)] = await kept(hub, source, 2)
        assert asked["source"] == "operator-route"
        assert (type_, reply["text"], reply["failed"]) == ("reply", "no such file", "agent_failed")


async def test_the_claim_is_free_after_an_end_in_the_agents_words(embedded_hub: HubProcess) -> None:
    hub, alice, bob = embedded_hub, embedded_hub.mint("alice", "session"), embedded_hub.mint("bob", "session")
    async with online(hub, TaskPeer) as peer:
        for script in ("fail no", "reject no", "ask which?", "complete so"):
            await send(hub.url, peer.handle, script, alice)
            assert reply_text(await send(hub.url, peer.handle, "mine?", bob)) == "echo: mine?"


@asynccontextmanager
async def canceled(hub: HubProcess, peer: TaskPeer, script: str) -> AsyncIterator[str]:
    """A question of alice's whose wait its process is told to end; its chat id, once she was told."""
    asked = asyncio.create_task(send(hub.url, peer.handle, script, hub.mint("alice", "session")))
    chat_id: str = (await peer.heard("prompt"))["chatId"]
    [[home]] = sql(hub, "SELECT home FROM agents_turn WHERE chat_id = ?", chat_id)
    post = RedisPost(hub.home.env["REDIS_URL"])
    await post.send(home, CancelTurn(chat_id))
    await post.close()
    await asked
    [[outcome, reason]] = sql(hub, "SELECT outcome, reason FROM agents_turn WHERE chat_id = ?", chat_id)
    assert (outcome, reason) == ("failed", "canceled")
    yield chat_id


@pytest.mark.distributed
@pytest.mark.slow
@pytest.mark.parametrize("at", [0, 1])
async def test_a_cancel_reaches_the_agent_and_its_end_frees_the_claim(
    two_process_hub: HubProcess, at: int
) -> None:
    hub = two_process_hub
    bob = hub.mint("bob", "session")
    async with online(hub, TaskPeer, at=at) as peer, canceled(hub, peer, "wait | hold | say too late") as chat_id:
        assert (await peer.heard("cancel")) == {"type": "cancel", "chatId": chat_id}
        assert failed_text(await send(hub.url, peer.handle, "mine?", bob)) == BUSY
        peer.release.set()

        async def served() -> bool:
            task = await send(hub.url, peer.handle, "mine?", bob)
            return bool(task["status"]["state"] == "COMPLETED")

        await eventually(served, "the claim is free")
        assert not [frame for frame in peer.frames if frame["type"] == "error"]
        events = [payload for _, type_, payload in events_of(hub, peer) if type_ == "reply"]
        assert {"text": "too late", "chatId": chat_id, "late": True} in events


async def test_an_agent_that_answers_markdown_has_its_texts_marked(embedded_hub: HubProcess) -> None:
    hub, alice = embedded_hub, embedded_hub.mint("alice", "session")
    modes = {"defaultOutputModes": ["text/markdown", "text/plain"]}
    async with (
        agent(hub, "owner", Echoing, at=-1, fields=modes) as peer,
        client(hub.url, peer.handle, alice) as me,
    ):
        task = await me.send("*hi*")
        assert task["artifacts"][0]["parts"] == [{"text": "echo: *hi*", "mediaType": "text/markdown"}]


async def test_who_is_given_text_alone_is_told_what_is_left_out(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    script = 'raw f hi | data d {"n": 1} | say here you are'
    lines = ["artifact f: raw f.txt", "artifact d: data"]
    text = "\n".join(["here you are", *(f"[left out: {line}]" for line in lines)])
    async with online(hub, TaskPeer, at=-1) as peer, agent(hub, "alice") as mine:
        answer = (await route(hub, peer.handle, script)).json()
        assert (answer["reply"], answer["leftOut"]) == ("here you are", lines)
        assert "leftOut" not in (await route(hub, peer.handle, "say plain")).json()
        assert await mine.dispatch(peer.handle, script) == text
        assert await mine.route(peer.handle, script) == text
        await mine.dispatch(peer.handle, script, mode="tell")
        assert (await mine.heard("route_reply"))["text"] == text
