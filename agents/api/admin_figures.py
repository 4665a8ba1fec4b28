"""REST views of statistics for the hub's staff: totals, the busiest users, and counts by hour or by day."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Literal, TypedDict

from django.db.models import Count, QuerySet, Sum
from django.db.models.functions import TruncDay, TruncHour
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from accounts.paging import read_query
from agents.api.admin import StaffView
from agents.models import Blob, Event, File, OpMessage, PermissionRequest, Session, Turn
from agents.models.choices import Outcome
from agents.models.session import live_connections
from kit.clock import db_now, iso
from kit.describe import Time
from kit.search import find_first_ids
from webhooks.models import Delivery

SLACK = timedelta(hours=1)


@dataclass(frozen=True, slots=True)
class Metric:
    """The rows that a metric counts, by the time in one of their fields.

    New rows of the table must have the present time: ids then rise with time, and the table needs no index on the
    time, which would slow every insert. Rows that are up to an hour out of order are counted, too.
    """

    rows: Callable[[], QuerySet[Any]]
    field: str

    def since(self, moment: datetime) -> QuerySet[Any]:
        """The rows of a moment or later."""
        rows, begin = self.rows(), moment - SLACK
        first = find_first_ids(rows.model._default_manager.all(), self.field, [begin])
        return rows.filter(pk__gte=first[begin], **{f"{self.field}__gte": moment})


SIGNUPS = Metric(User.objects.all, "created_at")
SESSIONS = Metric(Session.objects.all, "started_at")
EVENTS = Metric(Event.objects.all, "ts")
PERMISSIONS = Metric(PermissionRequest.objects.all, "requested_at")
ASKS = Turn.objects.filter(agent__isnull=False).exclude(outcome=Outcome.DENIED)
DISPATCHES = Metric(ASKS.all, "asked_at")
UPLOADS = Metric(File.objects.all, "uploaded_at")
DELIVERIES = Metric(Delivery.objects.all, "queued_at")
OP_MESSAGES = Metric(OpMessage.objects.all, "ts")
DAY, WEEK, MONTH = timedelta(days=1), timedelta(days=7), timedelta(days=30)
TOP_AGENTS = 10


Bucket = Literal["hour", "day"]


class UserCounts(TypedDict):
    """The number of users, and of new users."""

    total: int
    last7d: int
    last30d: int


class SessionCounts(TypedDict):
    """The number of all sessions ever, and of those connected now."""

    totalEver: int
    currentlyConnected: int
    startedLast24h: int


class DayAndWeek(TypedDict):
    """Counts of the last 24 hours and the last 7 days."""

    last24h: int
    last7d: int


class PermissionCounts(TypedDict):
    """Permission requests that wait, and those decided or expired lately."""

    pending: int
    resolvedLast24h: int


class TopAgent(TypedDict):
    """One of the agents asked most in 7 days."""

    handle: str
    count: int


class Dispatches(DayAndWeek):
    """Asks of agents that were not refused."""

    topAgents: list[TopAgent]


class UploadCounts(TypedDict):
    """Files uploaded lately, deleted ones too, and what all blobs take."""

    last7d: int
    bytesStored: int


class DeliveryCounts(TypedDict):
    """Webhook deliveries queued lately, and how they ended."""

    last24h: int
    succeededLast24h: int
    failedLast24h: int


class WeekCount(TypedDict):
    """A count of the last 7 days."""

    last7d: int


class HubOverview(TypedDict):
    """The hub in numbers."""

    users: UserCounts
    sessions: SessionCounts
    events: DayAndWeek
    permissionRequests: PermissionCounts
    agentDispatches: Dispatches
    fileUploads: UploadCounts
    webhookDeliveries: DeliveryCounts
    opMessages: WeekCount
    generatedAt: Time


class Point(TypedDict):
    """The count of the hour or day that begins at `ts`."""

    ts: Time
    count: int


class Timeseries(TypedDict):
    """One metric over time; the last point is still growing."""

    metric: str
    window: str
    bucket: Bucket
    points: list[Point]
    generatedAt: Time


MAX_ACTIVE = 50


class ActiveUser(TypedDict):
    """One of the users whose sessions had most events."""

    userId: int
    githubLogin: str
    sessionCount: int
    eventsLast7d: int


class ActiveUsers(TypedDict):
    """The busiest first."""

    users: list[ActiveUser]
    limit: int


class ActiveQuery(serializers.Serializer[Any]):
    """The number of users to show."""

    limit = serializers.IntegerField(default=10, min_value=1)


class StatsActiveUsers(StaffView):
    """`/admin/stats/users/active`"""

    @extend_schema(parameters=[ActiveQuery], responses=ActiveUsers)
    def get(self, request: Request) -> Response:
        """The users whose sessions had most events in the last 7 days, with the number of all their sessions."""
        limit = min(read_query(ActiveQuery, request)["limit"], MAX_ACTIVE)
        by_owner = EVENTS.since(db_now() - WEEK).values("session__owner", "session__owner__login")
        busiest = list(by_owner.annotate(count=Count("pk")).order_by("-count", "session__owner")[:limit])
        owned = Session.objects.filter(owner_id__in=[row["session__owner"] for row in busiest])
        sessions = dict(owned.values_list("owner_id").annotate(Count("pk")))
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


class StatsOverview(StaffView):
    """`/admin/stats/overview`"""

    @extend_schema(responses=HubOverview)
    def get(self, request: Request) -> Response:
        """The numbers of rows, and of recent events."""
        now = db_now()
        pending = PermissionRequest.objects.filter(status=PermissionRequest.Status.PENDING)
        # A request is decided within minutes, so one day more contains the requests of all these decisions.
        resolved = PERMISSIONS.since(now - 2 * DAY).filter(resolved_at__gte=now - DAY)
        shown: HubOverview = {
            "users": {
                "total": User.objects.count(),
                "last7d": SIGNUPS.since(now - WEEK).count(),
                "last30d": SIGNUPS.since(now - MONTH).count(),
            },
            "sessions": {
                "totalEver": Session.objects.count(),
                "currentlyConnected": live_connections().count(),
                "startedLast24h": SESSIONS.since(now - DAY).count(),
            },
            "events": _day_and_week(EVENTS, now),
            "permissionRequests": {"pending": pending.count(), "resolvedLast24h": resolved.count()},
            "agentDispatches": _dispatches(now),
            "fileUploads": {
                "last7d": UPLOADS.since(now - WEEK).count(),
                "bytesStored": Blob.objects.aggregate(bytes=Sum("size", default=0))["bytes"],
            },
            "webhookDeliveries": _deliveries(now),
            "opMessages": {"last7d": OP_MESSAGES.since(now - WEEK).count()},
            "generatedAt": iso(now),
        }
        return Response(shown)


def _day_and_week(metric: Metric, now: datetime) -> DayAndWeek:
    return {"last24h": metric.since(now - DAY).count(), "last7d": metric.since(now - WEEK).count()}


def _deliveries(now: datetime) -> DeliveryCounts:
    queued = DELIVERIES.since(now - DAY)
    return {
        "last24h": queued.count(),
        "succeededLast24h": queued.filter(status=Delivery.Status.DELIVERED).count(),
        "failedLast24h": queued.filter(status=Delivery.Status.FAILED).count(),
    }


def _dispatches(now: datetime) -> Dispatches:
    by_agent = DISPATCHES.since(now - WEEK).values("agent__handle").annotate(count=Count("pk"))
    most = by_agent.order_by("-count", "agent__handle")[:TOP_AGENTS]
    top: list[TopAgent] = [{"handle": row["agent__handle"], "count": row["count"]} for row in most]
    return {**_day_and_week(DISPATCHES, now), "topAgents": top}


METRICS = {
    "users.signups": SIGNUPS,
    "sessions.created": SESSIONS,
    "events.total": EVENTS,
    "agent.dispatches": DISPATCHES,
    "webhook.deliveries": DELIVERIES,
}
WINDOWS: dict[str, tuple[Bucket, int]] = {"24h": ("hour", 24), "7d": ("day", 7), "30d": ("day", 30)}


class TimeseriesQuery(serializers.Serializer[Any]):
    """The time to look back."""

    window = serializers.ChoiceField(choices=list(WINDOWS), default="24h")


class StatsTimeseries(StaffView):
    """`/admin/stats/timeseries/{metric}`"""

    @extend_schema(parameters=[TimeseriesQuery], responses={200: Timeseries})
    def get(self, request: Request, metric: str) -> Response:
        """One point for each hour or day, empty ones too, oldest first."""
        if metric not in METRICS:
            raise NotFound(f"no such metric: there are {', '.join(METRICS)}")
        name, now = read_query(TimeseriesQuery, request)["window"], db_now()
        bucket, count = WINDOWS[name]
        shown: Timeseries = {
            "metric": metric,
            "window": name,
            "bucket": bucket,
            "points": _points(METRICS[metric], bucket, count, now),
            "generatedAt": iso(now),
        }
        return Response(shown)


def _points(metric: Metric, bucket: Bucket, count: int, now: datetime) -> list[Point]:
    """The counts of the last `count` hours or days in UTC, including the present one."""
    last = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    last = last if bucket == "hour" else last.replace(hour=0)
    step, truncate = (timedelta(hours=1), TruncHour) if bucket == "hour" else (DAY, TruncDay)
    starts = [last - step * back for back in reversed(range(count))]
    rows = metric.since(starts[0]).order_by().annotate(bucket=truncate(metric.field, tzinfo=UTC))
    counts = dict(rows.values_list("bucket").annotate(Count("pk")))
    return [{"ts": iso(start), "count": counts.get(start, 0)} for start in starts]
