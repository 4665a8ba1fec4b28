"""REST views of the directory and of an owner's agents, with the request bodies and the JSON of responses."""

from collections.abc import Sequence
from decimal import Decimal
from functools import partial
from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.paging import PageQuery, page, read_query
from accounts.rest import ColumnBody, Conflict, StrictJSONParser, caller_of, get_one
from agents.api.remote import ApiRemote, RemoteChanges, RemotePlace, look_up_server, move_server
from agents.api.shapes import (
    ApiAgent,
    PublishedAgent,
    QueueingBody,
    usd_field,
)
from agents.core import directory
from agents.core.agent_moves import NotMovable
from agents.core.card_settings import (
    EDITABLE,
    MAX_SKILLS,
    TAG,
    TAGS,
    SkillBody,
    checked_modes,
    checked_skills,
    modes,
    prompts,
)
from agents.core.directory import (
    UnknownLogin,
    get_users_by_login,
    load_agent_activity,
    load_caller_budgets,
    load_granted_logins,
)
from agents.core.shopping import BY_HANDLE, ORDERS, find_favourites, has_tag, sort_agents
from agents.links.remote.card_content import thumbprint
from agents.links.remote.publishing import publish_remote
from agents.models import Agent, RemoteServer, Session
from agents.models.agent import (
    MAX_BUDGET,
    MAX_NAMED_CALLERS,
    QUEUE_WAIT_S,
)
from agents.transcript.pieces import Json
from kit.clock import db_now
from kit.concurrency import CARD_LOOKUPS, take_slot
from kit.describe import ErrorBody, Page
from kit.list_fields import NameList
from kit.money import to_microusd
from kit.rows import show

NO_AGENT = "no such agent"
NO_SESSION = "no such session"
MAX_LISTED = 5000
LONG_TEXT_FIELDS = (
    "claude_md",
    "personalization_prompt",
)  # up to 64 Ki characters each, too much for a list of agents
NOT_OFFERED = "this hub does not offer it yet"
OWNERS_FIELDS = ("allowedLogins", "callerBudgets", "dailyCostLimitUsd", "callerCostLimitUsd", "costTodayUsd")


class AgentChanges(ColumnBody):
    """The body of PATCH: any subset."""

    tags = NameList(rule=TAGS)
    suggestedPrompts = prompts("suggested_prompts")
    skills = serializers.ListField(required=False, max_length=MAX_SKILLS, child=SkillBody())
    defaultInputModes = modes("input_modes")
    defaultOutputModes = modes("output_modes")
    allowedLogins = serializers.ListField(
        source="allowed", required=False, max_length=MAX_NAMED_CALLERS, child=serializers.CharField(max_length=64)
    )
    callerBudgets = serializers.DictField(
        source="budgets", required=False, child=serializers.IntegerField(min_value=0, max_value=MAX_BUDGET)
    )
    dailyCostLimitUsd = usd_field("daily_limit_microusd")
    callerCostLimitUsd = usd_field("caller_limit_microusd")
    queueing = QueueingBody(required=False, allow_null=True)
    liveView = serializers.BooleanField(required=False, write_only=True)
    publicAsk = serializers.BooleanField(required=False, write_only=True)

    class Meta:
        model, columns, shape = Agent, EDITABLE, ApiAgent

    def validate_allowedLogins(self, logins: list[str]) -> list[User]:
        """The users of these logins."""
        try:
            return get_users_by_login(logins)
        except UnknownLogin as unknown:
            raise serializers.ValidationError(str(unknown)) from None

    def validate_callerBudgets(self, budgets: dict[str, int]) -> dict[User, int]:
        """The budgets by user; the last one counts when a login comes in several cases."""
        if len(budgets) > MAX_NAMED_CALLERS:
            raise serializers.ValidationError(f"want at most {MAX_NAMED_CALLERS} logins")
        by_key = {login.lower(): budget for login, budget in budgets.items()}
        return {user: by_key[user.login.lower()] for user in self.validate_allowedLogins(list(by_key))}

    def validate_dailyCostLimitUsd(self, usd: Decimal | None) -> int | None:
        """The limit in millionths of a dollar."""
        return None if usd is None else to_microusd(usd)

    validate_callerCostLimitUsd = validate_dailyCostLimitUsd

    def validate_skills(self, skills: list[Json]) -> list[Json]:
        """Check that the ids of the skills differ."""
        return checked_skills(skills)

    def validate_defaultInputModes(self, modes: list[str]) -> list[str]:
        """Each media type once; every caller of A2A must be able to send one of them."""
        return checked_modes(modes)

    def validate_defaultOutputModes(self, modes: list[str]) -> list[str]:
        """Each media type once; every caller of A2A must be able to take one of them."""
        return checked_modes(modes)

    def validate(self, attrs: Json) -> Json:
        """Remove the fields that may only be false, and split `queueing` into its two columns."""
        if "queueing" in attrs:
            chosen = attrs.pop("queueing")
            attrs["queue_max"] = chosen["max"] if chosen else 0
            attrs["queue_wait_s"] = chosen["waitS"] if chosen else QUEUE_WAIT_S
        for later in ("liveView", "publicAsk"):
            if attrs.pop(later, False):
                raise serializers.ValidationError({later: NOT_OFFERED})
        return attrs


