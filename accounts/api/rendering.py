"""Accounts and credentials as the native API shows them."""

from typing import Any, Literal

from django.db import models
from rest_framework import serializers
from rest_framework.request import Request

from accounts.models import Credential, User
from accounts.rest import caller_of
from accounts.shapes import ApiToken, ApiUser, AuthSession, SignedIn
from accounts.tokens import Minted
from kit.clock import iso, iso_or_none

NO_STORE = {"Cache-Control": "no-store"}


def api_user(user: User) -> ApiUser:
    """ApiUser of the native API."""
    return {
        "id": user.pk,
        "githubLogin": user.login,
        "avatarUrl": user.avatar_url or None,
        "isAdmin": user.is_staff,
        "createdAt": iso(user.created_at),
    }


def api_token(credential: Credential) -> ApiToken:
    """ApiToken of the native API."""
    return {
        "id": credential.pk,
        "kind": credential.kind,
        "name": credential.name,
        "prefix": credential.prefix,
        "format": token_format(credential),
        "appName": credential.app_name or None,
        "createdAt": iso(credential.created_at),
        "lastUsedAt": iso_or_none(credential.last_used_at),
        "expiresAt": iso_or_none(credential.expires_at),
        "scopes": credential.scopes.split() or None,
        "agent": credential.only_agent or None,
        "revokedAt": iso_or_none(credential.revoked_at),
        "machineId": credential.machine_id or None,
        "userAgent": credential.user_agent or None,
    }


def token_format(credential: Credential) -> Literal["opaque", "jwt"]:
    """What the text of a token is: random characters, or a signed JWT."""
    return "jwt" if credential.is_jwt else "opaque"


def api_auth_session(credential: Credential, current: int) -> AuthSession:
    """AuthSession of the native API; its id is the hash of its token, from which the token cannot be derived."""
    return {
        "id": credential.digest,
        "source": "web" if credential.source == Credential.Source.WEB else "cli",
        "userAgent": credential.user_agent or None,
        "machineId": credential.machine_id or None,
        "createdAt": iso(credential.created_at),
        "lastUsedAt": iso(credential.last_used_at or credential.created_at),
        "expiresAt": iso_or_none(credential.expires_at),
        "revokedAt": iso_or_none(credential.revoked_at),
        "isCurrent": credential.pk == current,
    }


def api_session_token(minted: Minted) -> SignedIn:
    """What a command line gets for its code."""
    credential = minted.credential
    return {
        "user": api_user(credential.user),
        "session": {"token": minted.token, "expiresAt": iso_or_none(credential.expires_at)},
    }


def user_agent_of(request: Request) -> str:
    """The program that asks."""
    return str(request.headers.get("User-Agent", ""))


LISTED = 1000


class ListQuery(serializers.Serializer[Any]):
    """What belongs in a list."""

    includeRevoked = serializers.BooleanField(default=False)


def listed(request: Request, kinds: list[Credential.Kind]) -> models.QuerySet[Credential]:
    """The newest LISTED of these kinds, without the revoked unless asked for."""
    query = ListQuery(data=request.query_params)
    query.is_valid(raise_exception=True)
    own = Credential.objects.filter(user=caller_of(request), kind__in=kinds)
    if not query.validated_data["includeRevoked"]:
        own = own.live()
    newest: models.QuerySet[Credential] = own.order_by("-created_at", "-pk")[:LISTED]
    return newest
