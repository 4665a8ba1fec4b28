"""Accounts over REST."""

from typing import Any

from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.models import User
from accounts.rest import caller_of
from kit.iso import iso


def api_user(user: User) -> dict[str, Any]:
    """ApiUser of the native API."""
    return {
        "id": user.pk,
        "githubLogin": user.login,
        "avatarUrl": user.avatar_url or None,
        "isAdmin": user.is_staff,
        "createdAt": iso(user.created_at),
    }


class Me(APIView):
    """Whose credential this is."""

    def get(self, request: Request) -> Response:
        """ApiUser."""
        return Response(api_user(caller_of(request)))