class NewAgent(AgentChanges):
    """The body of POST: either the session that is published, or the remote A2A server."""

    sessionId = serializers.UUIDField(required=False)
    slug = serializers.CharField(required=False, allow_null=True, max_length=64)
    remote = RemotePlace(required=False)

    def validate(self, attrs: Json) -> Json:
        """Require either a session or a remote server, and not both."""
        if ("sessionId" in attrs) == ("remote" in attrs):
            raise serializers.ValidationError({"sessionId": "want either sessionId or remote"})
        return super().validate(attrs)


class ChangedAgent(AgentChanges):
    """The body of PATCH; `sessionId` moves the agent to another session of its owner, `remote` moves a remote
    A2A server. The slug is fixed at publishing.
    """

    sessionId = serializers.UUIDField(required=False, write_only=True)
    slug = serializers.CharField(required=False, allow_null=True, max_length=64, write_only=True)

    remote = RemoteChanges(required=False)


def show_agents(agents: Sequence[Agent], *, viewer_id: int, with_papers: bool = True) -> list[ApiAgent]:
    """The ApiAgents of agents whose owner and session are loaded; the number of queries is constant.

    Only the owner sees the users that an agent is limited to, the callers' own budgets, and costs.
    `with_papers`: includes the two long texts of the owner.
    """
    load_agent_activity(agents)
    own = [agent for agent in agents if agent.owner_id == viewer_id]
    ids = [agent.pk for agent in own]
    granted, budgets = load_granted_logins(ids), load_caller_budgets(ids)
    remote = RemoteServer.objects.in_bulk([agent.session_id for agent in own], field_name="session_id")
    now = db_now() if remote else None
    shown = []
    for agent in agents:
        given: Json = {} if with_papers else {"claudeMd": None, "personalizationPrompt": None}
        if agent.pk in granted:
            given |= {"allowedLogins": granted[agent.pk], "callerBudgets": budgets[agent.pk]}
        else:
            given |= dict.fromkeys(OWNERS_FIELDS, "")  # "" leaves the member out
        given["remote"] = ""
        if now and (server := remote.get(agent.session_id)):
            keys = [thumbprint(key) for key in server.card_keys]
            given["remote"] = show(ApiRemote, server, breaker=server.breaker(now), cardKeys=keys)
        given["queueing"] = {"max": agent.queue_max, "waitS": agent.queue_wait_s} if agent.queue_max else None
        shown.append(show(ApiAgent, agent, **given))
    return shown


def show_agent(agent: Agent, *, viewer_id: int) -> ApiAgent:
    """One ApiAgent."""
    return show_agents([agent], viewer_id=viewer_id)[0]


class DirectoryQuery(serializers.Serializer[Any]):
    """The agents to list."""

    mine = serializers.BooleanField(default=False)
    owner = serializers.CharField(default="", allow_blank=True, max_length=64)
    q = serializers.CharField(default="", allow_blank=True, max_length=200)
    tag = serializers.RegexField(TAG, default="", allow_blank=True, max_length=32)
    favourites = serializers.BooleanField(default=False)
    sort = serializers.ChoiceField(default="", allow_blank=True, choices=[BY_HANDLE, *ORDERS])


