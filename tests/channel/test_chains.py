"""Agents that ask agents: how far, not in circles, and always within the first caller's limits."""

import itertools
from contextlib import AsyncExitStack

from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from tests.channel.agents import Agent, agent, asking, rows

COMPOSABLE = {"isolated": False}


async def test_a_question_is_passed_on_three_times_and_never_in_a_circle(embedded_hub: HubProcess) -> None:
    hub = embedded_hub
    async with AsyncExitStack() as stack:
        owners = ["owner", "bob", "carol", "dora", "erin"]
        chain: list[Agent] = [
            await stack.enter_async_context(agent(hub, login, at=-(number % 2), fields=COMPOSABLE))
            for number, login in enumerate(owners)
        ]
        await stack.enter_async_context(asking(hub, "alice", chain[0]))
        for here, there in itertools.pairwise(chain[:4]):
            await here.request("dispatch", handle=there.handle, prompt="on you go", mode="ask")
            assert (await there.heard("prompt"))["askerUser"] == "alice"
            assert await there.dispatch(chain[0].handle) == (
                f"error: the question came through @{chain[0].handle} already, answer without asking it again"
            )
        assert await chain[3].dispatch(chain[4].handle) == (
            "error: too many agents passed this question on, answer without asking another"
        )
        for here, there in reversed(list(itertools.pairwise(chain[:4]))):
            await there.reply(there.prompts[0]["chatId"], f"from {there.handle}")
            heard = await here.heard("route_response", count=1 if here is chain[0] else 2)
            assert heard["reply"] == f"from {there.handle}"
        for owner, one in zip(owners[1:4], chain[1:4], strict=True):
            asked = (await rows(hub, owner, one.agent["id"]))[-1]
            assert (asked["askerLogin"], asked["ok"]) == ("alice", True)
        refused = await rows(hub, "erin", chain[4].agent["id"])
        assert [(row["askerLogin"], row["deniedReason"]) for row in refused] == [("alice", "too_deep")]


async def test_the_first_callers_rate_limit_holds_all_the_way(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    hub = start_hub(make_storage("embedded"), CALLER_RATE_PER_MINUTE=3)
    async with agent(hub, "owner", fields=COMPOSABLE) as mine, agent(hub, "bob") as other:
        async with asking(hub, "alice", mine):
            for _ in range(2):
                assert await mine.dispatch(other.handle, mode="tell") == "(tell mode — no reply)"
            refused = await mine.dispatch(other.handle, mode="tell")
            assert refused.startswith("error: the caller is over the rate limit, retry in ")
        reasons = [row["deniedReason"] for row in await rows(hub, "bob", other.agent["id"])]
        assert reasons[0] == "rate_limited"


async def test_an_onward_ask_spends_the_asked_agents_budget_and_holds_its_claim_for_the_first_caller(
    embedded_hub: HubProcess,
) -> None:
    hub = embedded_hub
    async with (
        agent(hub, "owner", fields=COMPOSABLE) as mine,
        agent(hub, "bob", fields={"dailyBudgetQueries": 1}) as other,
        agent(hub, "carol") as third,
        asking(hub, "alice", mine),
    ):
        await mine.request("dispatch", handle=other.handle, prompt="?", mode="ask")
        prompt = await other.heard("prompt")
        busy = await third.dispatch(other.handle)
        assert busy == f"error: @{other.handle} is processing a turn for another caller"
        await other.reply(prompt["chatId"], "once")
        assert (await mine.heard("route_response"))["reply"] == "once"
        assert await mine.dispatch(other.handle) == f"error: @{other.handle} hit its daily budget (1)"
