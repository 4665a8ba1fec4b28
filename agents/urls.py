"""Addresses under /api/v1; none ends in a slash, because a redirect loses a POST's body."""

from django.urls import include, path

from agents.rest.agents import AgentByHandle, Agents, OneAgent
from agents.rest.blocks import Blocks, OneBlock
from agents.rest.files import FileContent, OneFile, SessionFiles
from agents.rest.inbound import Inbound
from agents.rest.permission_decisions import ResolvePermission
from agents.rest.sessions import OneSession, Sessions

urlpatterns = [
    path("agents", Agents.as_view(), name="agents"),
    path("agents/by-handle/<str:owner>/<str:slug>", AgentByHandle.as_view(), name="agent-by-handle"),
    path("agents/<int:agent_id>", OneAgent.as_view(), name="agent"),
    path("agents/<int:agent_id>/inbound", Inbound.as_view(), name="agent-inbound"),
    path("blocks", Blocks.as_view(), name="blocks"),
    path("blocks/<str:login>", OneBlock.as_view(), name="block"),
    path("admin/", include("agents.rest.administration.urls")),
    path("sessions", Sessions.as_view(), name="sessions"),
    path("sessions/<uuid:public_id>", OneSession.as_view(), name="session"),
    path(
        "sessions/<uuid:public_id>/permissions/<path:request_id>/resolve",
        ResolvePermission.as_view(),
        name="session-permission-resolve",
    ),
    path("sessions/<uuid:public_id>/files", SessionFiles.as_view(), name="session-files"),
    path("files/<int:file_id>", OneFile.as_view(), name="file"),
    path("files/<int:file_id>/content", FileContent.as_view(), name="file-content"),
]
