"""The rules by which votes decide: all multisets of three votes, other thresholds, and the tie-break."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from itertools import product
from typing import Any

import pytest

from gateway.models import Proposal, Vote
from gateway.service.proposal_reads import show_result
from gateway.service.proposals import VoteResult, break_tie, decide, votes_needed

MEMBERS = ("alpha", "beta", "charlie")
KINDS = ("approve", "reject", "abstain")
TABLE = {  # approve, reject, abstain, missing: result, consensus
    (3, 0, 0, 0): ("approved", True),
    (2, 1, 0, 0): ("approved", True),
    (2, 0, 1, 0): ("approved", True),
    (2, 0, 0, 1): ("approved", True),
    (1, 2, 0, 0): ("rejected", True),
    (0, 3, 0, 0): ("rejected", True),
    (0, 2, 1, 0): ("rejected", True),
    (0, 2, 0, 1): ("rejected", True),
    (1, 1, 1, 0): ("rejected", False),
    (1, 1, 0, 1): ("rejected", False),
    (1, 0, 2, 0): ("rejected", False),
    (1, 0, 1, 1): ("rejected", False),
    (1, 0, 0, 2): ("rejected", False),
    (0, 1, 2, 0): ("rejected", False),
    (0, 1, 1, 1): ("rejected", False),
    (0, 1, 0, 2): ("rejected", False),
    (0, 0, 3, 0): ("rejected", False),
    (0, 0, 2, 1): ("rejected", False),
    (0, 0, 1, 2): ("rejected", False),
    (0, 0, 0, 3): ("rejected", False),
}
OPEN_BEFORE_THE_DEADLINE = {(1, 1, 0, 1), (1, 0, 1, 1), (1, 0, 0, 2), (0, 1, 1, 1), (0, 1, 0, 2), (0, 0, 1, 2)}
OPEN_BEFORE_THE_DEADLINE.add((0, 0, 0, 3))


def make_votes(approve: int, reject: int, abstain: int, missing: int) -> dict[str, str]:
    cast = [*["approve"] * approve, *["reject"] * reject, *["abstain"] * abstain]
    assert len(cast) + missing == len(MEMBERS)
    return dict(zip(MEMBERS, cast, strict=False))


def show(verdict: VoteResult, votes: Mapping[str, str], members: Sequence[str] = MEMBERS) -> dict[str, Any]:
    """The view of clients on a proposal with these votes."""
    decided_at = None if verdict.is_open else datetime.now(UTC)
    proposal = Proposal(
        members=list(members), state=verdict.state, has_consensus=verdict.consensus, decided_at=decided_at
    )
    return show_result(proposal, [Vote(voter=voter, vote=vote) for voter, vote in votes.items()])


def test_the_votes_at_the_deadline_decide(subtests: pytest.Subtests) -> None:
    kinds = (*KINDS, "missing")
    assert {tuple(votes.count(kind) for kind in kinds) for votes in product(kinds, repeat=3)} == set(TABLE)
    for counts, expected in TABLE.items():
        with subtests.test(counts=counts):
            votes = make_votes(*counts)
            verdict = decide(votes, MEMBERS, "simple", is_over=True)
            shown = show(verdict, votes)
            assert (shown["result"], shown["consensus"]) == expected
            assert shown["unanimous"] is (counts in ((3, 0, 0, 0), (0, 3, 0, 0)))
            assert shown["missing"] == list(MEMBERS[3 - counts[3] :])
            assert (verdict.state == "blocked") is not verdict.consensus


def test_before_the_deadline_it_is_open_while_two_votes_can_be_equal(subtests: pytest.Subtests) -> None:
    for counts, (result, _) in TABLE.items():
        with subtests.test(counts=counts):
            votes = make_votes(*counts)
            verdict = decide(votes, MEMBERS, "simple", is_over=False)
            assert verdict.is_open is (counts in OPEN_BEFORE_THE_DEADLINE)
            assert show(verdict, votes).get("result") == (None if verdict.is_open else result)


def test_the_order_of_members_does_not_matter(subtests: pytest.Subtests) -> None:
    for votes in product(KINDS, repeat=3):
        with subtests.test(votes=votes):
            one = decide(dict(zip(MEMBERS, votes, strict=True)), MEMBERS, "simple", is_over=False)
            other = decide(dict(zip(reversed(MEMBERS), votes, strict=True)), MEMBERS, "simple", is_over=False)
            assert one == other


def test_votes_of_others_do_not_count() -> None:
    votes = {"steward": "approve", "alpha": "approve"}
    verdict = decide(votes, MEMBERS, "simple", is_over=False)
    assert verdict == VoteResult("deliberating")
    assert show(verdict, votes)["missing"] == ["beta", "charlie"]


@pytest.mark.parametrize(
    ("members", "threshold", "needed"),
    [
        *[(1, "simple", 1), (2, "simple", 2), (3, "simple", 2), (4, "simple", 3), (5, "simple", 3)],
        *[(3, "supermajority", 2), (4, "supermajority", 3), (5, "supermajority", 4), (6, "supermajority", 4)],
        *[(1, "unanimous", 1), (3, "unanimous", 3)],
    ],
)
def test_the_threshold_says_how_many_equal_votes_decide(members: int, threshold: str, needed: int) -> None:
    assert votes_needed(members, threshold) == needed
    names = [f"agent-{number}" for number in range(members)]
    for vote, result in (("approve", "approved"), ("reject", "rejected")):
        votes = dict.fromkeys(names[:needed], vote)
        verdict = decide(votes, names, threshold, is_over=False)
        assert verdict == VoteResult(result, consensus=True)
        shown = show(verdict, votes, names)
        assert (shown["unanimous"], shown["missing"]) == (needed == members, names[needed:])
        del votes[names[0]]
        assert decide(votes, names, threshold, is_over=False).is_open


def test_one_rejection_blocks_what_all_have_to_approve() -> None:
    assert decide({"alpha": "reject", "beta": "approve"}, MEMBERS, "unanimous", is_over=False).state == "blocked"


@pytest.mark.parametrize(
    ("vote", "is_over", "state"),
    [
        ("approve", False, "approved"),
        ("reject", False, "rejected"),
        ("abstain", False, "escalated"),
        ("abstain", True, "rejected"),
        (None, False, "escalated"),
        (None, True, "rejected"),
    ],
)
def test_the_steward_breaks_a_tie_or_it_is_rejected(vote: str | None, is_over: bool, state: str) -> None:
    votes = {"alpha": "approve", "beta": "reject"} | ({"steward": vote} if vote else {})
    assert break_tie(votes, "steward", is_over=is_over) == VoteResult(state)
