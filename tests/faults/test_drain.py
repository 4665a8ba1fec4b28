"""SIGTERM: what runs may finish, nothing new begins, and the next start finds everything in order."""

import asyncio
import sqlite3
import time
from contextlib import closing

import httpx
import pytest
from websockets.exceptions import InvalidStatus

from lab.agents import Echo, Held, Stall, online
from lab.callers import (
    bearer,
    envelope,
    failed_text,
    inbound,
    open_stream,
    question,
    reply_text,
    rpc_path,
    send,
    web,
)
from lab.channel_agent import dial
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import HubStorage, MakeStorage
from lab.waiting import eventually
from tests.channel.agents import eventually_queued
from tests.deploy.collector import collecting

SERVICE_RESTART = 1012


async def status_of_an_ask(hub: HubProcess, handle: str, token: str) -> int:
    """The HTTP status of one more question; 0 when nothing listens."""
    async with web(hub.url) as client:
        try:
            body = envelope("SendMessage", question("one more"))
            response = await client.post(rpc_path(handle), json=body, headers=bearer(token))
        except httpx.TransportError:
            return 0
    assert response.status_code != 503 or response.json()["error"]["message"]
    return response.status_code


@pytest.mark.slow
async def test_a_turn_that_runs_finishes_while_new_questions_get_503_and_the_next_start_is_clean(
    home: HubStorage, start_hub: StartHub
) -> None:
    hub = start_hub(home)
    alice, bob = hub.mint("alice", "session"), hub.mint("bob", "session")
    async with online(hub, Held, agent={"queueing": {"max": 1}}) as agent:
        asking = asyncio.create_task(send(hub.url, agent.handle, "before", alice))
        await agent.heard("prompt")
        waiting = asyncio.create_task(send(hub.url, agent.handle, "me too", bob))
        await eventually_queued(hub, agent, 1)
        hub.terminate()
        assert failed_text(await waiting) == "the hub stopped before the agent answered"

        async def refused() -> bool:
            return await status_of_an_ask(hub, agent.handle, bob) == 503

        await eventually(refused, "new questions get 503", every_s=0.05)
        agent.release.set()
        assert reply_text(await asking) == "echo: before"
        bye = await agent.heard("bye")
        assert bye["retry"] is True
        await agent.closed.wait()
        assert agent.socket.close_code == SERVICE_RESTART
        assert await hub.exit_code() == 0
        await asyncio.to_thread(hub.serve, 0)
        await agent.connect()
        assert reply_text(await send(hub.url, agent.handle, "after", bob)) == "echo: after"
        log = await inbound(hub.url, agent.agent["id"], hub.mint("owner", "session"))
    answered = [(row["question"], row["ok"]) for row in log["recent"]]
    assert answered == [("after", True), ("me too", False), ("before", True)]


@pytest.mark.slow
async def test_sockets_are_refused_during_a_drain_and_told_to_try_again(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("embedded"))
    alice = hub.mint("alice", "session")
    async with online(hub, Held) as agent:
        asking = asyncio.create_task(send(hub.url, agent.handle, "before", alice))
        await agent.heard("prompt")
        hub.terminate()

        async def is_draining() -> bool:  # an ask that came before would wait for the agent
            return httpx.get(f"{hub.url}/readyz", trust_env=False).status_code == 503

        await eventually(is_draining, "the hub says that it is not ready", every_s=0.05)
        for path in ("channel", "gateway"):
            with pytest.raises(InvalidStatus) as caught:
                await dial(f"{hub.url.replace('http', 'ws', 1)}/{path}", alice)
            response = caught.value.response
            assert (response.status_code, response.headers["retry-after"]) == (503, "2")
        agent.release.set()
        await asking


@pytest.mark.slow
async def test_a_turn_that_outlasts_the_drain_fails_and_the_hub_leaves(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("embedded"), DRAIN_S=1)
    alice = hub.mint("alice", "session")
    async with online(hub, Stall) as agent, open_stream(hub.url, agent.handle, "hello", alice) as answer:
        await agent.heard("prompt")
        hub.terminate()
        began = time.monotonic()
        states = [task["status"]["state"] async for task in answer.tasks()]
        assert states == ["WORKING", "FAILED"]
        assert await hub.exit_code() == 0
        assert time.monotonic() - began < 20
    await asyncio.to_thread(hub.serve, 0)
    log = await inbound(hub.url, agent.agent["id"], hub.mint("owner", "session"))
    assert [row["ok"] for row in log["recent"]] == [False]
    assert log["recent"][0]["deniedReason"]


async def test_a_step_of_leaving_that_fails_keeps_no_other(make_storage: MakeStorage, start_hub: StartHub) -> None:
    """The database keeps the process' row; its last spans, which go after that, are sent all the same."""
    home = make_storage("embedded")
    with collecting() as collector:
        env = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_BSP_SCHEDULE_DELAY": 60_000}
        hub = start_hub(home, **env)
        async with online(hub, Echo) as agent:
            assert reply_text(await send(hub.url, agent.handle, "hello", hub.mint("alice", "session")))
        with closing(sqlite3.connect(home.folder / "hub.sqlite3", timeout=10)) as database:
            database.execute(
                "CREATE TRIGGER stays BEFORE DELETE ON agents_process BEGIN SELECT RAISE(ABORT, 'it stays'); END"
            )
        assert not collector.spans
        hub.terminate()
        assert await hub.exit_code() == 0
        assert "stop.failed step='presence'" in hub.programs[0].output
        assert "ask" in [span.name for span in collector.spans]
