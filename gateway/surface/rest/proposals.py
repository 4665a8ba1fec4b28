"""The native API's calls on the proposals of the caller's own team. Others' and absent ones are the same 404."""

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import PageQuery, page, read_filters
from accounts.rest import caller_of, get_one
from gateway.models import Proposal, Vote
from gateway.service.triad.proposal_reads import result_of
from kit.describe import Page, Time
from kit.rows import Source, show

MOST_A_PAGE = 100


class ApiProposal(TypedDict):
    """A proposal. `proposalId`: its id on the wire, unique in the team. `result` is null while it is open.

    `tieBrokenBy`: the steward who decided it.
    """

    id: int
    proposalId: Annotated[str, Source("key")]
    proposer: str
    proposal: Annotated[str, Source("text")]
    reasoning: str
    category: str | None
    members: list[str]
    threshold: Literal["simple", "supermajority", "unanimous"]
    state: Literal["pending", "deliberating", "approved", "rejected", "blocked", "escalated"]
    result: Literal["approved", "rejected"] | None
    consensus: Annotated[bool, Source("has_consensus")]
    createdAt: Time
    deadline: Time
    decidedAt: Time | None
    tieBrokenBy: str | None


class ApiVote(TypedDict):
    """A vote. `counts`: it is the last one of its agent that came in time; `late`: it came after the end."""

    agent: Annotated[str, Source("voter")]
    vote: Literal["approve", "reject", "abstain"]
    reasoning: str
    confidence: float | None
    votedAt: Time
    counts: bool
    late: Annotated[bool, Source("is_late")]


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
        own = Proposal.objects.filter(owner=caller_of(request), **read_filters(ProposalQuery, request))
        newest_first = own.order_by("-created_at", "-pk")
        return page(request, newest_first, _show_proposals, ProposalQuery, most=MOST_A_PAGE)


class OneTeamProposal(APIView):
    """`/team/proposals/{id}`"""

    @extend_schema(responses=ApiProposalWithVotes)
    def get(self, request: Request, proposal_id: int) -> Response:
        """One proposal with its votes."""
        found = get_one(Proposal.objects.filter(owner=caller_of(request), pk=proposal_id), "no such proposal")
        votes = [show(ApiVote, one) for one in Vote.objects.filter(proposal=found).order_by("pk")]
        shown: ApiProposalWithVotes = {**_show_proposal(found), "votes": votes}
        return Response(shown)


def _show_proposals(rows: Sequence[Proposal]) -> list[ApiProposal]:
    return [_show_proposal(one) for one in rows]


def _show_proposal(one: Proposal) -> ApiProposal:
    return show(ApiProposal, one, result=result_of(one) or None)


urlpatterns = [
    path("team/proposals", TeamProposals.as_view(), name="team-proposals"),
    path("team/proposals/<int:proposal_id>", OneTeamProposal.as_view(), name="team-proposal"),
]
