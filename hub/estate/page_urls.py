"""Pages about one's whole account."""

from django.urls import path

from hub.estate import pages

urlpatterns = [
    path("account/export", pages.export, name="account-export"),
    path("account/erase", pages.erase, name="account-erase"),
]
