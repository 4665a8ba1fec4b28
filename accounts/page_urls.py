"""Addresses of pages about oneself."""

from django.urls import path

from accounts import pages

urlpatterns = [
    path("signin", pages.signin, name="signin"),
    path("signout", pages.signout, name="signout"),
]
