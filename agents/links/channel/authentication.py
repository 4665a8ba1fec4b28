"""Who calls the REST beside the agents' socket: the owner of a live channel token."""

from typing import cast

from rest_framework.authentication import BaseAuthentication
from rest_framework.request import Request

from accounts.authn import Identity, identify, presented
from accounts.models import Credential, User


class ChannelAuthentication(BaseAuthentication):
    """By Bearer alone: an agent has no cookie."""

    def authenticate(self, request: Request) -> tuple[User, Identity] | None:
        """The owner and the identity of the token; None without a live one, which is then a 401."""
        token = presented({"authorization": request.headers.get("Authorization", "")})
        identity = identify({token.digest}).get(token.digest) if token else None
        if identity is None or identity.kind != Credential.Kind.CHANNEL:
            return None
        user = User.objects.filter(pk=identity.user_id).first()
        return (user, identity) if user else None

    def authenticate_header(self, request: Request) -> str:
        """Makes a missing caller a 401 instead of a 403."""
        return "Bearer"


def token_of(request: Request) -> Identity:
    """The channel token of an authenticated request."""
    return cast(Identity, request.auth)
