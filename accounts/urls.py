"""Addresses under /api/v1."""

from django.urls import path

from accounts.api import Me

urlpatterns = [path("me", Me.as_view(), name="me")]
