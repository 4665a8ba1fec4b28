"""Addresses under /api/v1; none ends in a slash, because a redirect loses a POST's body."""

from django.urls import path

from agents.rest.agents import AgentByHandle, Agents, OneAgent
from agents.rest.inbound import Inbound
from agents.rest.permission_decisions import ResolvePermission
from agents.rest.sessions import OneSession, Sessions

urlpatterns = [
    path("agents", Agents.as_view(), name="agents"),
    path("agents/by-handle/<str:owner>/<str:slug>", AgentByHandle.as_view(), name="agent-by-handle"),
    path("agents/<int:agent_id>", OneAgent.as_view(), name="agent"),
    path("agents/<int:agent_id>/inbound", Inbound.as_view(), name="agent-inbound"),
    path("sessions", Sessions.as_view(), name="sessions"),
    path("sessions/<uuid:public_id>", OneSession.as_view(), name="session"),
    path(
        "sessions/<uuid:public_id>/permissions/<path:request_id>/resolve",
        ResolvePermission.as_view(),
        name="session-permission-resolve",
    ),
]
