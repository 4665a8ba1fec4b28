"""Addresses of a team's pages; `hub/urls.py` includes them where the gateway is on."""

from django.urls import path

from gateway.web import changes, team

urlpatterns = [
    path("desk/team", team.team, name="team"),
    path("desk/team/rules", changes.rules, name="team-rules"),
    path("desk/team/agents/<slug:agent_name>", changes.agent, name="team-agent"),
    path("desk/team/proposals/<int:proposal_id>", team.proposal, name="team-proposal"),
]
