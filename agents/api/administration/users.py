"""Users: all of them, and those whose agents are busiest."""

from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from django.db.models import Count
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from agents.api.administration.shapes import ActiveUser, ActiveUsers, ListedUser
from agents.api.administration.staff import StaffView, TwoHundredQuery
from agents.api.administration.windows import since
from agents.api.paging import page, read_query
from agents.models import Event, Session
from kit.clock import db_now
from kit.describe import Page
from kit.iso import iso

WEEK = timedelta(days=7)
MOST_ACTIVE = 50
MOST_USERS = 500


class ActiveQuery(serializers.Serializer[Any]):
    """How many to show."""

    limit = serializers.IntegerField(default=10, min_value=1)


class StatsActiveUsers(StaffView):
    """`/admin/stats/users/active`"""

    @extend_schema(parameters=[ActiveQuery], responses=ActiveUsers)
    def get(self, request: Request) -> Response:
        """Whose sessions had most events in the last 7 days, with how many sessions they have in all."""
        limit = min(read_query(ActiveQuery, request)["limit"], MOST_ACTIVE)
        events = since(Event.objects.all(), "ts", db_now() - WEEK)
        by_owner = events.values("session__owner", "session__owner__login")
        busiest = list(by_owner.annotate(count=Count("pk")).order_by("-count", "session__owner")[:limit])
        sessions = _sessions_of([row["session__owner"] for row in busiest])
        users: list[ActiveUser] = [
            {
                "userId": row["session__owner"],
                "githubLogin": row["session__owner__login"],
                "sessionCount": sessions[row["session__owner"]],
                "eventsLast7d": row["count"],
            }
            for row in busiest
        ]
        shown: ActiveUsers = {"users": users, "limit": limit}
        return Response(shown)


class AdminUsers(StaffView):
    """`/admin/users`"""

    @extend_schema(parameters=[TwoHundredQuery], responses=Page[ListedUser])
    def get(self, request: Request) -> Response:
        """Everybody, by id. The one list in snake_case."""
        return page(
            request,
            User.objects.order_by("pk").prefetch_related("provider_identities"),
            _show_users,
            TwoHundredQuery,
            most=MOST_USERS,
        )


def _sessions_of(owner_ids: Sequence[int]) -> dict[int, int]:
    owned = Session.objects.filter(owner_id__in=owner_ids).values("owner_id").annotate(count=Count("pk"))
    return {row["owner_id"]: row["count"] for row in owned}


def _show_users(users: Sequence[User]) -> list[ListedUser]:
    return [_show(user) for user in users]


def _show(user: User) -> ListedUser:
    return {
        "id": user.pk,
        "github_login": user.login,
        "avatar_url": user.avatar_url or None,
        "is_admin": user.is_staff,
        "is_service": user.is_service,
        "identities": user.identities,
        "github_id": user.github_id,
        "created_at": iso(user.created_at),
    }
