"""Addresses under /api/v1 and /api/channel; none ends in a slash, because a redirect loses a POST's body."""

from django.urls import include, path

from agents.api import not_offered
from agents.api.admin_figures import StatsActiveUsers, StatsOverview, StatsTimeseries
from agents.api.admin_lists import AdminAgents, AdminShares, AdminTokens, AdminUsers
from agents.api.admin_sessions import AdminSession, AdminSessions, AdminTimeline
from agents.api.agents import AgentByHandle, Agents, BulkChanges, CardChange, OneAgent, RemoteCards
from agents.api.archiving import ArchiveSession, PruneSessions
from agents.api.events import Events, OpMessages, SessionTimeline
from agents.api.files import ChannelFiles, FileContent, OneChannelFile, OneFile, SessionFiles
from agents.api.halts import AdminHalt, AdminHalts, Blocks, HaltAgent, OneBlock
from agents.api.inbound import Inbound
from agents.api.permissions import Permissions, ResolvePermission
from agents.api.sessions import OneSession, Peers, Sessions
from agents.api.shares import OneShare, Shares
from agents.api.token_usage import AllTokenUsage, SessionTokenUsage

admin_urlpatterns = [
    path("stats/overview", StatsOverview.as_view(), name="admin-overview"),
    path("stats/timeseries/<str:metric>", StatsTimeseries.as_view(), name="admin-timeseries"),
    path("stats/users/active", StatsActiveUsers.as_view(), name="admin-active-users"),
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
    path("agents/<int:agent_id>/halt", HaltAgent.as_view(), name="agent-halt"),
    path("blocks", Blocks.as_view(), name="blocks"),
    path("blocks/<str:login>", OneBlock.as_view(), name="block"),
    path("admin/", include(admin_urlpatterns)),
    path("peers", Peers.as_view(), name="peers"),
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
    path("sessions/<uuid:public_id>/shares", Shares.as_view(), name="session-shares"),
    path("sessions/<uuid:public_id>/shares/<str:login>", OneShare.as_view(), name="session-share"),
    path("sessions/<uuid:public_id>/timeline", SessionTimeline.as_view(), name="session-timeline"),
    path("sessions/<uuid:public_id>/token-usage", SessionTokenUsage.as_view(), name="session-token-usage"),
    path("token-usage", AllTokenUsage.as_view(), name="token-usage"),
    path("sessions/<uuid:public_id>/files", SessionFiles.as_view(), name="session-files"),
    path("files/<int:file_id>", OneFile.as_view(), name="file"),
    path("files/<int:file_id>/content", FileContent.as_view(), name="file-content"),
    *not_offered.urlpatterns,
]

channel_urlpatterns = [
    path("files", ChannelFiles.as_view(), name="channel-files"),
    path("files/<int:file_id>", OneChannelFile.as_view(), name="channel-file"),
]
