"""The hub in numbers."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, Q, QuerySet, Sum
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from agents.directory import live_connections
from agents.models import Blob, Event, File, OpMessage, PermissionRequest, Session, Turn
from agents.rest.administration.staff import StaffView
from agents.rest.administration.windows import since
from agents.rest.serializers import Json
from kit.clock import db_now
from kit.iso import iso

DAY, WEEK, MONTH = timedelta(days=1), timedelta(days=7), timedelta(days=30)
TOP_AGENTS = 10


class StatsOverview(StaffView):
    """`/admin/stats/overview`"""

    def get(self, request: Request) -> Response:
        """What there is, and what happened lately."""
        now = db_now()
        return Response(
            {
                "users": _users(now),
                "sessions": _sessions(now),
                "events": _counts(Event.objects.all(), "ts", now, last24h=DAY, last7d=WEEK),
                "permissionRequests": _permission_requests(now),
                "agentDispatches": _dispatches(now),
                "fileUploads": _uploads(now),
                "opMessages": _counts(OpMessage.objects.all(), "ts", now, last7d=WEEK),
                "generatedAt": iso(now),
            }
        )


def dispatched() -> QuerySet[Turn]:
    """Asks that reached an agent's link: those of published agents that were not refused."""
    asked: QuerySet[Turn] = Turn.objects.filter(agent__isnull=False).exclude(outcome=Turn.Outcome.DENIED)
    return asked


def delivery_counts(deliveries: QuerySet[Any], now: datetime) -> Json:
    """`webhookDeliveries`, of rows with `queued_at` and a `status` that ends as "delivered" or "failed"."""
    return since(deliveries, "queued_at", now - DAY).aggregate(
        last24h=Count("pk"),
        succeededLast24h=Count("pk", filter=Q(status="delivered")),
        failedLast24h=Count("pk", filter=Q(status="failed")),
    )


def _counts(rows: QuerySet[Any], field: str, now: datetime, **windows: timedelta) -> Json:
    """How many rows each window holds, in one read of the longest."""
    longest = since(rows, field, now - max(windows.values()))
    counts = {name: Count("pk", filter=Q(**{f"{field}__gte": now - long})) for name, long in windows.items()}
    return longest.aggregate(**counts)


def _users(now: datetime) -> Json:
    return {"total": User.objects.count()} | _counts(
        User.objects.all(), "created_at", now, last7d=WEEK, last30d=MONTH
    )


def _sessions(now: datetime) -> Json:
    return {
        "totalEver": Session.objects.count(),
        "currentlyConnected": live_connections().count(),
        **_counts(Session.objects.all(), "started_at", now, startedLast24h=DAY),
    }


def _permission_requests(now: datetime) -> Json:
    """Decisions come within minutes of the request, so those of the day are among its requests and a few more."""
    lately = since(PermissionRequest.objects.all(), "requested_at", now - DAY - DAY)
    pending = PermissionRequest.objects.filter(status=PermissionRequest.Status.PENDING)
    return {"pending": pending.count(), "resolvedLast24h": lately.filter(resolved_at__gte=now - DAY).count()}


def _dispatches(now: datetime) -> Json:
    asked = since(dispatched(), "asked_at", now - WEEK).values("agent__handle").annotate(count=Count("pk"))
    top = asked.order_by("-count", "agent__handle")[:TOP_AGENTS]
    return {
        **_counts(dispatched(), "asked_at", now, last24h=DAY, last7d=WEEK),
        "topAgents": [{"handle": row["agent__handle"], "count": row["count"]} for row in top],
    }


def _uploads(now: datetime) -> Json:
    stored = Blob.objects.aggregate(bytes=Sum("size", default=0))["bytes"]
    return {**_counts(File.objects.all(), "uploaded_at", now, last7d=WEEK), "bytesStored": stored}
