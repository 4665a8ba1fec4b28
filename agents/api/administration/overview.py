"""The hub in numbers."""

from datetime import datetime, timedelta
from typing import Any

from django.db.models import Count, QuerySet, Sum
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from agents.api.administration.shapes import DayAndWeek, DeliveryCounts, Dispatches, HubOverview, TopAgent
from agents.api.administration.staff import StaffView
from agents.api.administration.windows import since
from agents.models import Blob, Event, File, OpMessage, PermissionRequest, Session, Turn
from agents.models.choices import Outcome
from agents.models.reachable import live_connections
from kit.clock import db_now
from kit.iso import iso
from webhooks.models import Delivery

DAY, WEEK, MONTH = timedelta(days=1), timedelta(days=7), timedelta(days=30)
TOP_AGENTS = 10


class StatsOverview(StaffView):
    """`/admin/stats/overview`"""

    @extend_schema(responses=HubOverview)
    def get(self, request: Request) -> Response:
        """What there is, and what happened lately."""
        return Response(overview(db_now()))


def overview(now: datetime) -> HubOverview:
    """All of it, at one moment."""
    users, files, notes = User.objects.all(), File.objects.all(), OpMessage.objects.all()
    return {
        "users": {
            "total": users.count(),
            "last7d": since(users, "created_at", now - WEEK).count(),
            "last30d": since(users, "created_at", now - MONTH).count(),
        },
        "sessions": {
            "totalEver": Session.objects.count(),
            "currentlyConnected": live_connections().count(),
            "startedLast24h": since(Session.objects.all(), "started_at", now - DAY).count(),
        },
        "events": _day_and_week(Event.objects.all(), "ts", now),
        "permissionRequests": {
            "pending": PermissionRequest.objects.filter(status=PermissionRequest.Status.PENDING).count(),
            "resolvedLast24h": _resolved(now - DAY).count(),
        },
        "agentDispatches": _dispatches(now),
        "fileUploads": {
            "last7d": since(files, "uploaded_at", now - WEEK).count(),
            "bytesStored": Blob.objects.aggregate(bytes=Sum("size", default=0))["bytes"],
        },
        "webhookDeliveries": _deliveries(now),
        "opMessages": {"last7d": since(notes, "ts", now - WEEK).count()},
        "generatedAt": iso(now),
    }


def dispatched() -> QuerySet[Turn]:
    """Asks of agents that were not refused."""
    asked: QuerySet[Turn] = Turn.objects.filter(agent__isnull=False).exclude(outcome=Outcome.DENIED)
    return asked


def _day_and_week(rows: QuerySet[Any], field: str, now: datetime) -> DayAndWeek:
    return {
        "last24h": since(rows, field, now - DAY).count(),
        "last7d": since(rows, field, now - WEEK).count(),
    }


def _resolved(moment: datetime) -> QuerySet[PermissionRequest]:
    """Those decided since. A decision comes within minutes of its request: a day more holds them all."""
    asked = since(PermissionRequest.objects.all(), "requested_at", moment - DAY)
    return asked.filter(resolved_at__gte=moment)


def _deliveries(now: datetime) -> DeliveryCounts:
    queued = since(Delivery.objects.all(), "queued_at", now - DAY)
    return {
        "last24h": queued.count(),
        "succeededLast24h": queued.filter(status=Delivery.Status.DELIVERED).count(),
        "failedLast24h": queued.filter(status=Delivery.Status.FAILED).count(),
    }


def _dispatches(now: datetime) -> Dispatches:
    by_agent = since(dispatched(), "asked_at", now - WEEK).values("agent__handle").annotate(count=Count("pk"))
    most = by_agent.order_by("-count", "agent__handle")[:TOP_AGENTS]
    top: list[TopAgent] = [{"handle": row["agent__handle"], "count": row["count"]} for row in most]
    return {**_day_and_week(dispatched(), "asked_at", now), "topAgents": top}
