"""What belongs to desktops: machines that start and steer sessions. This hub manages none, and says so."""

from typing import Any
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.api.visible import get_session
from kit.describe import ErrorBody, Items

NO_DESKTOPS = "this hub does not manage desktops"


class NotOffered(APIException):
    """Known, but not done here: a 404, because there is no such desktop and nothing failed."""

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
        """What the program of a session shows on its terminal: not offered, for it takes a desktop."""
        get_session(request, public_id)
        raise NotOffered
