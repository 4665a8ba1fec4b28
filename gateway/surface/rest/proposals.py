"""The native API's calls on the proposals of the caller's own team. Others' and absent ones are the same 404."""

from collections.abc import Sequence
from typing import Any, Literal, TypedDict, cast

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import PageQuery, page, read_query
from accounts.rest import caller_of
from gateway.models import Proposal, Vote
from gateway.service.triad.proposal_frames import result_of
from kit.clock import iso, iso_or_none
from kit.describe import Page, Time

MOST_A_PAGE = 100


class ApiProposal(TypedDict):
    """A proposal. `proposalId`: its id on the wire, unique in the team. `result` is null while it is open.

    `tieBrokenBy`: the steward who decided it.
    """

    id: int
    proposalId: str
    proposer: str
    proposal: str
    reasoning: str
    category: str | None
    members: list[str]
    threshold: Literal["simple", "supermajority", "unanimous"]
    state: Literal["pending", "deliberating", "approved", "rejected", "blocked", "escalated"]
    result: Literal["approved", "rejected"] | None
    consensus: bool
    createdAt: Time
    deadline: Time
    decidedAt: Time | None
    tieBrokenBy: str | None


class ApiVote(TypedDict):
    """A vote. `counts`: it is the last one of its agent that came in time; `late`: it came after the end."""

    agent: str
    vote: Literal["approve", "reject", "abstain"]
    reasoning: str
    confidence: float | None
    votedAt: Time
    counts: bool
    late: bool


class ApiProposalWithVotes(ApiProposal):
    """A proposal with all its votes, in the order in which they came."""

    votes: list[ApiVote]


class ProposalQuery(PageQuery):
    """Which proposals to list."""

    state = serializers.ChoiceField(required=False, choices=Proposal.State.choices)


class TeamProposals(APIView):
    """`/team/proposals`"""

    @extend_schema(parameters=[ProposalQuery], responses=Page[ApiProposal])
    def get(self, request: Request) -> Response:
        """The proposals of the caller's team, newest first; `state` takes only those in it."""
        query = read_query(ProposalQuery, request)
        own = Proposal.objects.filter(owner=caller_of(request)).order_by("-created_at", "-pk")
        if state := query.get("state"):
            own = own.filter(state=state)
        return page(request, own, _show_proposals, ProposalQuery, most=MOST_A_PAGE)


class OneTeamProposal(APIView):
    """`/team/proposals/{id}`"""

    @extend_schema(responses=ApiProposalWithVotes)
    def get(self, request: Request, proposal_id: int) -> Response:
        """One proposal with its votes."""
        found = Proposal.objects.filter(owner=caller_of(request), pk=proposal_id).first()
        if found is None:
            raise NotFound("no such proposal")
        votes = [_show_vote(one) for one in Vote.objects.filter(proposal=found).order_by("pk")]
        shown: ApiProposalWithVotes = {**_show_proposal(found), "votes": votes}
        return Response(shown)


def _show_proposals(rows: Sequence[Proposal]) -> list[ApiProposal]:
    return [_show_proposal(one) for one in rows]


def _show_proposal(one: Proposal) -> ApiProposal:
    return {
        "id": one.pk,
        "proposalId": one.key,
        "proposer": one.proposer,
        "proposal": one.text,
        "reasoning": one.reasoning,
        "category": one.category or None,
        "members": one.members,
        "threshold": cast(Any, one.threshold),
        "state": cast(Any, one.state),
        "result": cast(Any, result_of(one) or None),
        "consensus": one.has_consensus,
        "createdAt": iso(one.created_at),
        "deadline": iso(one.deadline),
        "decidedAt": iso_or_none(one.decided_at),
        "tieBrokenBy": one.tie_broken_by or None,
    }


def _show_vote(one: Vote) -> ApiVote:
    return {
        "agent": one.voter,
        "vote": cast(Any, one.vote),
        "reasoning": one.reasoning,
        "confidence": one.confidence,
        "votedAt": iso(one.voted_at),
        "counts": one.counts,
        "late": one.is_late,
    }


urlpatterns = [
    path("team/proposals", TeamProposals.as_view(), name="team-proposals"),
    path("team/proposals/<int:proposal_id>", OneTeamProposal.as_view(), name="team-proposal"),
]
