"""Addresses of pages about agents."""

from django.urls import include, path

from agents.web.pages.agent import agent_page, agent_standing
from agents.web.pages.directory import directory
from agents.web.pages.home import home

urlpatterns = [
    path("", home, name="home"),
    path("agents", directory, name="directory"),
    path("agents/<str:owner>/<str:slug>", agent_page, name="agent-page"),
    path("agents/<str:owner>/<str:slug>/standing", agent_standing, name="agent-standing"),
    path("", include("agents.web.desk.urls")),
]
