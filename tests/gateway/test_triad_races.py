"""Votes at one moment, and a process that dies: a decision is made once, or not yet."""

import asyncio
import json
from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from lab.hub_process import DEFAULTS, HubProcess, StartHub
from lab.hub_storage import MakeStorage, hub_env
from lab.statements import mint_tokens, writing
from tests.gateway.client import GatewayClient, in_ms, seat, team
from tests.race_programs import run_program

MEMBERS = [f"agent-{number}" for number in range(200)]
NEEDED = len(MEMBERS) // 2 + 1
WITHIN_S = 60
NEW_PROPOSAL = """
INSERT INTO gateway_proposal (owner_id, "key", alias, proposer, text, reasoning, category, carried, members,
steward, threshold, state, has_consensus, created_at, deadline, tie_broken_by, awaits_decision, home)
SELECT id, 'race', '', 'operator', 'text', '', '', ?, ?, '', 'simple', 'deliberating', ?, ?, ?, '', ?, 'a-process'
FROM accounts_user WHERE login = 'racers' RETURNING owner_id
"""
ROWS = """
SELECT p.state, p.decided_at IS NOT NULL, COUNT(CASE WHEN v.counts THEN 1 END),
COUNT(CASE WHEN v.is_late THEN 1 END)
FROM gateway_proposal p JOIN gateway_vote v ON v.proposal_id = p.id GROUP BY p.id, p.state, p.decided_at
"""


@pytest.mark.slow
@pytest.mark.distributed
async def test_of_two_hundred_votes_in_two_processes_one_decides(make_storage: MakeStorage) -> None:
    home = make_storage("grown")
    env = hub_env({**DEFAULTS, **home.env, "PUBLIC_URL": "http://127.0.0.1:9"})
    env |= {"DJANGO_SETTINGS_MODULE": "hub.settings"}
    mint_tokens(env, [("racers", "session", False)])
    now = datetime.now(UTC)
    with writing(env) as run:
        values = ("{}", json.dumps(MEMBERS), False, now, now + timedelta(hours=1), False)
        [owner] = run(NEW_PROPOSAL, *values).fetchone()
    others_ready = asyncio.Barrier(2)
    halves = (MEMBERS[::2], MEMBERS[1::2])
    async with asyncio.timeout(WITHIN_S):
        found = await asyncio.gather(
            *(
                run_program(
                    "tests.gateway.voting", env, {"owner": owner, "key": "race", "names": names}, others_ready
                )
                for names in halves
            )
        )
    answers = sum((Counter(one["answers"]) for one in found), Counter())
    late = len(MEMBERS) - NEEDED
    assert answers == {"deliberating": NEEDED - 1, "approved": 1, "proposal_closed": late}
    assert sum(one["decisions"] for one in found) == 1
    with writing(env) as run:
        assert [tuple(row) for row in run(ROWS).fetchall()] == [("approved", True, NEEDED, late)]


async def test_members_who_vote_at_one_moment_decide_each_proposal_once(hub: HubProcess) -> None:
    """Each changes its vote over and over, in whatever process its seat is."""
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
