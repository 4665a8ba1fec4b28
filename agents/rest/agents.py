"""The directory, and an owner's own agents."""

from functools import partial
from typing import Any

from django.db.models import Q
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.rest import Conflict, StrictJSONParser, caller_of
from agents import publishing
from agents.models import Agent, Session
from agents.rest.paging import PageQuery, page, read_query
from agents.rest.serializers import AgentChanges, NewAgent, show_agent, show_agents
from agents.rest.shapes import ApiAgent, PublishedAgent
from kit.describe import ErrorBody, Page


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
        """Published agents the caller may ask, by handle; `mine` adds the caller's drafts."""
        query, caller = read_query(DirectoryQuery, request), caller_of(request)
        agents = Agent.objects
        found = agents.visible_to(caller) if query["mine"] else agents.askable_by(caller.pk)
        if query["owner"]:
            found = found.filter(owner__login__iexact=query["owner"])
        if text := query["q"]:
            found = found.filter(Q(handle__icontains=text) | Q(name__icontains=text) | Q(tagline__icontains=text))
        listed = found.select_related("owner", "session").order_by("handle_key")
        return page(request, listed, partial(show_agents, viewer_id=caller.pk))

    @extend_schema(request=NewAgent, responses={201: PublishedAgent, 404: ErrorBody, 409: ErrorBody})
    def post(self, request: Request) -> Response:
        """Publish a session of the caller's; 409 when the handle or the session is taken."""
        owner, details = caller_of(request), _checked(NewAgent(data=request.data))
        session = Session.objects.owned_by(owner).filter(public_id=details.pop("sessionId")).first()
        if session is None:
            raise NotFound("no such session")
        try:
            slug, allowed = details.pop("slug", None), details.pop("allowed", None)
            published = publishing.publish(owner, session, details, slug=slug, allowed=allowed)
        except publishing.BadSlug as bad:
            raise ValidationError({"slug": str(bad)}) from None
        except publishing.Taken as taken:
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
        caller, handle = caller_of(request), f"{owner}/{slug}"
        visible = Agent.objects.visible_to(caller)
        agent = None if "\0" in handle else visible.at(handle).select_related("owner", "session").first()
        if agent is None:
            raise NotFound("no such agent")
        return Response(show_agent(agent, viewer_id=caller.pk))


class OneAgent(APIView):
    """`/agents/{id}`"""

    parser_classes = [StrictJSONParser]

    @extend_schema(request=AgentChanges, responses=ApiAgent)
    def patch(self, request: Request, agent_id: int) -> Response:
        """Change what the body names; a draft, and one whose access narrows, is closed to callers at once."""
        owner = caller_of(request)
        agent = get_own_agent(agent_id, owner)
        changes = _checked(AgentChanges(data=request.data, partial=True))
        _refuse_moving(agent, request.data)
        revised = publishing.revise(agent.pk, changes, changes.pop("allowed", None))
        if revised is None:
            raise NotFound("no such agent")
        return Response(show_agent(revised, viewer_id=owner.pk))

    @extend_schema(responses={204: None})
    def delete(self, request: Request, agent_id: int) -> Response:
        """Free the handle and stop every ask from the next request on; the log stays."""
        get_own_agent(agent_id, caller_of(request)).soft_delete()
        return Response(status=204)


def get_own_agent(agent_id: int, owner: User) -> Agent:
    """A kept agent of this owner's; others' and absent ones are the same 404."""
    agents = Agent.objects.kept().owned_by(owner).select_related("owner", "session")
    agent: Agent | None = agents.filter(pk=agent_id).first()
    if agent is None:
        raise NotFound("no such agent")
    return agent


def _checked(serializer: serializers.Serializer[Any]) -> dict[str, Any]:
    serializer.is_valid(raise_exception=True)
    return dict(serializer.validated_data)


def _refuse_moving(agent: Agent, body: Any) -> None:
    """A handle and its session are fixed at publishing; sending back what they are is fine."""
    for field, now in {"slug": agent.slug, "sessionId": str(agent.session.public_id)}.items():
        if body.get(field, now) != now:
            raise ValidationError({field: "fixed at publishing; delete the agent and publish anew"})
