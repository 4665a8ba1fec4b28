"""Addresses of a team's pages; `hub/urls.py` includes them where the gateway is on."""

from django.urls import path

from gateway.web import changes, team

urlpatterns = [
    path("desk/team", team.team, name="desk-team"),
    path("desk/team/rules", changes.rules, name="desk-team-rules"),
    path("desk/team/agents/<slug:agent_name>", changes.agent, name="desk-team-agent"),
    path("desk/team/proposals/<int:proposal_id>", team.proposal, name="desk-team-proposal"),
]
