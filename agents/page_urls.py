"""Addresses of pages about agents."""

from django.urls import include, path

from agents import pages

urlpatterns = [
    path("", pages.home, name="home"),
    path("", include("agents.desk.urls")),
]
