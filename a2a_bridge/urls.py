"""Card addresses. The POST beside them is served before Django (`a2a_bridge.asgi`)."""

from django.urls import path

from a2a_bridge.views import agent_card

urlpatterns = [
    path("agents/<str:owner>/<str:slug>/agent-card.json", agent_card, name="agent-card"),
    path("agents/<str:owner>/<str:slug>/.well-known/agent-card.json", agent_card, name="well-known-agent-card"),
]
