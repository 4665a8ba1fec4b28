"""Proposals and votes as frames and services show them."""

from collections.abc import Iterable

from gateway.models import Proposal, Vote
from gateway.service.triad.deliberation import APPROVE, APPROVED, REJECT, REJECTED
from gateway.wire.frames import Envelope, Json, make_frame
from kit.clock import unix_ms

State = Proposal.State

OWN_CONTENT = frozenset({"proposal", "reasoning", "deadline", "category", "proposalId", "members"})
OWN_CONTENT |= {"threshold", "state", "votes"}
OWN_METADATA = frozenset({"correlationId", "inReplyTo", "requiresResponse", "caller"})


def result_of(proposal: Proposal) -> str:
    """`approved`, `rejected`, or empty while it is open."""
    if proposal.decided_at is None:
        return ""
    return APPROVED if proposal.state == State.APPROVED else REJECTED


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
    return make_frame("decision", {"proposalId": proposal.key, **_show_result(proposal, votes)}, metadata)


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
    return {**show_proposal(proposal), **_show_result(proposal, counting), "history": history}


def _show_result(proposal: Proposal, votes: Iterable[Vote]) -> Json:
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
