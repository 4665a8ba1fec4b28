"""The calls that this hub does not offer: desktops, which start and steer sessions, and anonymous threads."""

from typing import Any, TypedDict
from uuid import UUID

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


class OneDesktop(APIView):
    """`/desktops/{desktop}`"""

    @extend_schema(responses={404: ErrorBody})
    def delete(self, request: Request, desktop: str) -> Response:
        """Forget a desktop: not offered."""
        raise NotOffered


class DesktopSessions(APIView):
    """`/desktops/{desktop}/sessions`"""

    @extend_schema(request=None, responses={404: ErrorBody})
    def post(self, request: Request, desktop: str) -> Response:
        """Start a session on a desktop: not offered."""
        raise NotOffered


class DesktopShares(APIView):
    """`/desktops/{desktop}/shares`"""

    @extend_schema(responses={404: ErrorBody})
    def get(self, request: Request, desktop: str) -> Response:
        """To whom a desktop is lent: not offered."""
        raise NotOffered

    @extend_schema(request=None, responses={404: ErrorBody})
    def post(self, request: Request, desktop: str) -> Response:
        """Lend a desktop: not offered."""
        raise NotOffered


class OneDesktopShare(APIView):
    """`/desktops/{desktop}/shares/{login}`"""

    @extend_schema(responses={404: ErrorBody})
    def delete(self, request: Request, desktop: str, login: str) -> Response:
        """Take a desktop back: not offered."""
        raise NotOffered


class PreflightSession(APIView):
    """`/sessions/preflight`"""

    @extend_schema(request=None, responses={404: ErrorBody})
    def post(self, request: Request) -> Response:
        """Prepare a session for a desktop: not offered."""
        raise NotOffered


class ManagedSession(APIView):
    """Steering a session's program from outside, which takes a desktop."""

    @extend_schema(request=None, responses={404: ErrorBody})
    def post(self, request: Request, public_id: UUID) -> Response:
        """Steer the program of a session: not offered, for it takes a desktop."""
        get_session(request, public_id)
        raise NotOffered


class KillSession(ManagedSession):
    """`/sessions/{id}/kill`"""


class RestartSession(ManagedSession):
    """`/sessions/{id}/restart`"""


class SoftRestartSession(ManagedSession):
    """`/sessions/{id}/soft-restart`"""


class SessionInput(ManagedSession):
    """`/sessions/{id}/input`"""


class RotateChannelToken(ManagedSession):
    """`/sessions/{id}/rotate-channel-token`"""


class SessionScreenshot(APIView):
    """`/sessions/{id}/screenshot`"""

    @extend_schema(responses={404: ErrorBody})
    def get(self, request: Request, public_id: UUID) -> Response:
        """The terminal of a session's program: not offered, because it takes a desktop."""
        get_session(request, public_id)
        raise NotOffered


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
