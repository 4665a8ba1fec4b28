"""The directory, an owner's own agents, several of them at once, and changed cards of remote servers."""

from functools import partial
from typing import Any, Literal, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.paging import PageQuery, page, read_query
from accounts.rest import Body, Conflict, StrictJSONParser, caller_of, get_one
from accounts.sealing import Unreadable
from agents.api.serializers import (
    CardDecision,
    ChangedAgent,
    NewAgent,
    RemotePlace,
    show_agent,
    show_agents,
)
from agents.api.shapes import ApiAgent, ApiCard, ApiCardChange, ApiCardMember, PublishedAgent
from agents.core import directory
from agents.core.agent_moves import NotMovable
from agents.core.bulk_changes import MOST_AT_ONCE, BulkAction, BulkReport, change_agents
from agents.links.remote.access import NO_AUTH, BadAuth
from agents.links.remote.approval import CARD_DECISIONS, ChangedCard, NotWaiting, find_changed_card
from agents.links.remote.card import BadCard
from agents.links.remote.publishing import ServerSettings, find_server, look_again, move, publish_remote
from agents.models import Agent, RemoteServer, Session
from agents.models.remote import SWITCHES
from agents.transcript.pieces import Json
from kit.concurrency import CARD_LOOKUPS, take_slot
from kit.describe import ErrorBody, Page
from kit.rows import show

NO_AGENT = "no such agent"
NO_SESSION = "no such session"
MOST_LISTED = 5000
LARGEST_ID = 2**63 - 1
LONG_TEXT_FIELDS = (
    "claude_md",
    "personalization_prompt",
)  # up to 64 Ki characters each, too much for a list of many


class DirectoryQuery(serializers.Serializer[Any]):
    """Which agents to list."""

    mine = serializers.BooleanField(default=False)
    owner = serializers.CharField(default="", allow_blank=True, max_length=64)
    q = serializers.CharField(default="", allow_blank=True, max_length=200)


class Agents(APIView):
    """`/agents`"""

    parser_classes = [StrictJSONParser]

    @extend_schema(parameters=[DirectoryQuery, PageQuery], responses=Page[ApiAgent])
    def get(self, request: Request) -> Response:
        """Published agents the caller may ask, by handle; with `mine`, the caller's own instead, drafts too.

        `q`: words of the handle, name, tagline, skills or description; agents are then sorted by relevance.

        Without `limit` up to 5000. `claudeMd` and `personalizationPrompt` are null in a list.
        """
        query, caller = read_query(DirectoryQuery, request), caller_of(request)
        agents = Agent.objects
        found = agents.kept().owned_by(caller) if query["mine"] else agents.askable_by(caller.pk)
        if query["owner"]:
            found = found.filter(owner__login__iexact=query["owner"])
        listed = found.select_related("owner", "session").defer(*LONG_TEXT_FIELDS).matching(query["q"])
        shown = partial(show_agents, viewer_id=caller.pk, with_papers=False)
        return page(request, listed, shown, most=MOST_LISTED)

    @extend_schema(request=NewAgent, responses={201: PublishedAgent, 404: ErrorBody, 409: ErrorBody})
    def post(self, request: Request) -> Response:
        """Publish a session of the caller's, or a remote A2A server; 409 when the handle or the session is taken.

        A remote server is named by its agent card, which is fetched at once.
        """
        owner, details = caller_of(request), NewAgent.read(request).validated_data
        publish = _publish_remote if "remote" in details else _publish_session
        if "remote" in details:
            take_slot(request, CARD_LOOKUPS, owner.pk)
        try:
            published = publish(owner, details)
        except directory.BadSlug as bad:
            raise ValidationError({"slug": str(bad)}) from None
        except directory.HandleTaken as taken:
            raise Conflict(str(taken)) from None
        shown: PublishedAgent = {
            **show_agent(published.agent, viewer_id=owner.pk),
            "restored": published.restored,
        }
        return Response(shown, status=201)


class RemoteCards(APIView):
    """`/agents/cards`"""

    parser_classes = [StrictJSONParser]

    @extend_schema(request=RemotePlace, responses=ApiCard)
    def post(self, request: Request) -> Response:
        """Fetch the agent card of a remote A2A server, and show how the hub would call it; nothing is kept."""
        place = RemotePlace.read(request).validated_data
        take_slot(request, CARD_LOOKUPS, caller_of(request).pk)
        return Response(show(ApiCard, _found(place).card))


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

    @extend_schema(request=ChangedAgent, responses={200: ApiAgent, 404: ErrorBody, 409: ErrorBody})
    def patch(self, request: Request, agent_id: int) -> Response:
        """Change what the body names; a draft, and one whose access narrows, is closed to callers at once.

        `sessionId` moves the agent to another session of its owner; 409 while a question to it is open, while it
        is halted, and when the session has an agent, is archived or is reached over another link.
        """
        owner = caller_of(request)
        agent = get_own_agent(agent_id, owner)
        changes = ChangedAgent.read(request, partial=True).validated_data
        _refuse_renaming(agent, changes)
        session = _find_session(owner, changes.pop("sessionId")) if "sessionId" in changes else None
        if remote := changes.pop("remote", None):
            take_slot(request, CARD_LOOKUPS, owner.pk)
            _move(agent, remote)
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
    """A kept agent of this owner's; others' and absent ones are the same 404."""
    agents = Agent.objects.kept().owned_by(owner).select_related("owner", "session")
    return get_one(agents.filter(pk=agent_id), NO_AGENT)


