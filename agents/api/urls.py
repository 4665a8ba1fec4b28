"""Addresses under /api/v1 and /api/channel; none ends in a slash, because a redirect loses a POST's body.

Also the calls that this hub does not offer: desktops, which start and steer sessions, and anonymous threads.
"""

from collections.abc import Callable
from typing import Any, TypedDict
from uuid import UUID

from django.urls import include, path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import APIException
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.paging import read_query
from accounts.rest import caller_of
from agents.api.admin import (
    AdminAgents,
    AdminSession,
    AdminSessions,
    AdminShares,
    AdminTimeline,
    AdminTokens,
    AdminUsers,
)
from agents.api.admin_figures import StatsActiveUsers, StatsOverview, StatsTimeseries
from agents.api.admin_log import AdminLog, AdminLogExport
from agents.api.agent_control import AdminHalt, AdminHalts, Blocks, BulkChanges, CardChange, HaltAgent, OneBlock
from agents.api.agents import AgentByHandle, Agents, OneAgent, get_own_agent
from agents.api.events import Events, OpMessages, SessionTimeline
from agents.api.failures import AlertRules, Failures, OneAlertRule, OneFailure
from agents.api.favourites import Favourites, OneFavourite
from agents.api.files import (
    ChannelFiles,
    FileContent,
    FilePreview,
    OneChannelFile,
    OneFile,
    QuestionFiles,
    SessionFiles,
)
from agents.api.ratings import AgentRating, AgentRatings, AnswerRating
from agents.api.remote import RemoteCards
from agents.api.session_access import OneSessionShare, Permissions, ResolvePermission, SessionShares
from agents.api.sessions import (
    NO_DESKTOPS,
    ArchiveSession,
    OneSession,
    Peers,
    PruneSessions,
    Sessions,
    get_session,
)
from agents.api.usage import AllTokenUsage, Inbound, SessionTokenUsage, ThreadStats
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
    """The threads to list."""

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
REFUSED = [  # the route, the view's name, and a description of each method
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
    """A method of a view that this hub does not offer; a session in the URL must be visible to the caller."""

    def refuse(view: APIView, request: Request, public_id: UUID | None = None, **named: str) -> Response:
        if public_id is not None:
            get_session(request, public_id)
        raise NotOffered

    refuse.__doc__ = text
    return extend_schema(request=None, responses={404: ErrorBody})(refuse)


def make_refusing_view(name: str, texts: dict[str, str]) -> type[APIView]:
    """A view whose methods are not offered. `texts`: descriptions by method; `name`: the name of the view."""
    return type(name, (APIView,), {method: make_refusing_method(text) for method, text in texts.items()})


not_offered_urlpatterns = [
    path("agents/<int:agent_id>/threads", Threads.as_view(), name="agent-threads"),
    path("desktops", Desktops.as_view(), name="desktops"),
    *(path(route, make_refusing_view(name, texts).as_view()) for route, name, texts in REFUSED),
]


admin_urlpatterns = [
    path("stats/overview", StatsOverview.as_view(), name="admin-overview"),
    path("stats/timeseries/<str:metric>", StatsTimeseries.as_view(), name="admin-timeseries"),
    path("stats/users/active", StatsActiveUsers.as_view(), name="admin-active-users"),
    path("log", AdminLog.as_view(), name="admin-log"),
    path("log/export", AdminLogExport.as_view(), name="admin-log-export"),
    path("sessions", AdminSessions.as_view(), name="admin-sessions"),
    path("sessions/<uuid:public_id>", AdminSession.as_view(), name="admin-session"),
    path("sessions/<uuid:public_id>/timeline", AdminTimeline.as_view(), name="admin-timeline"),
    path("halts", AdminHalts.as_view(), name="admin-halts"),
    path("halts/<int:halt_id>", AdminHalt.as_view(), name="admin-halt"),
    path("shares", AdminShares.as_view(), name="admin-shares"),
    path("agents", AdminAgents.as_view(), name="admin-agents"),
    path("tokens", AdminTokens.as_view(), name="admin-tokens"),
    path("users", AdminUsers.as_view(), name="admin-users"),
]

urlpatterns = [
    path("agents", Agents.as_view(), name="agents"),
    path("agents/by-handle/<str:owner>/<str:slug>", AgentByHandle.as_view(), name="agent-by-handle"),
    path("agents/bulk", BulkChanges.as_view(), name="agent-bulk"),
    path("agents/cards", RemoteCards.as_view(), name="agent-cards"),
    path("agents/<int:agent_id>", OneAgent.as_view(), name="agent"),
    path("agents/<int:agent_id>/card-change", CardChange.as_view(), name="agent-card-change"),
    path("agents/<int:agent_id>/inbound", Inbound.as_view(), name="agent-inbound"),
    path("agents/<int:agent_id>/rating", AgentRating.as_view(), name="agent-rating"),
    path("agents/<int:agent_id>/ratings", AgentRatings.as_view(), name="agent-ratings"),
    path("agents/<int:agent_id>/halt", HaltAgent.as_view(), name="agent-halt"),
    path("blocks", Blocks.as_view(), name="blocks"),
    path("blocks/<str:login>", OneBlock.as_view(), name="block"),
    path("failures", Failures.as_view(), name="failures"),
    path("failures/<int:failure_id>", OneFailure.as_view(), name="failure"),
    path("favourites", Favourites.as_view(), name="favourites"),
    path("favourites/<str:owner>/<str:slug>", OneFavourite.as_view(), name="favourite"),
    path("alert-rules", AlertRules.as_view(), name="alert-rules"),
    path("alert-rules/<str:kind>", OneAlertRule.as_view(), name="alert-rule"),
    path("admin/", include(admin_urlpatterns)),
    path("peers", Peers.as_view(), name="peers"),
    path("questions/<str:chat_id>/rating", AnswerRating.as_view(), name="answer-rating"),
    path("sessions", Sessions.as_view(), name="sessions"),
    path("sessions/prune", PruneSessions.as_view(), name="session-prune"),
    path("sessions/<uuid:public_id>", OneSession.as_view(), name="session"),
    path(
        "sessions/<uuid:public_id>/permissions/<path:request_id>/resolve",
        ResolvePermission.as_view(),
        name="session-permission-resolve",
    ),
    path("sessions/<uuid:public_id>/archive", ArchiveSession.as_view(), name="session-archive"),
    path("sessions/<uuid:public_id>/events", Events.as_view(), name="session-events"),
    path("sessions/<uuid:public_id>/op-messages", OpMessages.as_view(), name="session-op-messages"),
    path("sessions/<uuid:public_id>/permissions", Permissions.as_view(), name="session-permissions"),
    path("sessions/<uuid:public_id>/shares", SessionShares.as_view(), name="session-shares"),
    path("sessions/<uuid:public_id>/shares/<str:login>", OneSessionShare.as_view(), name="session-share"),
    path("sessions/<uuid:public_id>/timeline", SessionTimeline.as_view(), name="session-timeline"),
    path("sessions/<uuid:public_id>/token-usage", SessionTokenUsage.as_view(), name="session-token-usage"),
    path("token-usage", AllTokenUsage.as_view(), name="token-usage"),
    path("sessions/<uuid:public_id>/files", SessionFiles.as_view(), name="session-files"),
    path("files", QuestionFiles.as_view(), name="files"),
    path("files/<int:file_id>", OneFile.as_view(), name="file"),
    path("files/<int:file_id>/content", FileContent.as_view(), name="file-content"),
    path("files/<int:file_id>/preview", FilePreview.as_view(), name="file-preview"),
    *not_offered_urlpatterns,
]

channel_urlpatterns = [
    path("files", ChannelFiles.as_view(), name="channel-files"),
    path("files/<int:file_id>", OneChannelFile.as_view(), name="channel-file"),
]
