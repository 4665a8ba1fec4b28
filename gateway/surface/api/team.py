"""The caller's own team over REST: agents, rules, proposals, and the keys by which members sign.

Rows of other teams, and absent ones, are the same 404.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

import msgspec
from django.db import transaction
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import PageQuery, page, read_filters
from accounts.rest import Body, ColumnBody, caller_of, get_one
from accounts.shapes import NO_STORE
from gateway.models import EnvelopeKey, Proposal, TeamAgent, TeamPolicy, Vote
from gateway.models.team import RULES
from gateway.service.proposal_reads import result_of
from gateway.service.registry import OFFLINE, load_own_agents
from gateway.service.seat import MAX_CONFIG_BYTES, read_role
from gateway.service.team_rules import (
    PEERS,
    VOTERS,
    WANTED_NAME,
    BadPolicy,
    change_agent,
    change_policy,
    get_policy,
    make_key,
)
from gateway.wire.frame_types import is_agent_name
from kit.describe import ErrorBody, Items, Page, Time
from kit.list_fields import NameList
from kit.rows import RowSource, show

Status = Literal["online", "idle", "busy", "error", "offline"]
Threshold = Literal["simple", "supermajority", "unanimous"]
NO_AGENT = "no such agent"


class ApiTeamAgent(TypedDict):
    """An agent of the team. `maySendTo`, `mayHearFrom`: names of its peers; null: all of the team."""

    name: str
    role: str
    active: Annotated[bool, RowSource("is_active")]
    status: Status
    config: dict[str, Any]
    maySendTo: list[str] | None
    mayHearFrom: list[str] | None
    createdAt: Time


class ApiTeamPolicy(TypedDict):
    """The rules of the team. `steward` breaks ties where `breaksTies` is set. `sessionTtlS` null: for ever."""

    queuesMessages: bool
    storesTold: bool
    members: list[str]
    steward: str
    breaksTies: bool
    threshold: Threshold
    requiresSignature: bool
    sessionTtlS: int | None
    framesKeptDays: int


class TeamAgentBody(ColumnBody):
    """The fields of an agent to change."""

    config = serializers.DictField(required=False)
    maySendTo = NameList(rule=PEERS, source="may_send_to", allow_null=True)
    mayHearFrom = NameList(rule=PEERS, source="may_hear_from", allow_null=True)

    class Meta:
        model, columns, shape = TeamAgent, ("role", "is_active"), ApiTeamAgent

    def validate_role(self, text: str) -> str:
        """The role in the spelling of the wire."""
        role = read_role(text)
        if role is None:
            raise serializers.ValidationError(WANTED_NAME)
        return role

    def validate_config(self, config: dict[str, Any]) -> dict[str, Any]:
        """The configuration, if it is not too large."""
        if len(msgspec.json.encode(config)) > MAX_CONFIG_BYTES:
            raise serializers.ValidationError(f"want at most {MAX_CONFIG_BYTES} bytes")
        return config


class TeamPolicyBody(ColumnBody):
    """The rules to change."""

    members = NameList(rule=VOTERS, allow_empty=False)

    class Meta:
        model, columns, shape = TeamPolicy, RULES, ApiTeamPolicy

    def validate_steward(self, name: str) -> str:
        """The name of an agent, or empty."""
        if name and not is_agent_name(name):
            raise serializers.ValidationError(f"{name}: {WANTED_NAME}")
        return name


class TeamAgents(APIView):
    """`/team/agents`"""

    @extend_schema(parameters=[PageQuery], responses=Page[ApiTeamAgent])
    def get(self, request: Request) -> Response:
        """The agents of your team that are enrolled, by name."""
        rows = TeamAgent.objects.filter(owner=caller_of(request)).order_by("name")
        return page(request, rows, _show_agents)


class OneTeamAgent(APIView):
    """`/team/agents/{agent_name}`"""

    @extend_schema(responses=ApiTeamAgent)
    def get(self, request: Request, agent_name: str) -> Response:
        """One agent of your team."""
        return Response(_show_agents([_get_own(request, agent_name)])[0])

    @extend_schema(request=TeamAgentBody, responses=ApiTeamAgent)
    def patch(self, request: Request, agent_name: str) -> Response:
        """Change what the body names. An agent that is not `active` is disconnected, and cannot come back."""
        agent = _get_own(request, agent_name)
        body = TeamAgentBody.read(request)
        if not change_agent(agent, body.validated_data):
            raise NotFound(NO_AGENT)
        return Response(_show_agents([agent])[0])

    @extend_schema(request=None, responses={204: None})
    def delete(self, request: Request, agent_name: str) -> Response:
        """Forget its role and settings; its session stays. The agent is enrolled again when it connects."""
        _get_own(request, agent_name).delete()
        return Response(status=204)


class TeamRules(APIView):
    """`/team/policy`"""

    @extend_schema(responses=ApiTeamPolicy)
    def get(self, request: Request) -> Response:
        """The rules of your team."""
        return Response(show(ApiTeamPolicy, get_policy(caller_of(request).pk)))

    @extend_schema(request=TeamPolicyBody, responses=ApiTeamPolicy)
    def patch(self, request: Request) -> Response:
        """Change what the body names."""
        body = TeamPolicyBody.read(request)
        try:
            return Response(show(ApiTeamPolicy, change_policy(caller_of(request).pk, body.validated_data)))
        except BadPolicy as bad:
            raise ValidationError({"steward": str(bad)}) from None


def _get_own(request: Request, name: str) -> TeamAgent:
    own = TeamAgent.objects.filter(owner=caller_of(request))
    return get_one(own.filter(name=name) if is_agent_name(name) else own.none(), NO_AGENT)


def _show_agents(rows: Sequence[TeamAgent]) -> list[ApiTeamAgent]:
    statuses = {one["name"]: one["status"] for one in load_own_agents(rows[0].owner_id)} if rows else {}
    return [show(ApiTeamAgent, one, status=statuses.get(one.name, OFFLINE)) for one in rows]


class ApiEnvelopeKey(TypedDict):
    """A key of a team, without its secret."""

    keyId: str
    name: str
    createdAt: Time


class MadeEnvelopeKey(ApiEnvelopeKey):
    """A new key with its secret, this once."""

    secret: str


class KeyBody(Body):
    """The name of a new key in lists."""

    name = serializers.CharField(max_length=100)


class EnvelopeKeys(APIView):
    """`/gateway/keys`"""

    @extend_schema(responses=Items[ApiEnvelopeKey])
    def get(self, request: Request) -> Response:
        """The keys of one's team, newest first."""
        keys = EnvelopeKey.objects.filter(owner=caller_of(request)).order_by("-pk")
        return Response({"items": [show(ApiEnvelopeKey, one) for one in keys]})

    @extend_schema(request=KeyBody, responses={201: MadeEnvelopeKey, 429: ErrorBody})
    def post(self, request: Request) -> Response:
        """Make a key; its secret is in this answer and nowhere else."""
        body = KeyBody.read(request)
        with transaction.atomic():
            key, secret = make_key(caller_of(request), str(body.validated_data["name"]))
        return Response(show(MadeEnvelopeKey, key, secret=secret), status=201, headers=NO_STORE)


