"""Agents that ask agents: how far, not in circles, and always within the first caller's limits."""

from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from tests.channel.agents import agent, asking, rows
from tests.operators.operator import refused, route

COMPOSABLE = {"isolated": False}


async def test_the_first_callers_rate_limit_holds_all_the_way(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    """Also for what the same user asks as an operator, who is told when to come back."""
    hub = start_hub(make_storage("embedded"), CALLER_RATE_PER_MINUTE=3)
    async with agent(hub, "owner", fields=COMPOSABLE) as mine, agent(hub, "bob") as other:
        async with asking(hub, "alice", mine):
            for _ in range(2):
                assert await mine.dispatch(other.handle, mode="tell") == "(tell mode — no reply)"
            told = await mine.dispatch(other.handle, mode="tell")
            assert told.startswith("error: the caller is over the rate limit, retry in ")
        reasons = [row["deniedReason"] for row in await rows(hub, "bob", other.agent["id"])]
        assert reasons[0] == "rate_limited"
        answer = await route(hub, hub.mint("alice", "session"), other.handle, "hello?")
        refused(answer, 429, "rate_limited")
        assert 0 < int(answer.headers["retry-after"]) <= 60


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
