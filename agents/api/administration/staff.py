"""Who may look, and how much of a list at once."""

from typing import Any

from rest_framework import serializers
from rest_framework.permissions import BasePermission
from rest_framework.request import Request
from rest_framework.views import APIView

from accounts.authn import TokenScope
from accounts.models import User
from accounts.rest import InScope
from agents.api.paging import PageQuery


class IsStaff(BasePermission):
    """For the hub's staff alone."""

    message = "this is for the staff of the hub"

    def has_permission(self, request: Request, view: Any) -> bool:
        """Whether the caller is one of them; without a caller it is a 401."""
        return isinstance(request.user, User) and request.user.is_staff


class StaffView(APIView):
    """A view under `/admin`."""

    permission_classes = [IsStaff, InScope]
    scope = TokenScope.ADMIN


class FiftyQuery(PageQuery):
    """Which part of a list, 50 rows unless asked otherwise."""

    limit = serializers.IntegerField(default=50, min_value=1)


class HundredQuery(PageQuery):
    """Which part of a list, 100 rows unless asked otherwise."""

    limit = serializers.IntegerField(default=100, min_value=1)


class TwoHundredQuery(PageQuery):
    """Which part of a list, 200 rows unless asked otherwise."""

    limit = serializers.IntegerField(default=200, min_value=1)


class SearchQuery(serializers.Serializer[Any]):
    """What to look for."""

    q = serializers.CharField(default="", allow_blank=True, max_length=200)
