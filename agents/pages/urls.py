"""Addresses of the pages about agents: front page, directory, agent pages, desk."""

from django.urls import path

from agents.pages import groups
from agents.pages.desk import alerts, audit, failures, overview, publishing, ratings, remote
from agents.pages.directory import agent_availability, agent_page, directory, home, mark_favourite
from agents.pages.files import delete_file, own_files

urlpatterns = [
    path("", home, name="home"),
    path("agents", directory, name="directory"),
    path("agents/<str:owner>/<str:slug>", agent_page, name="agent-page"),
    path("agents/<str:owner>/<str:slug>/standing", agent_availability, name="agent-standing"),
    path("groups", groups.my_groups, name="groups"),
    path("groups/join/<str:token>", groups.join, name="group-join"),
    path("groups/<str:slug>", groups.group, name="group"),
    path("acting", groups.act, name="act"),
    path("agents/<str:owner>/<str:slug>/favourite", mark_favourite, name="agent-favourite"),
    path("files", own_files, name="own-files"),
    path("files/<int:file_id>/delete", delete_file, name="own-file-delete"),
    path("desk", overview.desk, name="desk"),
    path("desk/states", overview.states, name="desk-states"),
    path("desk/alerts", alerts.alerts, name="desk-alerts"),
    path("desk/bulk", overview.bulk, name="desk-bulk"),
    path("desk/costs", audit.costs, name="desk-costs"),
    path("desk/costs.csv", audit.costs_as_csv, name="desk-costs-csv"),
    path("desk/failures", failures.failures, name="desk-failures"),
    path("desk/failures/<int:failure_id>", failures.failure, name="desk-failure"),
    path("desk/publish", publishing.publish, name="desk-publish"),
    path("desk/remote", remote.publish, name="desk-remote"),
    path("desk/agents/<int:agent_id>/remote", remote.server, name="desk-server"),
    path("desk/agents/<int:agent_id>", publishing.edit, name="desk-agent"),
    path("desk/agents/<int:agent_id>/published", publishing.published, name="desk-published"),
    path("desk/agents/<int:agent_id>/delete", publishing.delete, name="desk-delete"),
    path("desk/agents/<int:agent_id>/audit", audit.audit, name="desk-audit"),
    path("desk/agents/<int:agent_id>/ratings", ratings.agent_ratings, name="desk-ratings"),
    path("desk/agents/<int:agent_id>/audit.csv", audit.audit_as_csv, name="desk-audit-csv"),
]
