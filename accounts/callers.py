"""The caller of a request to Django: one reading of its credentials for pages, the admin and REST."""

from contextlib import suppress
from dataclasses import dataclass

from django.http import HttpRequest

from accounts.authn import CALLER_KINDS, COOKIE, Identity, Presented, find_identity, presented
from accounts.models import Credential, User
from accounts.settings import get_settings
from kit.sql import AWAY


@dataclass(frozen=True, slots=True)
class Caller:
    """A signed-in user, and the credential that says so."""

    user: User
    identity: Identity


def presented_by(request: HttpRequest) -> Presented | None:
    """The token a request carries, live or not."""
    headers = {name.lower(): value for name, value in request.headers.items()}
    # Django's own parsing of cookies, because ours fails on a malformed cookie beside ours.
    headers["cookie"] = f"{COOKIE}={request.COOKIES[COOKIE]}" if COOKIE in request.COOKIES else ""
    return presented(headers, request.method or "", get_settings().public_url)


def find_caller(request: HttpRequest) -> Caller | None:
    """Who sent a request, by the live session or app credential of an active user. Notes its use."""
    identity = find_identity(presented_by(request))
    if identity is None or identity.kind not in CALLER_KINDS:
        return None
    if identity.is_stale:
        with suppress(*AWAY):  # who reads needs nothing written; the next use is noted
            Credential.touch([identity.credential_id])
    user = User.objects.filter(pk=identity.user_id).first()
    return Caller(user, identity) if user else None
