"""Addresses of a session's pages."""

from django.urls import path

from operators.surface import pages

HOME = "desk/sessions/<uuid:public_id>"

urlpatterns = [
    path(HOME, pages.view, name="operator-view"),
    path(f"{HOME}/rows", pages.rows, name="operator-rows"),
    path(f"{HOME}/files", pages.files, name="operator-files"),
    path(f"{HOME}/share", pages.share, name="operator-share"),
    path(f"{HOME}/unshare", pages.unshare, name="operator-unshare"),
    path(f"{HOME}/archive", pages.put_away, name="operator-archive"),
    path(f"{HOME}/delete", pages.delete, name="operator-delete"),
]
