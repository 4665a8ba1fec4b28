"""Refusals and failures of the hub dialect: FAILED tasks on HTTP 200, readable afterwards, texts to the letter."""

import asyncio
import re

from lab.agents import Echo, Held, Stall, gone, online
from lab.callers import Json, failed_text, get_task, inbound, reply_text, send, stream, text_of
from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import HubStorage
from tests.http_json import client

OFFLINE = "agent channel offline"
BUSY = "agent is processing a turn for another caller"


async def check_readable(hub: HubProcess, handle: str, token: str, task: Json) -> None:
    """A refused task answers GetTask like any other."""
    assert set(task) == {"id", "contextId", "status", "history"}
    assert set(task["status"]["message"]) == {"messageId", "role", "parts"}
    assert task["status"]["message"]["role"] == "ROLE_AGENT"
    assert [message["role"] for message in task["history"]] == ["ROLE_USER"]
    assert (await get_task(hub.url, handle, task["id"], token))["result"] == task


async def test_a_message_to_an_agent_that_left_is_refused_at_once(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        pass
    await gone(hub, agent)
    task = await send(hub.url, agent.handle, "hello", alice)
    assert failed_text(task) == OFFLINE
    await check_readable(hub, agent.handle, alice, task)


async def test_the_daily_budget_is_spent_by_answers_and_then_refuses_by_either_binding(
    hub: HubProcess, alice: str, bob: str
) -> None:
    async with online(hub, Echo, agent={"dailyBudgetQueries": 2}) as agent:
        reply_text(await send(hub.url, agent.handle, "one", alice))
        reply_text(await send(hub.urls[-1], agent.handle, "two", bob))
        task = await send(hub.url, agent.handle, "three", alice)
        assert failed_text(task) == f"agent @{agent.handle} hit its daily budget (2)"
        await check_readable(hub, agent.handle, alice, task)
        async with client(hub.url, agent.handle, alice) as over_http:
            status = (await over_http.send("four"))["status"]
        assert (status["state"], text_of(status["message"])) == ("TASK_STATE_FAILED", failed_text(task))
        assert [prompt["text"] for prompt in agent.prompts] == ["one", "two"]


async def test_another_callers_turn_refuses_and_spends_nothing(hub: HubProcess, alice: str, bob: str) -> None:
    async with online(hub, Held, agent={"dailyBudgetQueries": 2}) as agent:
        driving = asyncio.create_task(send(hub.url, agent.handle, "first", alice))
        await agent.heard("prompt")
        task = await send(hub.urls[-1], agent.handle, "second", bob)
        assert failed_text(task) == BUSY
        agent.release.set()
        reply_text(await driving)
        assert reply_text(await send(hub.urls[-1], agent.handle, "second", bob)) == "echo: second"


async def test_a_caller_may_hold_as_many_turns_as_the_cap_and_no_more(hub: HubProcess, alice: str) -> None:
    async with online(hub, Held, agent={"concurrencyCap": 2}) as agent:
        held = [asyncio.create_task(send(hub.url, agent.handle, f"{number}", alice)) for number in range(2)]
        await agent.heard("prompt", count=2)
        task = await send(hub.urls[-1], agent.handle, "third", alice)
        assert failed_text(task) == "agent already holds 2 of your questions"
        agent.release.set()
        assert [reply_text(one) for one in await asyncio.gather(*held)] == ["echo: 0", "echo: 1"]
        assert reply_text(await send(hub.url, agent.handle, "third", alice)) == "echo: third"


async def test_an_agent_that_says_nothing_fails_after_the_wait(short_wait_hub: HubProcess) -> None:
    alice = short_wait_hub.mint("alice", "session")
    async with online(short_wait_hub, Stall) as agent:
        task = await send(short_wait_hub.url, agent.handle, "hello", alice)
        assert failed_text(task) == "agent did not reply within 2s"
        await check_readable(short_wait_hub, agent.handle, alice, task)


async def test_a_refused_stream_is_one_failed_frame(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        pass
    await gone(hub, agent)
    tasks = await stream(hub.url, agent.handle, "hello", alice)
    assert [failed_text(task) for task in tasks] == [OFFLINE]
    await check_readable(hub, agent.handle, alice, tasks[0])


async def test_a_caller_over_the_rate_is_told_when_to_come_back(home: HubStorage, start_hub: StartHub) -> None:
    hub = start_hub(home, CALLER_RATE_PER_MINUTE=2)
    alice, bob = hub.mint("alice", "session"), hub.mint("bob", "session")
    async with online(hub, Echo) as agent:
        for _ in range(2):
            reply_text(await send(hub.url, agent.handle, "hello", alice))
        text = failed_text(await send(hub.url, agent.handle, "hello", alice))
        assert re.fullmatch(r"over your rate limit, retry in [1-9]\d? s", text)
        reply_text(await send(hub.url, agent.handle, "hello", bob))
        assert len(agent.prompts) == 3


async def test_every_refusal_is_audited_and_a_storm_of_them_shares_rows(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        await send(hub.url, agent.handle, "answered", alice)
    await gone(hub, agent)
    for _ in range(30):
        assert failed_text(await send(hub.url, agent.handle, "refused", alice)) == OFFLINE
    log = await inbound(hub.url, agent.agent["id"], hub.mint("owner", "session"))
    assert (log["summary"]["total"], log["summary"]["ok"], log["summary"]["denied"]) == (31, 1, 30)
    refused = [row for row in log["recent"] if row["question"] == "refused"]
    assert {row["deniedReason"] for row in refused} == {"offline"}
    assert 1 < len(refused) <= 22