def _publish_session(owner: User, details: Json) -> directory.Published:
    session = _find_session(owner, details.pop("sessionId"))
    return directory.publish_agent(owner, session, details, **_named(details))


def _find_session(owner: User, public_id: UUID) -> Session:
    return get_one(Session.objects.owned_by(owner).filter(public_id=public_id), NO_SESSION)


def _publish_remote(owner: User, details: Json) -> directory.Published:
    wanted = _found(details.pop("remote"))
    return publish_remote(owner, wanted, details, **_named(details))


def _named(details: Json) -> Json:
    """The values that publishing takes beside the fields of the agent, taken out of these."""
    return {name: details.pop(name, None) for name in ("slug", "allowed", "budgets")}


def _found(given: Json) -> ServerSettings:
    """The server that its owner named, with its card."""
    auth = given["auth"]["auth"] if given.get("auth") else NO_AUTH
    keys = given.get("keys") or []
    try:
        return find_server(given["cardUrl"], auth, keys, _switches(given))
    except BadCard as bad:
        raise ValidationError({"remote": {"cardUrl": str(bad)}}) from None


def _switches(given: Json) -> dict[str, bool]:
    return {name: given[name] for name in SWITCHES if name in given}


def _move(agent: Agent, given: Json) -> None:
    """Move a remote agent to another URL or to other credentials."""
    server = RemoteServer.objects.filter(session_id=agent.session_id).first()
    if server is None:
        raise ValidationError({"remote": "this agent is a session, not a remote server"})
    if given and set(given) <= set(SWITCHES):
        RemoteServer.objects.filter(pk=server.pk).update(**given)
        return
    auth = None
    if "auth" in given:
        auth = given["auth"]["auth"] if given["auth"] else NO_AUTH
    keys = given["keys"] or [] if "keys" in given else None
    try:
        wanted = look_again(server, given.get("cardUrl"), auth, keys, _switches(given))
    except BadCard as bad:
        raise ValidationError({"remote": {"cardUrl": str(bad)}}) from None
    except (BadAuth, Unreadable) as bad:
        raise ValidationError({"remote": {"auth": str(bad)}}) from None
    move(server, wanted)


def _refuse_renaming(agent: Agent, changes: Json) -> None:
    """A handle is fixed at publishing; sending back what it is is fine."""
    if "slug" in changes and changes.pop("slug") != agent.slug:
        raise ValidationError({"slug": "fixed at publishing; delete the agent and publish anew"})


class CardChange(APIView):
    """`/agents/{id}/card-change`"""

    parser_classes = [StrictJSONParser]

    @extend_schema(responses={200: ApiCardChange, 404: ErrorBody})
    def get(self, request: Request, agent_id: int) -> Response:
        """The differences between the card by which the hub calls a remote server and its present card."""
        _, _, changed = _find_changed_card(agent_id, caller_of(request))
        members = [show(ApiCardMember, one) for one in changed.changes.shown]
        return Response(show(ApiCardChange, changed, changes=members))

    @extend_schema(request=CardDecision, responses={200: ApiAgent, 404: ErrorBody, 409: ErrorBody})
    def post(self, request: Request, agent_id: int) -> Response:
        """Call the server by the changed card, or keep the approved one; 409 when it changed again meanwhile."""
        owner = caller_of(request)
        agent, server, _ = _find_changed_card(agent_id, owner)
        decided = CardDecision.read(request).validated_data
        try:
            CARD_DECISIONS[decided["decision"]](server, decided["digest"])
        except NotWaiting:
            raise Conflict("another card waits: look at it first") from None
        return Response(show_agent(agent, viewer_id=owner.pk))


def _find_changed_card(agent_id: int, owner: User) -> tuple[Agent, RemoteServer, ChangedCard]:
    """An owner's agent whose server has a changed card; without one it is absent."""
    agent = get_own_agent(agent_id, owner)
    server = RemoteServer.objects.filter(session_id=agent.session_id).first()
    changed = find_changed_card(server) if server else None
    if server is None or changed is None:
        raise NotFound("no changed card waits")
    return agent, server, changed


class ApiAgentResult(TypedDict):
    """The result for one agent. `same`: no change was needed; `kept`: an administrator's halt stays."""

    id: int
    handle: str
    result: Literal["changed", "same", "kept"]


class ApiBulkReport(TypedDict):
    """The result for each agent, by handle. `absent`: ids that are not of the caller's agents."""

    results: list[ApiAgentResult]
    absent: list[int]


class BulkChange(Body):
    """The body of POST."""

    action = serializers.ChoiceField(choices=[one.value for one in BulkAction])
    ids = serializers.ListField(
        child=serializers.IntegerField(min_value=1, max_value=LARGEST_ID),
        allow_empty=False,
        max_length=MOST_AT_ONCE,
    )


class BulkChanges(APIView):
    """`/agents/bulk`"""

    @extend_schema(request=BulkChange, responses=ApiBulkReport)
    def post(self, request: Request) -> Response:
        """Publish, unpublish, halt or resume agents of the caller's; the report has each. Again is fine."""
        wanted = BulkChange.read(request).validated_data
        report = change_agents(caller_of(request), wanted["ids"], BulkAction(wanted["action"]))
        return Response(_show(report))


def _show(report: BulkReport) -> ApiBulkReport:
    results: list[ApiAgentResult] = [
        {"id": one.agent.pk, "handle": one.agent.handle, "result": one.result.value} for one in report.results
    ]
    return {"results": results, "absent": list(report.absent)}
