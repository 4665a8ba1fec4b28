"""Proposals and votes as rows that seats and services read, and as frames and services show them. Synchronous."""

from collections.abc import Collection, Iterable
from typing import NamedTuple

from django.db.models import Q

from gateway import limits
from gateway.models import Proposal, Vote
from gateway.wire.errors import FrameRefused, bad_content
from gateway.wire.frames import Envelope, Json, make_frame
from kit.clock import unix_ms

State = Proposal.State
APPROVE, REJECT = "approve", "reject"

OWN_CONTENT = frozenset({"proposal", "reasoning", "deadline", "category", "proposalId", "members"})
OWN_CONTENT |= {"threshold", "state", "votes"}
OWN_METADATA = frozenset({"correlationId", "inReplyTo", "requiresResponse", "caller"})


def result_of(proposal: Proposal) -> str:
    """`approved`, `rejected`, or empty while it is open."""
    if proposal.decided_at is None:
        return ""
    return (State.APPROVED if proposal.state == State.APPROVED else State.REJECTED).value


def carry(envelope: Envelope) -> Json:
    """The members of a proposal's frame that the gateway does not set itself, see `gateway.models.Proposal`."""
    return {
        "content": {name: value for name, value in envelope.content.items() if name not in OWN_CONTENT},
        "metadata": {name: value for name, value in envelope.metadata.items() if name not in OWN_METADATA},
        "extra": {name: value for name, value in envelope.extra.items() if name not in OWN_METADATA},
    }


def proposal_frame(proposal: Proposal, votes: Iterable[Vote] = ()) -> Json:
    """A proposal as members get it; its `id` and its correlation id both name it in a vote.

    `votes`: what the steward gets to see, who breaks the tie.
    """
    carried: Json = proposal.carried
    content = {
        **carried.get("content", {}),
        "proposalId": proposal.key,
        "proposal": proposal.text,
        "reasoning": proposal.reasoning,
        "deadline": unix_ms(proposal.deadline),
        "members": proposal.members,
        "threshold": proposal.threshold,
        "state": proposal.state,
        **({"category": proposal.category} if proposal.category else {}),
        **({"votes": {one.voter: one.vote for one in votes}} if proposal.state == State.ESCALATED else {}),
    }
    metadata = {**carried.get("metadata", {}), "requiresResponse": True, "correlationId": proposal.key}
    frame = make_frame("proposal", content, metadata, id=proposal.alias or proposal.key)
    return {**carried.get("extra", {}), **frame, "from": proposal.proposer}


def vote_frame(proposal: Proposal, vote: Vote) -> Json:
    """A vote as subscribers of the proposal's channel get it."""
    content = {"proposalId": proposal.key, **_show_vote(vote)}
    return make_frame("vote", content, {"correlationId": proposal.key}) | {"from": vote.voter}


def decision_frame(proposal: Proposal, votes: Iterable[Vote]) -> Json:
    """The decision. `votes`: those that count."""
    metadata = {"correlationId": proposal.key} | ({"parentId": proposal.alias} if proposal.alias else {})
    return make_frame("decision", {"proposalId": proposal.key, **show_result(proposal, votes)}, metadata)


def acknowledge(proposal: Proposal) -> Json:
    """The answer to a proposal or a vote."""
    shown = {"proposalId": proposal.key, "state": proposal.state, "deadline": unix_ms(proposal.deadline)}
    return shown | ({"result": result_of(proposal)} if proposal.decided_at else {})


def show_proposal(proposal: Proposal) -> Json:
    """A proposal as services list it, without its votes."""
    return {
        **acknowledge(proposal),
        "from": proposal.proposer,
        "proposal": proposal.text,
        "reasoning": proposal.reasoning,
        "members": proposal.members,
        "threshold": proposal.threshold,
        "createdAt": unix_ms(proposal.created_at),
        **({"category": proposal.category} if proposal.category else {}),
        **({"decidedAt": unix_ms(proposal.decided_at)} if proposal.decided_at else {}),
    }


def show_with_votes(proposal: Proposal, votes: list[Vote]) -> Json:
    """A proposal with the votes that count, and `history`: all votes in the order in which they came."""
    counting = [one for one in votes if one.counts]
    history = [
        _show_vote(one) | {"agent": one.voter, "timestamp": unix_ms(one.voted_at), "late": one.is_late}
        for one in votes
    ]
    return {**show_proposal(proposal), **show_result(proposal, counting), "history": history}


