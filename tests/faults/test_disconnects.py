"""Callers and agents that vanish in the middle of a turn."""

import asyncio
import contextlib

import pytest

from lab.agents import Drop, Echo, Stall, online
from lab.callers import Json, failed_text, inbound, open_stream, reply_text, send, stream
from lab.hub_process import HubProcess
from lab.waiting import eventually

OFFLINE = "agent channel offline"
AT_ONCE_S = 15


async def audited(hub: HubProcess, agent: Echo, text: str) -> Json:
    """The audit row of a question, once its turn has ended well."""

    async def row() -> Json | None:
        log = await inbound(hub.url, agent.agent["id"], hub.mint("owner", "session"))
        return next((one for one in log["recent"] if one["question"] == text and one["ok"]), None)

    return await eventually(row, "the turn completes and is audited")


async def test_a_caller_who_leaves_a_stream_does_not_stop_the_turn(hub: HubProcess, alice: str) -> None:
    async with online(hub, Stall) as agent:
        async with open_stream(hub.urls[-1], agent.handle, "leaving", alice) as answer:
            await answer.next_line()
            prompt = await agent.heard("prompt")
        await agent.reply(prompt["chatId"], "to no caller")
        row = await audited(hub, agent, "leaving")
    assert (row["askerLogin"], row["routeId"]) == ("alice", prompt["chatId"])


async def test_a_caller_who_leaves_a_waiting_answer_does_not_stop_the_turn(
    hub: HubProcess, alice: str, bob: str
) -> None:
    async with online(hub, Stall, only_first=True) as agent:
        asking = asyncio.create_task(send(hub.urls[-1], agent.handle, "leaving", alice))
        prompt = await agent.heard("prompt")
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
        assert failed_text(await send(hub.url, agent.handle, "too early", bob)).endswith("another caller")
        await agent.reply(prompt["chatId"], "to no caller")
        await audited(hub, agent, "leaving")
        assert reply_text(await send(hub.url, agent.handle, "now", bob)) == "echo: now"


async def test_an_agent_that_drops_in_the_middle_fails_the_stream_at_once(hub: HubProcess, alice: str) -> None:
    async with online(hub, Drop) as agent:
        tasks = await asyncio.wait_for(stream(hub.urls[-1], agent.handle, "hello", alice), AT_ONCE_S)
        assert failed_text(tasks[-1]) == OFFLINE
        assert [task["status"]["state"] for task in tasks] == ["WORKING", "FAILED"]


@pytest.mark.parametrize("way", ["closes", "breaks off"])
async def test_a_lost_agent_fails_its_turn_at_once_and_frees_its_claim(
    hub: HubProcess, alice: str, bob: str, way: str
) -> None:
    async with online(hub, Stall, only_first=True) as agent:
        asking = asyncio.create_task(send(hub.urls[-1], agent.handle, "hello", alice))
        await agent.heard("prompt")
        if way == "closes":
            await agent.socket.close(1000, "stop")
        else:
            agent.socket.transport.abort()
        assert failed_text(await asyncio.wait_for(asking, AT_ONCE_S)) == OFFLINE
        await agent.connect(hub.urls[-1])
        assert reply_text(await send(hub.url, agent.handle, "now", bob)) == "echo: now"


async def test_an_agent_that_falls_silent_is_taken_off_line(embedded_hub: HubProcess) -> None:
    hub, alice = embedded_hub, embedded_hub.mint("alice", "session")

    async with online(hub, Deaf) as agent:
        await asyncio.wait_for(agent.closed.wait(), 30)
        assert failed_text(await send(hub.url, agent.handle, "hello", alice)) == OFFLINE
        assert len([frame for frame in agent.frames if frame["type"] == "ping"]) >= 2


class Deaf(Echo):
    async def on_frame(self, frame: Json) -> None:
        del frame
