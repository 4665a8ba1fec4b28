"""Addresses under /api/v1."""

from django.urls import path

from hub.estate.rest import Account, Export

urlpatterns = [
    path("me/export", Export.as_view(), name="export"),
    path("me/account", Account.as_view(), name="account-rest"),
]