def show_result(proposal: Proposal, votes: Iterable[Vote]) -> Json:
    """The state of a proposal, and the votes that count. `missing`: the members who did not vote."""
    by_voter = {one.voter: one.vote for one in votes}
    cast = {name: by_voter[name] for name in proposal.members if name in by_voter}
    decisive = [list(cast.values()).count(name) for name in (APPROVE, REJECT)]
    return {
        **({"result": result_of(proposal)} if proposal.decided_at else {}),
        "state": proposal.state,
        "votes": cast,
        "consensus": proposal.has_consensus,
        "unanimous": len(proposal.members) in decisive,
        "missing": [name for name in proposal.members if name not in cast],
        **({"tieBrokenBy": proposal.tie_broken_by} if proposal.tie_broken_by else {}),
    }


def _show_vote(vote: Vote) -> Json:
    return {
        "vote": vote.vote,
        **({"reasoning": vote.reasoning} if vote.reasoning else {}),
        **({"confidence": vote.confidence} if vote.confidence is not None else {}),
    }


class Awaited(NamedTuple):
    """A frame about a proposal that a seat awaits. `proposal_id`: the row."""

    proposal_id: int
    frame: Json


def is_any_awaited(owner_id: int) -> bool:
    """True if an agent of the team may have to get a proposal or a decision when it takes its seat."""
    return Proposal.objects.filter(Q(decided_at=None) | Q(awaits_decision=True), owner_id=owner_id).exists()


def load_open(owner_id: int, name: str) -> list[Awaited]:
    """The open proposals on which an agent that has just taken its seat may vote and has not, oldest first."""
    team = Proposal.objects.filter(owner_id=owner_id, decided_at=None).order_by("pk")
    voted = set(
        Vote.objects.filter(proposal__in=team, voter=name, counts=True).values_list("proposal_id", flat=True)
    )
    unvoted = [one for one in team[: limits.OPEN_PROPOSALS.most] if one.pk not in voted]
    found = [one for one in unvoted if name in ([one.steward] if one.state == State.ESCALATED else one.members)]
    pending = [one.pk for one in found if one.state == State.PENDING]
    Proposal.objects.filter(pk__in=pending, state=State.PENDING).update(state=State.DELIBERATING)
    return [Awaited(one.pk, proposal_frame(one, _votes_of(one))) for one in found]


def load_decisions(owner_id: int, name: str) -> list[Awaited]:
    """The decisions on an agent's proposals that were not sent to its seat yet, oldest first."""
    awaited = Proposal.objects.filter(owner_id=owner_id, proposer=name, awaits_decision=True)
    found = awaited.exclude(decided_at=None).order_by("pk")[: limits.OPEN_PROPOSALS.most]
    return [Awaited(one.pk, decision_frame(one, _votes_of(one))) for one in found]


def end_waits(proposal_ids: Collection[int]) -> None:
    """Record that the decisions were sent to the proposer's seat."""
    Proposal.objects.filter(pk__in=proposal_ids, awaits_decision=True).update(awaits_decision=False)


def find_decision(proposal_id: int) -> Json | None:
    """The decision on a proposal as a frame; None while it is open."""
    proposal = Proposal.objects.filter(pk=proposal_id).exclude(decided_at=None).first()
    return decision_frame(proposal, _votes_of(proposal)) if proposal else None


def get_proposal(owner_id: int, name: str) -> Proposal:
    """A proposal of a team by one of its ids.

    Raises:
        FrameRefused: 2005 `proposal_not_found`, also for one of another team.
    """
    found = Proposal.objects.filter(Q(key=name) | Q(alias=name), owner_id=owner_id).first()
    if found is None:
        raise unknown_proposal_error()
    return found


def unknown_proposal_error() -> FrameRefused:
    """The error for a proposal that the team does not have."""
    return bad_content("there is no such proposal", reason="proposal_not_found")


def show_one(owner_id: int, name: str) -> Json:
    """A proposal with its votes, as a service shows it.

    Raises:
        FrameRefused: 2005 `proposal_not_found`.
    """
    proposal = get_proposal(owner_id, name)
    return show_with_votes(proposal, list(Vote.objects.filter(proposal=proposal).order_by("pk")))


def show_latest(owner_id: int, state: str, limit: int) -> list[Json]:
    """The latest proposals of a team, newest first; of one state, unless it is empty."""
    found = Proposal.objects.filter(owner_id=owner_id, **({"state": state} if state else {}))
    return [show_proposal(one) for one in found.order_by("-created_at", "-pk")[:limit]]


def _votes_of(proposal: Proposal) -> list[Vote]:
    return list(Vote.objects.filter(proposal=proposal, counts=True))
