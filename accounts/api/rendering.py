"""Accounts and credentials as the native API shows them."""

from collections.abc import Sequence
from typing import Any, TypeVar

from django.db import models
from rest_framework import serializers
from rest_framework.request import Request

from accounts.models import Credential
from accounts.paging import read_query
from accounts.rest import caller_of
from accounts.shapes import ApiUser, AuthSession, SessionText, SignedIn
from accounts.tokens import Minted
from kit.clock import iso
from kit.rows import show

Shape = TypeVar("Shape")
NO_STORE = {"Cache-Control": "no-store"}


def show_token(shape: type[Shape], credential: Credential, **given: Any) -> Shape:
    """A channel or app token as a shape that has its format and its scopes."""
    scopes = credential.scopes.split() or None
    return show(shape, credential, format="jwt" if credential.is_jwt else "opaque", scopes=scopes, **given)


def show_auth_session(credential: Credential, current: int) -> AuthSession:
    """Its id is the hash of its token, from which the token cannot be derived."""
    return show(
        AuthSession,
        credential,
        source="web" if credential.source == Credential.Source.WEB else "cli",
        lastUsedAt=iso(credential.last_used_at or credential.created_at),
        isCurrent=credential.pk == current,
    )


def show_signed_in(minted: Minted) -> SignedIn:
    """The answer to a command line that exchanged its code."""
    session = show(SessionText, minted.credential, token=minted.token)
    return {"user": show(ApiUser, minted.credential.user), "session": session}


def user_agent_of(request: Request) -> str:
    """The program that asks."""
    return str(request.headers.get("User-Agent", ""))


LISTED = 1000


class ListQuery(serializers.Serializer[Any]):
    """The parameters of a list."""

    includeRevoked = serializers.BooleanField(default=False)


def listed(request: Request, kinds: Sequence[Credential.Kind]) -> models.QuerySet[Credential]:
    """The newest LISTED of these kinds, without the revoked unless asked for."""
    own = Credential.objects.filter(user=caller_of(request), kind__in=kinds)
    if not read_query(ListQuery, request)["includeRevoked"]:
        own = own.live()
    newest: models.QuerySet[Credential] = own.order_by("-created_at", "-pk")[:LISTED]
    return newest
