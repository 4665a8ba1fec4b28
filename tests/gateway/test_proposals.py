"""Proposals as rows: thresholds, tie-breaks, limits, and what is recorded of votes."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.db import transaction

from accounts.models import Credential
from accounts.tokens import get_or_create_local_user, mint
from agents.models import Connection, Halt, Session
from agents.transcript.announcements import AddressedMessage, SurfaceMessage
from gateway.models import Proposal, TeamPolicy, Vote
from gateway.service import proposal_reads
from gateway.service.proposals import CATEGORY_S, TIE_BREAK_S, cast_vote, close_due, propose
from gateway.service.seat import GATEWAY_LINK
from gateway.service.triad import ProposalNews
from gateway.wire.errors import FrameRefused
from kit.clock import db_now
from tests.carrying import carrying
from tests.contracts.rows import HOME, live_process
from tests.gateway.lowered import lower

pytestmark = pytest.mark.django_db

TRIAD = ["alpha", "beta", "charlie"]


@pytest.fixture
def owner() -> int:
    return get_or_create_local_user("owner").pk


def proposed(owner: int, key: str = "p", deadline_ms: int | None = None, **fields: Any) -> Proposal:
    """A proposal of the steward."""
    given = {"key": key, "proposer": "steward", "awaits_decision": True, "text": "text", "carried": {}}
    return propose(owner, Proposal(**{**given, **fields}), deadline_ms)


def vote(owner: int, voter: str, choice: str, key: str = "p") -> str:
    """The state after a vote, or the reason why it is refused."""
    try:
        return cast_vote(owner, (key,), Vote(voter=voter, vote=choice)).state
    except FrameRefused as refused:
        return refused.reason


def refusal(owner: int, key: str = "p", **fields: Any) -> tuple[int, str]:
    """The code and the reason why something is not proposed."""
    with pytest.raises(FrameRefused) as refused:
        proposed(owner, key, **fields)
    return int(refused.value.code), refused.value.reason


def set_policy(owner: int, **fields: Any) -> None:
    TeamPolicy.objects.update_or_create(owner_id=owner, defaults=fields)


def end(key: str = "p") -> Proposal:
    """Let the deadline of a proposal pass, and decide."""
    Proposal.objects.filter(key=key).update(deadline=db_now() - timedelta(seconds=1))
    close_due()
    return Proposal.objects.get(key=key)


def seconds_left(proposal: Proposal) -> int:
    return round((proposal.deadline - db_now()).total_seconds() / 30) * 30


def test_the_policy_at_the_time_of_the_proposal_decides(owner: int) -> None:
    set_policy(owner, threshold="unanimous")
    proposed(owner)
    set_policy(owner, threshold="simple", members=["others"], breaks_ties=True)
    states = [vote(owner, name, "approve") for name in TRIAD]
    assert states == ["deliberating", "deliberating", "approved"]


def test_members_are_data_and_each_votes_once(owner: int) -> None:
    members = [f"agent-{number}" for number in range(5)]
    set_policy(owner, members=[*members, "agent-0"])
    assert proposed(owner).members == members
    assert vote(owner, "alpha", "approve") == "not_triad_member"
    assert [vote(owner, name, "approve") for name in members[:3]] == ["deliberating", "deliberating", "approved"]


def test_without_members_nothing_is_proposed(owner: int) -> None:
    set_policy(owner, members=[])
    assert refusal(owner)[1] == "no_members"


def test_the_category_says_how_long_it_is_open(owner: int) -> None:
    for category in ("", "unknown", *CATEGORY_S):
        made = proposed(owner, f"p-{category}", category=category)
        assert seconds_left(made) == CATEGORY_S.get(category, 300)


@pytest.mark.parametrize(("choice", "state"), [("approve", "approved"), ("reject", "rejected")])
def test_the_steward_breaks_a_tie(owner: int, choice: str, state: str) -> None:
    set_policy(owner, breaks_ties=True)
    proposed(owner)
    assert vote(owner, "steward", "approve") == "not_triad_member"
    for name, cast in zip(TRIAD, ("approve", "reject", "abstain"), strict=True):
        last = vote(owner, name, cast)
    assert last == "escalated"
    proposal = Proposal.objects.get(key="p")
    assert seconds_left(proposal) == TIE_BREAK_S
    assert vote(owner, "charlie", "approve") == "proposal_closed"
    [awaited] = proposal_reads.load_open(owner, "steward")
    assert awaited.frame["content"]["state"] == "escalated"
    assert awaited.frame["content"]["votes"] == {"alpha": "approve", "beta": "reject", "charlie": "abstain"}
    assert vote(owner, "steward", choice) == state
    [awaited] = proposal_reads.load_decisions(owner, "steward")
    content = awaited.frame["content"]
    assert (content["result"], content["consensus"], content["tieBrokenBy"]) == (state, False, "steward")
    assert vote(owner, "steward", choice) == "not_triad_member"


def test_a_steward_who_does_not_decide_rejects(owner: int) -> None:
    set_policy(owner, breaks_ties=True)
    proposed(owner)
    vote(owner, "alpha", "approve")
    assert end().state == "escalated"
    assert vote(owner, "steward", "abstain") == "escalated"
    ended = end()
    assert (ended.state, ended.has_consensus, ended.tie_broken_by) == ("rejected", False, "")


def test_a_steward_who_is_a_member_breaks_no_tie(owner: int) -> None:
    set_policy(owner, breaks_ties=True, members=["steward", "beta"])
    proposed(owner)
    vote(owner, "steward", "approve")
    assert vote(owner, "beta", "reject") == "blocked"


def test_a_vote_after_the_deadline_is_late_and_closes_what_is_due(owner: int) -> None:
    proposed(owner)
    vote(owner, "alpha", "approve")
    Proposal.objects.update(deadline=db_now() - timedelta(seconds=1))
    assert [vote(owner, "beta", "approve") for _ in range(3)] == ["proposal_closed"] * 3
    proposal = Proposal.objects.get()
    assert (proposal.state, proposal.has_consensus) == ("blocked", False)
    assert list(Vote.objects.filter(is_late=True).values_list("voter", "counts")) == [("beta", False)]


def test_open_proposals_and_votes_are_bounded(owner: int, monkeypatch: pytest.MonkeyPatch) -> None:
    lower(monkeypatch, OPEN_PROPOSALS=2, KEPT_PROPOSALS=3, VOTES=2)
    for key in ("p", "q"):
        proposed(owner, key)
    assert refusal(owner, "r") == (1005, "too_many_proposals")
    proposed(get_or_create_local_user("other").pk, "others")
    assert proposed(owner, "p").key == "p"
    states = [vote(owner, "alpha", one) for one in ("approve", "reject", "approve")]
    assert states[1:] == ["deliberating", "too_many_votes"]
    end("q")
    proposed(owner, "r")
    end("r")
    assert refusal(owner, "s")[1] == "too_many_proposals"


def test_a_repeated_proposal_is_the_same_also_after_its_end(owner: int) -> None:
    first = proposed(owner, alias="msg-1", deadline_ms=round((db_now().timestamp() + 60) * 1000))
    given_ms = round(first.deadline.timestamp() * 1000)
    assert proposed(owner, alias="msg-2", deadline_ms=given_ms).pk == first.pk
    end()
    assert proposed(owner).state == "blocked"
    for other in ({"text": "another"}, {"proposer": "coder"}, {"key": "msg-1"}, {"key": "x", "alias": "p"}):
        assert refusal(owner, **other)[1] == "correlation_in_use", other
    proposed(get_or_create_local_user("other").pk, alias="msg-1")


def test_a_member_who_comes_gets_what_it_has_not_voted_on(owner: int) -> None:
    for key in ("p", "q", "r"):
        proposed(owner, key)
    vote(owner, "alpha", "approve", "q")
    end("r")
    found = proposal_reads.load_open(owner, "alpha")
    assert [one.frame["content"]["proposalId"] for one in found] == ["p"]
    assert Proposal.objects.get(key="p").state == "deliberating"
    assert proposal_reads.load_open(owner, "coder") == []


def test_a_decision_is_awaited_until_it_is_noted_as_sent(owner: int) -> None:
    proposed(owner)
    assert proposal_reads.load_decisions(owner, "steward") == []
    ended = end()
    assert (ended.state, ended.has_consensus, close_due()) == ("blocked", False, 0)
    [awaited] = proposal_reads.load_decisions(owner, "steward")
    assert awaited.frame["content"]["missing"] == TRIAD
    proposal_reads.end_waits([awaited.proposal_id])
    assert proposal_reads.load_decisions(owner, "steward") == []


def test_a_refused_vote_leaves_no_trace(owner: int) -> None:
    proposed(owner)
    vote(owner, "coder", "approve")
    assert not Vote.objects.exists()
    assert vote(get_or_create_local_user("other").pk, "alpha", "approve") == "proposal_not_found"


def test_a_user_who_is_halted_as_a_caller_proposes_nothing(owner: int) -> None:
    halt = Halt.objects.create(kind=Halt.Kind.CALLER, user_id=owner, by_staff=True)
    assert refusal(owner) == (5004, "halted")
    halt.lifted_at = db_now()
    halt.save()
    assert proposed(owner).key == "p"


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(("voters", "taken_by"), [(TRIAD[:2], "steward"), (TRIAD, "judge")])
def test_a_seat_that_is_taken_while_a_vote_commits_is_told(
    owner: int, voters: list[str], taken_by: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing else would tell it: it looked before the commit, and was not connected before that."""
    told: list[int] = []

    def note(addressed: Sequence[AddressedMessage]) -> None:
        for _, message in addressed:
            assert isinstance(message, SurfaceMessage)
            news = msgspec.json.decode(message.body, type=ProposalNews)
            told.extend([*news.connections, news.proposer])

    set_policy(owner, breaks_ties=True, steward="judge", members=TRIAD)
    proposed(owner)
    live_process()
    choices = ["approve", "approve"] if len(voters) == 2 else ["approve", "reject", "abstain"]
    with carrying(note), transaction.atomic():
        for voter, choice in zip(voters, choices, strict=True):
            vote(owner, voter, choice)
        session = Session.objects.create(owner_id=owner, routing_name=taken_by, link=GATEWAY_LINK)
        token = mint(session.owner, Credential.Kind.CHANNEL, "test").credential
        connection = Connection.objects.create(session=session, process_id=HOME, credential=token)
    assert connection.pk in told
