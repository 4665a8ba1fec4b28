"""Addresses of pages about agents."""

from django.urls import path

from agents import pages

urlpatterns = [path("", pages.home, name="home")]
