"""Refusals and failures of the hub dialect: FAILED tasks on HTTP 200, readable afterwards, texts to the letter."""

from lab.agents import Echo, gone, online
from lab.callers import Json, failed_text, get_task, inbound, reply_text, send, stream, text_of
from lab.hub_process import HubProcess
from tests.http_json import client

OFFLINE = "agent channel offline"


async def check_readable(hub: HubProcess, handle: str, token: str, task: Json) -> None:
    """A refused task answers GetTask like any other."""
    assert set(task) == {"id", "contextId", "status", "history"}
    assert set(task["status"]["message"]) == {"messageId", "role", "parts"}
    assert task["status"]["message"]["role"] == "ROLE_AGENT"
    assert [message["role"] for message in task["history"]] == ["ROLE_USER"]
    assert (await get_task(hub.url, handle, task["id"], token))["result"] == task


async def test_a_message_or_stream_to_an_agent_that_left_is_refused_at_once(hub: HubProcess, alice: str) -> None:
    async with online(hub, Echo) as agent:
        pass
    await gone(hub, agent)
    task = await send(hub.url, agent.handle, "hello", alice)
    [frame] = await stream(hub.url, agent.handle, "hello", alice)
    for refused in (task, frame):
        assert failed_text(refused) == OFFLINE
        await check_readable(hub, agent.handle, alice, refused)


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
