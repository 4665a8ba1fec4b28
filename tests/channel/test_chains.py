"""Agents that ask agents: how far, not in circles, and always within the first caller's limits."""

from lab.hub_process import HubProcess
from tests.channel.agents import agent, asking

COMPOSABLE = {"isolated": False}


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
