"""Proposals and votes over the socket: who gets which frame, what is refused, and what a restart keeps."""

from lab.hub_process import HubProcess
from lab.waiting import eventually
from tests.gateway.client import code_of, in_ms, owner_of, seat, team

TRIAD = ("alpha", "beta", "charlie")


async def test_two_of_three_decide_and_each_is_told_once(hub: HubProcess) -> None:
    async with team(hub, "triad-1", "steward", *TRIAD) as (steward, alpha, beta, charlie):
        acknowledged = await steward.propose("p-1", reasoning="it is safe", deadline=in_ms(60))
        assert acknowledged["state"] == "deliberating"
        for member in (alpha, beta, charlie):
            frame = await member.find("proposal")
            assert (frame["from"], frame["id"]) == ("steward", "p-1")
            assert frame["metadata"] == {"requiresResponse": True, "correlationId": "p-1"}
            content = frame["content"]
            assert (content["proposal"], content["reasoning"]) == ("Write it in Rust", "it is safe")
        assert (await alpha.vote("p-1", "approve", reasoning="yes", confidence=0.8))["state"] == "deliberating"
        assert (await beta.vote("p-1", "approve"))["state"] == "approved"
        for member in (steward, alpha, beta, charlie):
            decision = await member.decision("p-1")
            assert (decision["proposalId"], decision["state"]) == ("p-1", "approved")
            assert decision["votes"] == {"alpha": "approve", "beta": "approve"}
        late = await charlie.vote("p-1", "reject")
        assert (late["code"], late["reason"]) == (2005, "proposal_closed")
        shown = (await steward.request("triad.get", proposalId="p-1"))["proposal"]
        assert (shown["result"], shown["votes"]) == ("approved", {"alpha": "approve", "beta": "approve"})
        history = [(one["agent"], one["vote"], one["late"]) for one in shown["history"]]
        assert history == [("alpha", "approve", False), ("beta", "approve", False), ("charlie", "reject", True)]
        assert [one["proposalId"] for one in (await alpha.request("triad.list"))["proposals"]] == ["p-1"]
        for member in (steward, alpha, beta, charlie):
            await member.settle()
            assert member.count("decision", "p-1") == 1


async def test_a_vote_may_change_and_who_is_no_member_has_none(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "triad-2", "steward", *TRIAD, "coder") as (steward, alpha, beta, charlie, coder):
        await steward.propose("p-2")
        for choice in ("approve", "approve", "reject"):
            assert (await alpha.vote("p-2", choice))["state"] == "deliberating", choice
        for other in (steward, coder):
            refused = await other.vote("p-2", "approve")
            assert (refused["code"], refused["reason"]) == (5004, "not_triad_member")
        assert (await beta.vote("p-2", "reject"))["state"] == "rejected"
        decision = await charlie.decision("p-2")
        assert (decision["result"], decision["consensus"]) == ("rejected", True)
        shown = (await steward.request("triad.get", proposalId="p-2"))["proposal"]
        assert [one["vote"] for one in shown["history"]] == ["approve", "reject", "reject"]


async def test_a_proposal_has_two_ids_and_is_repeated_without_effect(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "triad-3", "steward", "alpha") as (steward, alpha):
        about = {"correlationId": "p-3"}
        await steward.ask("proposal", {"proposal": "one"}, id="msg-3", metadata=about)
        frame = await alpha.find("proposal")
        assert (frame["id"], frame["content"]["proposalId"]) == ("msg-3", "p-3")
        assert (await steward.propose("p-3", "one"))["state"] == "deliberating"
        refused = await steward.propose("p-3", "another")
        assert (refused["code"], refused["reason"]) == (2005, "correlation_in_use")
        # As the sample of the specification votes: by the id of the frame alone.
        assert (await alpha.vote(frame["id"], "abstain"))["proposalId"] == "p-3"
        voted = await alpha.ask("vote", {"vote": "approve"}, metadata=about)
        assert voted["content"]["result"]["vote"] == "approve"
        await steward.propose("p-4")
        refused = await alpha.ask("vote", {"proposalId": "p-4", "vote": "approve"}, metadata=about)
        assert (refused["content"]["code"], refused["content"]["field"]) == (2005, "content.proposalId")
        assert alpha.count("proposal", "p-3") == 1


