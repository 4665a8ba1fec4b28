"""Agents that take longer than the hub waits: those who stream, or do not wait, give them the agent's own time."""

import asyncio

from lab.agents import Slow, online
from lab.hub_process import HubProcess
from tests.v1.caller import Caller, reply_of, texts, told

TAKES_S = 2.8  # the hub of these tests waits 2 s


async def test_who_waits_in_line_is_told_after_the_hubs_own_time(short_wait_hub: HubProcess) -> None:
    token = short_wait_hub.mint("alice", "session")
    async with online(short_wait_hub, Slow, delay_s=TAKES_S, agent={"waitS": 30}) as agent:
        task = await Caller(short_wait_hub.url, agent.handle, token).send("hi")
    assert task["status"]["state"] == "TASK_STATE_FAILED"
    assert texts(task["status"]["message"]["parts"]) == "agent did not reply within 2s"
    assert task["status"]["message"]["metadata"] == {"reason": "timeout"}


async def test_who_streams_or_does_not_wait_gives_it_the_agents_time(short_wait_hub: HubProcess) -> None:
    token = short_wait_hub.mint("alice", "session")
    async with online(short_wait_hub, Slow, delay_s=TAKES_S, agent={"waitS": 30}) as agent:
        caller = Caller(short_wait_hub.url, agent.handle, token)
        begun = await caller.begin("one")
        events = await caller.stream("two")
        async with asyncio.timeout(30):
            while (task := await caller.get(begun["id"]))["status"]["state"] != "TASK_STATE_COMPLETED":
                await asyncio.sleep(0.1)
    assert reply_of(task) == "echo: one"
    assert told(events)[-1] == "COMPLETED"


async def test_without_a_time_of_its_own_it_has_the_hubs(short_wait_hub: HubProcess) -> None:
    token = short_wait_hub.mint("alice", "session")
    async with online(short_wait_hub, Slow, delay_s=TAKES_S) as agent:
        events = await Caller(short_wait_hub.url, agent.handle, token).stream("hi")
    assert events[-1].state == "FAILED"
    assert texts(events[-1].content["status"]["message"]["parts"]) == "agent did not reply within 2s"
