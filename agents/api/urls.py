"""Addresses under /api/v1; none ends in a slash, because a redirect loses a POST's body."""

from django.urls import include, path

from agents.api import desktops
from agents.api.agents import AgentByHandle, Agents, OneAgent, RemoteCards
from agents.api.archiving import ArchiveSession, PruneSessions
from agents.api.blocks import Blocks, OneBlock
from agents.api.card_changes import CardChange
from agents.api.events import Events, OpMessages
from agents.api.files import FileContent, OneFile, SessionFiles
from agents.api.halts import HaltAgent
from agents.api.inbound import Inbound
from agents.api.peers import Peers
from agents.api.permission_decisions import ResolvePermission
from agents.api.permissions import Permissions
from agents.api.sessions import OneSession, Sessions
from agents.api.shares import OneShare, Shares
from agents.api.threads import Threads
from agents.api.timeline import SessionTimeline
from agents.api.token_usage import AllTokenUsage, SessionTokenUsage

urlpatterns = [
    path("agents", Agents.as_view(), name="agents"),
    path("agents/by-handle/<str:owner>/<str:slug>", AgentByHandle.as_view(), name="agent-by-handle"),
    path("agents/cards", RemoteCards.as_view(), name="agent-cards"),
    path("agents/<int:agent_id>", OneAgent.as_view(), name="agent"),
    path("agents/<int:agent_id>/card-change", CardChange.as_view(), name="agent-card-change"),
    path("agents/<int:agent_id>/inbound", Inbound.as_view(), name="agent-inbound"),
    path("agents/<int:agent_id>/threads", Threads.as_view(), name="agent-threads"),
    path("agents/<int:agent_id>/halt", HaltAgent.as_view(), name="agent-halt"),
    path("blocks", Blocks.as_view(), name="blocks"),
    path("blocks/<str:login>", OneBlock.as_view(), name="block"),
    path("admin/", include("agents.api.administration.urls")),
    path("peers", Peers.as_view(), name="peers"),
    path("sessions", Sessions.as_view(), name="sessions"),
    path("sessions/preflight", desktops.PreflightSession.as_view(), name="session-preflight"),
    path("sessions/prune", PruneSessions.as_view(), name="session-prune"),
    path("sessions/<uuid:public_id>", OneSession.as_view(), name="session"),
    path(
        "sessions/<uuid:public_id>/permissions/<path:request_id>/resolve",
        ResolvePermission.as_view(),
        name="session-permission-resolve",
    ),
    path("sessions/<uuid:public_id>/archive", ArchiveSession.as_view(), name="session-archive"),
    path("sessions/<uuid:public_id>/events", Events.as_view(), name="session-events"),
    path("sessions/<uuid:public_id>/input", desktops.SessionInput.as_view(), name="session-input"),
    path("sessions/<uuid:public_id>/kill", desktops.KillSession.as_view(), name="session-kill"),
    path("sessions/<uuid:public_id>/op-messages", OpMessages.as_view(), name="session-op-messages"),
    path("sessions/<uuid:public_id>/permissions", Permissions.as_view(), name="session-permissions"),
    path("sessions/<uuid:public_id>/restart", desktops.RestartSession.as_view(), name="session-restart"),
    path(
        "sessions/<uuid:public_id>/rotate-channel-token",
        desktops.RotateChannelToken.as_view(),
        name="session-rotate-channel-token",
    ),
    path("sessions/<uuid:public_id>/screenshot", desktops.SessionScreenshot.as_view(), name="session-screenshot"),
    path("sessions/<uuid:public_id>/shares", Shares.as_view(), name="session-shares"),
    path("sessions/<uuid:public_id>/shares/<str:login>", OneShare.as_view(), name="session-share"),
    path(
        "sessions/<uuid:public_id>/soft-restart",
        desktops.SoftRestartSession.as_view(),
        name="session-soft-restart",
    ),
    path("sessions/<uuid:public_id>/timeline", SessionTimeline.as_view(), name="session-timeline"),
    path("sessions/<uuid:public_id>/token-usage", SessionTokenUsage.as_view(), name="session-token-usage"),
    path("token-usage", AllTokenUsage.as_view(), name="token-usage"),
    path("desktops", desktops.Desktops.as_view(), name="desktops"),
    path("desktops/<str:desktop>", desktops.OneDesktop.as_view(), name="desktop"),
    path("desktops/<str:desktop>/sessions", desktops.DesktopSessions.as_view(), name="desktop-sessions"),
    path("desktops/<str:desktop>/shares", desktops.DesktopShares.as_view(), name="desktop-shares"),
    path("desktops/<str:desktop>/shares/<str:login>", desktops.OneDesktopShare.as_view(), name="desktop-share"),
    path("sessions/<uuid:public_id>/files", SessionFiles.as_view(), name="session-files"),
    path("files/<int:file_id>", OneFile.as_view(), name="file"),
    path("files/<int:file_id>/content", FileContent.as_view(), name="file-content"),
]