class OneEnvelopeKey(APIView):
    """`/gateway/keys/{keyId}`"""

    @extend_schema(responses={204: None})
    def delete(self, request: Request, key_id: str) -> Response:
        """Delete a key: what it signs from now on is refused."""
        deleted, _ = EnvelopeKey.objects.filter(owner=caller_of(request), key_id=key_id).delete()
        if not deleted:
            raise NotFound("no such key")
        return Response(status=204)


MAX_A_PAGE = 100


class ApiProposal(TypedDict):
    """A proposal. `proposalId`: its id on the wire, unique in the team. `result` is null while it is open.

    `tieBrokenBy`: the steward who decided it.
    """

    id: int
    proposalId: Annotated[str, RowSource("key")]
    proposer: str
    proposal: Annotated[str, RowSource("text")]
    reasoning: str
    category: str | None
    members: list[str]
    threshold: Literal["simple", "supermajority", "unanimous"]
    state: Literal["pending", "deliberating", "approved", "rejected", "blocked", "escalated"]
    result: Literal["approved", "rejected"] | None
    consensus: Annotated[bool, RowSource("has_consensus")]
    createdAt: Time
    deadline: Time
    decidedAt: Time | None
    tieBrokenBy: str | None


class ApiVote(TypedDict):
    """A vote. `counts`: it is the last one of its agent that came in time; `late`: it came after the end."""

    agent: Annotated[str, RowSource("voter")]
    vote: Literal["approve", "reject", "abstain"]
    reasoning: str
    confidence: float | None
    votedAt: Time
    counts: bool
    late: Annotated[bool, RowSource("is_late")]


class ApiProposalWithVotes(ApiProposal):
    """A proposal with all its votes, in the order in which they came."""

    votes: list[ApiVote]


class ProposalQuery(PageQuery):
    """The proposals to list."""

    state = serializers.ChoiceField(required=False, choices=Proposal.State.choices)


class TeamProposals(APIView):
    """`/team/proposals`"""

    @extend_schema(parameters=[ProposalQuery], responses=Page[ApiProposal])
    def get(self, request: Request) -> Response:
        """The proposals of the caller's team, newest first; `state` takes only those in it."""
        own = Proposal.objects.filter(owner=caller_of(request), **read_filters(ProposalQuery, request))
        newest_first = own.order_by("-created_at", "-pk")
        return page(
            request,
            newest_first,
            lambda rows: [_show_proposal(one) for one in rows],
            ProposalQuery,
            most=MAX_A_PAGE,
        )


class OneTeamProposal(APIView):
    """`/team/proposals/{id}`"""

    @extend_schema(responses=ApiProposalWithVotes)
    def get(self, request: Request, proposal_id: int) -> Response:
        """One proposal with its votes."""
        found = get_one(Proposal.objects.filter(owner=caller_of(request), pk=proposal_id), "no such proposal")
        votes = [show(ApiVote, one) for one in Vote.objects.filter(proposal=found).order_by("pk")]
        shown: ApiProposalWithVotes = {**_show_proposal(found), "votes": votes}
        return Response(shown)


def _show_proposal(one: Proposal) -> ApiProposal:
    return show(ApiProposal, one, result=result_of(one) or None)


urlpatterns = [
    path("team/agents", TeamAgents.as_view(), name="team-agents"),
    path("team/agents/<str:agent_name>", OneTeamAgent.as_view(), name="team-agent"),
    path("team/policy", TeamRules.as_view(), name="team-policy"),
    path("gateway/keys", EnvelopeKeys.as_view(), name="gateway-keys"),
    path("gateway/keys/<str:key_id>", OneEnvelopeKey.as_view(), name="gateway-key"),
    path("team/proposals", TeamProposals.as_view(), name="team-proposals"),
    path("team/proposals/<int:proposal_id>", OneTeamProposal.as_view(), name="team-proposal"),
]
