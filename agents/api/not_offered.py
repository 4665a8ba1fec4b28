"""The calls that this hub does not offer: desktops, which start and steer sessions, and anonymous threads."""

from collections.abc import Callable
from typing import Any, TypedDict
from uuid import UUID

from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import read_query
from accounts.rest import caller_of
from agents.api.agents import get_own_agent
from agents.api.inbound import ThreadStats
from agents.api.sessions import NO_DESKTOPS, get_session
from kit.describe import ErrorBody, Items


class NotOffered(APIException):
    """Answers 404: the call is known, and this hub does not offer it."""

    status_code = 404
    default_detail = NO_DESKTOPS
    public_code = "not_implemented"


class Desktops(APIView):
    """`/desktops`"""

    @extend_schema(responses=Items[dict[str, Any]])
    def get(self, request: Request) -> Response:
        """The caller's desktops: none."""
        return Response({"items": []})


class AgentThreads(TypedDict):
    """The threads of an agent: none."""

    summary: ThreadStats
    items: list[dict[str, Any]]


class ThreadQuery(serializers.Serializer[Any]):
    """Which threads."""

    limit = serializers.IntegerField(default=50, min_value=1, max_value=200)
    status = serializers.ChoiceField(required=False, choices=["active", "capped", "closed", "soft_deleted"])


class Threads(APIView):
    """`/agents/{id}/threads`"""

    @extend_schema(parameters=[ThreadQuery], responses=AgentThreads)
    def get(self, request: Request, agent_id: int) -> Response:
        """Anonymous threads of one of the caller's agents: none."""
        get_own_agent(agent_id, caller_of(request))
        read_query(ThreadQuery, request)
        answer: AgentThreads = {"summary": {"total": 0, "today": 0, "active": 0}, "items": []}
        return Response(answer)


DESKTOP, SESSION = "desktops/<str:desktop>", "sessions/<uuid:public_id>"
LENT = "To whom a desktop is lent: not offered."
STEER = "Steer the program of a session: not offered, for it takes a desktop."
SCREENSHOT = "The terminal of a session's program: not offered, because it takes a desktop."
REFUSED = [  # the route, the view's name, and for each method what it would do
    (DESKTOP, "OneDesktop", {"delete": "Forget a desktop: not offered."}),
    (f"{DESKTOP}/sessions", "DesktopSessions", {"post": "Start a session on a desktop: not offered."}),
    (f"{DESKTOP}/shares", "DesktopShares", {"get": LENT, "post": "Lend a desktop: not offered."}),
    (f"{DESKTOP}/shares/<str:login>", "OneDesktopShare", {"delete": "Take a desktop back: not offered."}),
    ("sessions/preflight", "PreflightSession", {"post": "Prepare a session for a desktop: not offered."}),
    (f"{SESSION}/input", "SessionInput", {"post": STEER}),
    (f"{SESSION}/kill", "KillSession", {"post": STEER}),
    (f"{SESSION}/restart", "RestartSession", {"post": STEER}),
    (f"{SESSION}/rotate-channel-token", "RotateChannelToken", {"post": STEER}),
    (f"{SESSION}/soft-restart", "SoftRestartSession", {"post": STEER}),
    (f"{SESSION}/screenshot", "SessionScreenshot", {"get": SCREENSHOT}),
]


def make_refusing_method(text: str) -> Callable[..., Response]:
    """A method of a view that this hub does not offer. A session in its address must be visible to the caller."""

    def refuse(view: APIView, request: Request, public_id: UUID | None = None, **named: str) -> Response:
        if public_id is not None:
            get_session(request, public_id)
        raise NotOffered

    refuse.__doc__ = text
    return extend_schema(request=None, responses={404: ErrorBody})(refuse)


def make_refusing_view(name: str, texts: dict[str, str]) -> type[APIView]:
    """A view whose methods, by name, are not offered; the texts describe them, and `name` names the operations."""
    return type(name, (APIView,), {method: make_refusing_method(text) for method, text in texts.items()})


urlpatterns = [
    path("agents/<int:agent_id>/threads", Threads.as_view(), name="agent-threads"),
    path("desktops", Desktops.as_view(), name="desktops"),
    *(path(route, make_refusing_view(name, texts).as_view()) for route, name, texts in REFUSED),
]
