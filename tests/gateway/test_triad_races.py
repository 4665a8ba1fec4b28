"""Votes at one moment, and a process that dies: a decision is made once, or not yet."""

import asyncio

import pytest

from lab.hub_process import HubProcess, StartHub
from lab.hub_storage import MakeStorage
from tests.gateway.client import GatewayClient, in_ms, seat, team


async def test_members_who_vote_at_one_moment_decide_each_proposal_once(hub: HubProcess) -> None:
    """Every member changes its vote over and over, in whatever process its seat is."""
    keys = [f"race-{number}" for number in range(10)]
    async with team(hub, "racers", "alpha", "beta", "charlie", "steward") as (*members, steward):
        for key in keys:
            await steward.propose(key, deadline=in_ms(60))

        async def vote(member: GatewayClient, key: str) -> None:
            for choice in ("approve", "reject", "approve", "reject"):
                await member.send("vote", {"vote": choice}, metadata={"correlationId": key})

        await asyncio.gather(*(vote(member, key) for key in keys for member in members))
        for key in keys:
            decisions = [await one.decision(key) for one in (*members, steward)]
            assert all(one == decisions[0] for one in decisions)
            assert decisions[0]["consensus"] is True
            shown = (await steward.request("triad.get", proposalId=key))["proposal"]
            assert (shown["result"], shown["votes"]) == (decisions[0]["result"], decisions[0]["votes"])
        for client in (*members, steward):
            await client.settle()
            assert [client.count("decision", key) for key in keys] == [1] * len(keys)


@pytest.mark.slow
async def test_a_hub_that_dies_before_the_decision_decides_afterwards(
    make_storage: MakeStorage, start_hub: StartHub
) -> None:
    home = make_storage("embedded")
    hub = start_hub(home, FAIL_POINTS="before-decision-commit")
    channel = hub.mint("team", "channel")
    async with team(hub, "team", "steward", "alpha", "beta") as (steward, alpha, beta):
        await steward.propose("p-1", deadline=in_ms(60))
        await steward.propose("p-2", deadline=in_ms(2))
        await alpha.vote("p-1", "approve")
        await alpha.vote("p-2", "approve")
        await beta.send("vote", {"vote": "approve"}, metadata={"correlationId": "p-1"})
        for client in (steward, alpha, beta):
            await client.closed()
            assert client.count("decision", "p-1") == 0
    assert await hub.exit_code() == -9
    hub = start_hub(home)
    async with seat(hub.url, channel, "steward") as steward, seat(hub.url, channel, "beta") as beta:
        shown = (await steward.request("triad.get", proposalId="p-1"))["proposal"]
        assert (shown["state"], shown["votes"]) == ("deliberating", {"alpha": "approve"})
        await beta.find("proposal", lambda frame: frame["content"]["proposalId"] == "p-1")
        assert (await beta.vote("p-1", "approve"))["state"] == "approved"
        assert (await steward.decision("p-1"))["result"] == "approved"
        # The deadline of this one passed, or passes, without a vote that decides.
        decision = await steward.decision("p-2")
        assert (decision["state"], decision["votes"]) == ("blocked", {"alpha": "approve"})
