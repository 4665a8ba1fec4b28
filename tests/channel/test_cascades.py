"""The end of a turn cancels the turns that agents began in it, whichever process holds them."""

import time
from contextlib import AsyncExitStack
from functools import partial

import pytest

from lab.callers import Json, bearer, web
from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.channel.agents import Agent, agent, rows, sql
from tests.v1.caller import Caller

COMPOSABLE = {"isolated": False}
HEARS_CANCEL = {"features": ["cancel"]}
WITHIN_S = 20.0  # documented as 2 s; without it the last would run for 90 s


async def chain_of(
    stack: AsyncExitStack, hub: HubProcess, first: Json | None = None
) -> tuple[Agent, Agent, Agent, Caller, Json]:
    """Alice asks the first agent, which asks the second, which asks the third; the caller and her task."""
    one = await stack.enter_async_context(
        agent(hub, "owner", at=0, fields=COMPOSABLE | (first or {}), **HEARS_CANCEL)
    )
    two = await stack.enter_async_context(agent(hub, "bob", at=-1, fields=COMPOSABLE, **HEARS_CANCEL))
    three = await stack.enter_async_context(agent(hub, "carol", at=0, fields=COMPOSABLE, **HEARS_CANCEL))
    caller = Caller(hub.urls[-1], one.handle, hub.mint("alice", "session"))
    task = await caller.begin("do it")
    await one.heard("prompt")
    await one.request("dispatch", handle=two.handle, prompt="a part of it", mode="ask")
    await two.heard("prompt")
    await two.request("dispatch", handle=three.handle, prompt="a part of the part", mode="tell")
    await three.heard("prompt")
    return one, two, three, caller, task


async def check_canceled(hub: HubProcess, *agents: tuple[str, Agent]) -> None:
    for owner, one in agents:
        canceled = await one.heard("cancel", within_s=WITHIN_S)
        assert canceled["chatId"] == one.prompts[0]["chatId"]
        await one.reply(canceled["chatId"], "I stopped")  # it ends its reply, which frees the claim
        row = await eventually(partial(ended, hub, owner, one), f"the turn of {owner}'s agent has ended")
        assert (row["ok"], row["deniedReason"]) == (False, "canceled")


async def ended(hub: HubProcess, owner: str, one: Agent) -> Json | None:
    """The one turn of an agent in its owner's audit, once it has ended."""
    (row,) = await rows(hub, owner, one.agent["id"])
    return None if row["deniedReason"] == "in_progress" else row


def used(hub: HubProcess, one: Agent) -> int:
    """The part of its budget that an agent has spent; today is the only day."""
    ((queries,),) = sql(hub, "SELECT queries FROM agents_dailyusage WHERE agent_id = ?", one.agent["id"])
    return int(queries)


@pytest.mark.distributed
@pytest.mark.slow
@pytest.mark.parametrize("how", ["canceled", "timed out", "lost", "halted"])
async def test_the_end_of_a_turn_cancels_the_turns_that_agents_began_in_it(
    two_process_hub: HubProcess, how: str
) -> None:
    """On one process `test_an_agent_that_works_on_after_a_cancel_begins_no_more_turns` shows the same."""
    hub = two_process_hub
    async with AsyncExitStack() as stack:
        first = {"waitS": 3} if how == "timed out" else None  # the chain is there by then
        one, two, three, caller, task = await chain_of(stack, hub, first)
        match how:
            case "canceled":
                await caller.call("CancelTask", {"id": task["id"]})
            case "timed out":
                await one.heard("route_response")
            case "lost":
                await one.socket.close()
            case "halted":
                async with web(hub.urls[-1]) as client:
                    headers = bearer(hub.mint("owner", "session"))
                    await client.post(f"/api/v1/agents/{one.agent['id']}/halt", json={}, headers=headers)
        since = time.monotonic()
        await check_canceled(hub, ("bob", two), ("carol", three))
        assert time.monotonic() - since < WITHIN_S
        if how in ("canceled", "timed out"):
            response = await one.heard("route_response")
            assert response["reply"] == f"error: the question to @{two.handle} was canceled"
        assert [used(hub, two), used(hub, three)] == [1, 1]


async def test_an_agent_that_works_on_after_a_cancel_begins_no_more_turns(hub: HubProcess) -> None:
    async with AsyncExitStack() as stack:
        one, two, _, caller, task = await chain_of(stack, hub)
        await caller.call("CancelTask", {"id": task["id"]})
        refused = await one.dispatch(two.handle)
        assert refused == "error: the question that you ask this for was canceled or failed, stop working on it"
        await two.heard("cancel", within_s=WITHIN_S)
        denied, _ = await rows(hub, "bob", two.agent["id"])
        assert (denied["deniedReason"], used(hub, two)) == ("ended", 1)


async def test_what_was_told_goes_on_when_its_turn_was_answered(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with (
        agent(hub, "owner", fields=COMPOSABLE) as one,
        agent(hub, "bob", at=-1, **HEARS_CANCEL) as two,
        agent(hub, "carol", **HEARS_CANCEL) as three,
    ):
        alice = hub.mint("alice", "session")
        answered, canceled = Caller(hub.url, one.handle, alice), Caller(hub.url, one.handle, alice)
        await answered.begin("one")
        first = await one.heard("prompt")
        second_task = await canceled.begin("two")
        second = await one.heard("prompt", count=2)
        for named, other in ((first, two), (second, three)):  # each for the question that it names
            await one.request("dispatch", handle=other.handle, prompt="?", mode="tell", chatId=named["chatId"])
            await other.heard("prompt")
        await one.reply(first["chatId"], "done")
        await canceled.call("CancelTask", {"id": second_task["id"]})
        await three.heard("cancel", within_s=WITHIN_S)
        assert [frame for frame in two.frames if frame["type"] == "cancel"] == []
        await two.reply(two.prompts[0]["chatId"], "I went on")
        await three.reply(three.prompts[0]["chatId"], "stopped")

        async def is_answered() -> bool:
            (row,) = await rows(hub, "bob", two.agent["id"])
            return bool(row["ok"])

        await eventually(is_answered, "its turn went on to its end")
