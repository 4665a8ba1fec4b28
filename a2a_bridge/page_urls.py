"""Addresses of the developer reference."""

from django.urls import path
from django.views.generic import RedirectView

from a2a_bridge import pages

urlpatterns = [
    path("demos/a2a/", pages.reference, name="reference"),
    path("demos/a2a", RedirectView.as_view(pattern_name="reference", query_string=True)),
    path("llms.txt", pages.llms, name="llms-txt"),
]
