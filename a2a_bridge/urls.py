"""Card addresses. The POST beside them is served before Django (`a2a_bridge.asgi`)."""

from django.urls import path

from a2a_bridge.views import agent_card, agent_usage

BASE = "agents/<str:owner>/<str:slug>"

urlpatterns = [
    path(f"{BASE}/agent-card.json", agent_card, {"rendering": "merged"}, name="agent-card"),
    path(
        f"{BASE}/.well-known/agent-card.json",
        agent_card,
        {"rendering": "negotiated"},
        name="well-known-agent-card",
    ),
    path(f"{BASE}/.well-known/agent.json", agent_card, {"rendering": "negotiated"}, name="legacy-agent-card"),
    path(f"{BASE}/v1/.well-known/agent-card.json", agent_card, {"rendering": "strict"}, name="strict-agent-card"),
    path(f"{BASE}/usage.md", agent_usage, name="agent-usage"),
]
