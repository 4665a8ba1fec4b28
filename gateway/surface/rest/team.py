"""The native API's calls on the caller's own team: its agents and its rules."""

from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, TypedDict

import msgspec
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import PageQuery, page
from accounts.rest import Body, caller_of
from gateway.models import TeamAgent, TeamPolicy
from gateway.models.team import HOUR_S, MAX_FRAMES_KEPT_DAYS, MAX_SESSION_HOURS, MOST_PEERS_NAMED, MOST_VOTERS
from gateway.service.seats.enrolment import MAX_CONFIG_BYTES, read_role
from gateway.service.team.registry import load_own_agents
from gateway.service.team.statuses import OFFLINE
from gateway.service.team.team_changes import BadPolicy, change_agent, change_policy, get_policy
from gateway.wire.frame_types import is_agent_name, is_target
from kit.describe import Page, Time
from kit.rows import Source, show

Status = Literal["online", "idle", "busy", "error", "offline"]
Threshold = Literal["simple", "supermajority", "unanimous"]
MAX_NAME_CHARS = 160
NO_AGENT = "no such agent"


class ApiTeamAgent(TypedDict):
    """An agent of the team. `maySendTo`, `mayHearFrom`: names of its peers; null: all of the team."""

    name: str
    role: str
    active: Annotated[bool, Source("is_active")]
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


def _name_field(**options: Any) -> serializers.CharField:
    return serializers.CharField(max_length=MAX_NAME_CHARS, **options)


def _names_field(most: int, **options: Any) -> Any:
    return serializers.ListField(child=_name_field(), max_length=most, required=False, **options)


def _check_names(names: list[str] | None, is_name: Callable[[str], bool] = is_agent_name) -> list[str] | None:
    """The names without repetition.

    Raises:
        ValidationError: one is no name of an agent.
    """
    if bad := [name for name in names or () if not is_name(name)]:
        raise serializers.ValidationError(f"{bad[0]}: want lower-case letters, digits and hyphens")
    return None if names is None else list(dict.fromkeys(names))


class TeamAgentBody(Body):
    """What of an agent is to change."""

    role = serializers.CharField(max_length=32, required=False)
    active = serializers.BooleanField(source="is_active", required=False)
    config = serializers.DictField(required=False)
    maySendTo = _names_field(MOST_PEERS_NAMED, allow_null=True, source="may_send_to")
    mayHearFrom = _names_field(MOST_PEERS_NAMED, allow_null=True, source="may_hear_from")

    def validate_role(self, text: str) -> str:
        """As the wire writes it."""
        role = read_role(text)
        if role is None:
            raise serializers.ValidationError("want lower-case letters, digits and hyphens")
        return role

    def validate_config(self, config: dict[str, Any]) -> dict[str, Any]:
        """Not too large."""
        if len(msgspec.json.encode(config)) > MAX_CONFIG_BYTES:
            raise serializers.ValidationError(f"want at most {MAX_CONFIG_BYTES} bytes")
        return config

    def validate_maySendTo(self, names: list[str] | None) -> list[str] | None:
        """Names of agents, and handles of those of other owners."""
        return _check_names(names, is_target)

    def validate_mayHearFrom(self, names: list[str] | None) -> list[str] | None:
        """Names of agents, and handles of those of other owners."""
        return _check_names(names, is_target)


class TeamPolicyBody(Body):
    """What of the rules is to change."""

    queuesMessages = serializers.BooleanField(source="queues_messages", required=False)
    storesTold = serializers.BooleanField(source="stores_told", required=False)
    members = _names_field(MOST_VOTERS, allow_empty=False)
    steward = _name_field(required=False, allow_blank=True)
    breaksTies = serializers.BooleanField(source="breaks_ties", required=False)
    threshold = serializers.ChoiceField(choices=TeamPolicy.Threshold.choices, required=False)
    requiresSignature = serializers.BooleanField(source="requires_signature", required=False)
    sessionTtlS = serializers.IntegerField(
        source="session_ttl_s", required=False, allow_null=True, min_value=1, max_value=MAX_SESSION_HOURS * HOUR_S
    )
    framesKeptDays = serializers.IntegerField(
        source="frames_kept_days", required=False, min_value=1, max_value=MAX_FRAMES_KEPT_DAYS
    )

    def validate_members(self, names: list[str]) -> list[str] | None:
        """Names of agents."""
        return _check_names(names)

    def validate_steward(self, name: str) -> str:
        """The name of an agent, or empty."""
        _check_names([name] if name else None)
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
        """Forget its role and settings; its session stays. It is enrolled again when it connects."""
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
    agent = own.filter(name=name).first() if is_agent_name(name) else None
    if agent is None:
        raise NotFound(NO_AGENT)
    return agent


def _show_agents(rows: Sequence[TeamAgent]) -> list[ApiTeamAgent]:
    statuses = {one["name"]: one["status"] for one in load_own_agents(rows[0].owner_id)} if rows else {}
    return [show(ApiTeamAgent, one, status=statuses.get(one.name, OFFLINE)) for one in rows]


urlpatterns = [
    path("team/agents", TeamAgents.as_view(), name="team-agents"),
    path("team/agents/<str:agent_name>", OneTeamAgent.as_view(), name="team-agent"),
    path("team/policy", TeamRules.as_view(), name="team-policy"),
]