async def test_what_the_protocol_does_not_name_is_passed_on_to_members(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "triad-13", "steward", "alpha") as (steward, alpha):
        content = {"proposal": "one", "plan": {"steps": 2}, "votes": {"alpha": "approve"}}
        metadata = {"correlationId": "p-14", "threadId": "t", "caller": "forged"}
        await steward.ask("proposal", content, id="msg-14", metadata=metadata, note="n")
        frame = await alpha.find("proposal")
        assert (frame["content"]["plan"], frame["note"]) == ({"steps": 2}, "n")
        assert frame["metadata"] == {"threadId": "t", "requiresResponse": True, "correlationId": "p-14"}
        assert "votes" not in frame["content"]
        refused = await steward.propose("p-14", "one", plan={"steps": 3})
        assert refused["reason"] == "correlation_in_use"
        assert (await steward.propose("p-14", "one", plan={"steps": 2}))["state"] == "deliberating"


async def test_bad_proposals_and_votes_are_refused(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "triad-4", "steward", "alpha") as (steward, alpha):
        for content, code, reason in (
            ({"deadline": in_ms(-1)}, 2005, "deadline_past"),
            ({"deadline": -(2**53)}, 2005, "deadline_past"),
            ({"deadline": 2**53}, 2005, "deadline_too_far"),
            ({"deadline": in_ms(86_460)}, 2005, "deadline_too_far"),
            ({"deadline": "soon"}, 2003, None),
            ({"reasoning": "x" * 16_385}, 2005, "too_large"),
            ({"category": "c" * 33}, 2005, None),
            ({"plan": ["x" * 16_385]}, 2005, "too_large"),
        ):
            refused = await steward.propose("bad", **content)
            assert (refused["code"], refused.get("reason")) == (code, reason), content
        assert (await alpha.vote("bad", "approve"))["reason"] == "proposal_not_found"
        await steward.propose("p-5")
        assert (await alpha.vote("p-5", "maybe"))["code"] == 2005
        assert (await alpha.vote("p-5", "approve", confidence=2))["code"] == 2005
        await alpha.send("vote", {"vote": "approve"})
        assert code_of(await alpha.find("error", lambda frame: "metadata" not in frame))[0] == 2002
        assert (await alpha.request("triad.get", proposalId="absent"))["error"]["reason"] == "proposal_not_found"
        assert (await alpha.request("triad.list", limit=0))["error"]["field"] == "content.params.limit"


async def test_a_deadline_decides_by_the_votes_that_are_there(embedded_hub: HubProcess) -> None:
    async with team(embedded_hub, "triad-6", "steward", *TRIAD) as (steward, alpha, beta, _charlie):
        await steward.propose("p-6", deadline=in_ms(1.5))
        await alpha.vote("p-6", "approve")
        await beta.vote("p-6", "reject")
        decision = await steward.decision("p-6")
        assert (decision["state"], decision["result"], decision["consensus"]) == ("blocked", "rejected", False)
        assert decision["missing"] == ["charlie"]
        assert (await beta.vote("p-6", "approve"))["reason"] == "proposal_closed"


async def test_members_and_proposer_that_were_away_are_told_when_they_come(hub: HubProcess) -> None:
    token = hub.mint("triad-7", "channel")
    async with seat(hub.urls[0], token, "steward") as steward:
        assert (await steward.propose("p-7"))["state"] == "pending"
    for name in ("alpha", "beta"):
        async with seat(hub.urls[-1], token, name) as member:
            await member.find("proposal", lambda frame: frame["metadata"]["correlationId"] == "p-7")
            await member.vote("p-7", "reject")
    async with seat(hub.urls[-1], token, "steward") as steward:
        assert (await steward.decision("p-7"))["result"] == "rejected"

        async def is_noted() -> bool:
            async with seat(hub.urls[0], token, "steward") as again:
                await again.request("triad.list")
                return again.count("decision", "p-7") == 0

        await eventually(is_noted, "the decision is noted as sent")


async def test_subscribers_of_a_proposal_see_its_votes_and_its_decision(embedded_hub: HubProcess) -> None:
    async with (
        owner_of(embedded_hub, "triad-12") as watcher,
        team(embedded_hub, "triad-12", "alpha", "beta") as (alpha, beta),
    ):
        await alpha.propose("p-13")
        for client in (watcher, beta):
            await client.ask("subscribe", {"channel": "triad:p-13"})
        await alpha.vote("p-13", "approve", reasoning="yes")
        seen = await watcher.find("vote")
        assert (seen["from"], seen["metadata"]) == ("alpha", {"correlationId": "p-13"})
        assert seen["content"] == {"proposalId": "p-13", "vote": "approve", "reasoning": "yes"}
        await beta.vote("p-13", "approve")
        for client in (watcher, beta):
            assert (await client.decision("p-13"))["result"] == "approved"
            await client.settle()
            assert (client.count("vote", "p-13"), client.count("decision", "p-13")) == (2, 1)