class Agents(APIView):
    """`/agents`"""

    parser_classes = [StrictJSONParser]

    @extend_schema(parameters=[DirectoryQuery, PageQuery], responses=Page[ApiAgent])
    def get(self, request: Request) -> Response:
        """Published agents the caller may ask, by handle; with `mine`, the caller's own instead, drafts too.

        `q`: words of the handle, name, tagline, skills or description; agents are then sorted by relevance.
        `tag`: agents with this tag. `favourites`: those that the caller marked. `sort`: `handle`, `use` (asks of
        30 days), `rate` (thumbs of callers, then the share of answered asks) or `latency`.

        Without `limit` up to 5000. `claudeMd` and `personalizationPrompt` are null in a list.
        """
        query, caller = read_query(DirectoryQuery, request), caller_of(request)
        agents = Agent.objects
        found = agents.kept().owned_by(caller) if query["mine"] else agents.askable_by(caller.pk)
        if query["owner"]:
            found = found.filter(owner__login__iexact=query["owner"])
        if query["tag"]:
            found = found.filter(has_tag(query["tag"]))
        if query["favourites"]:
            found = found.filter(find_favourites(caller.pk))
        matching = found.select_related("owner", "session").defer(*LONG_TEXT_FIELDS).matching(query["q"])
        listed = sort_agents(matching, query["sort"])
        shown = partial(show_agents, viewer_id=caller.pk, with_papers=False)
        return page(request, listed, shown, most=MAX_LISTED)

    @extend_schema(request=NewAgent, responses={201: PublishedAgent, 404: ErrorBody, 409: ErrorBody})
    def post(self, request: Request) -> Response:
        """Publish a session of the caller's, or a remote A2A server; 409 when the handle or the session is taken.

        A remote server is named by its agent card, which is fetched at once.
        """
        owner, details = caller_of(request), NewAgent.read(request).validated_data
        named = {name: details.pop(name, None) for name in ("slug", "allowed", "budgets")}
        if "remote" in details:
            take_slot(request, CARD_LOOKUPS, owner.pk)
        try:
            if "remote" in details:
                published = publish_remote(owner, look_up_server(details.pop("remote")), details, **named)
            else:
                session = _get_session(owner, details.pop("sessionId"))
                published = directory.publish_agent(owner, session, details, **named)
        except directory.BadSlug as bad:
            raise ValidationError({"slug": str(bad)}) from None
        except directory.HandleTaken as taken:
            raise Conflict(str(taken)) from None
        shown: PublishedAgent = {
            **show_agent(published.agent, viewer_id=owner.pk),
            "restored": published.restored,
        }
        return Response(shown, status=201)


class AgentByHandle(APIView):
    """`/agents/by-handle/{owner}/{slug}`"""

    @extend_schema(responses=ApiAgent)
    def get(self, request: Request, owner: str, slug: str) -> Response:
        """An agent the caller may ask, or a draft of the caller's."""
        caller = caller_of(request)
        found = Agent.objects.visible_to(caller).at(f"{owner}/{slug}")
        agent = get_one(found.select_related("owner", "session"), NO_AGENT)
        return Response(show_agent(agent, viewer_id=caller.pk))


class OneAgent(APIView):
    """`/agents/{id}`"""

    parser_classes = [StrictJSONParser]

    @extend_schema(request=ChangedAgent, responses={200: ApiAgent, 409: ErrorBody})
    def patch(self, request: Request, agent_id: int) -> Response:
        """Change what the body names; a draft, and one whose access narrows, is closed to callers at once.

        `sessionId` moves the agent to another session of its owner; 409 while a question to it is open, while it
        is halted, and when the session has an agent, is archived or is reached over another link.
        """
        owner = caller_of(request)
        agent = get_own_agent(agent_id, owner)
        changes = ChangedAgent.read(request, partial=True).validated_data
        if "slug" in changes and changes.pop("slug") != agent.slug:
            raise ValidationError({"slug": "fixed at publishing; delete the agent and publish anew"})
        session = _get_session(owner, changes.pop("sessionId")) if "sessionId" in changes else None
        if remote := changes.pop("remote", None):
            take_slot(request, CARD_LOOKUPS, owner.pk)
            move_server(agent, remote)
        allowed, budgets = changes.pop("allowed", None), changes.pop("budgets", None)
        try:
            revised = directory.revise_agent(agent.pk, changes, allowed, budgets, session)
        except NotMovable as refused:
            raise Conflict(str(refused)) from None
        if revised is None:
            raise NotFound(NO_AGENT)
        return Response(show_agent(revised, viewer_id=owner.pk))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, agent_id: int) -> Response:
        """Free the handle and stop every ask from the next request on; the log stays."""
        get_own_agent(agent_id, caller_of(request)).soft_delete()
        return Response(status=204)


def get_own_agent(agent_id: int, owner: User) -> Agent:
    """An agent of this owner that is not deleted; other agents raise the same NotFound as absent ones."""
    agents = Agent.objects.kept().owned_by(owner).select_related("owner", "session")
    return get_one(agents.filter(pk=agent_id), NO_AGENT)


def _get_session(owner: User, public_id: UUID) -> Session:
    return get_one(Session.objects.owned_by(owner).filter(public_id=public_id), NO_SESSION)
