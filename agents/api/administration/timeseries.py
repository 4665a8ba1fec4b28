"""How much happened, hour by hour or day by day."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from django.db.models import Count, QuerySet
from django.db.models.functions import TruncDay, TruncHour
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.models import User
from agents.api.administration.overview import dispatched
from agents.api.administration.shapes import Bucket, Point, Timeseries
from agents.api.administration.staff import StaffView
from agents.api.administration.windows import since
from agents.api.paging import read_query
from agents.models import Event, Session
from kit.clock import db_now
from kit.describe import ErrorBody
from kit.iso import iso
from webhooks.models import Delivery


@dataclass(frozen=True, slots=True)
class Metric:
    """Rows to count, by the time in one of their fields."""

    rows: Callable[[], QuerySet[Any]]
    field: str


@dataclass(frozen=True, slots=True)
class Window:
    """So many buckets, the last of them the one that runs now."""

    bucket: Bucket
    count: int

    @property
    def step(self) -> timedelta:
        """How long a bucket is."""
        return timedelta(hours=1) if self.bucket == "hour" else timedelta(days=1)

    def starts(self, now: datetime) -> list[datetime]:
        """When its buckets begin, in UTC."""
        last = now.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
        last = last if self.bucket == "hour" else last.replace(hour=0)
        return [last - self.step * back for back in reversed(range(self.count))]


METRICS = {
    "users.signups": Metric(User.objects.all, "created_at"),
    "sessions.created": Metric(Session.objects.all, "started_at"),
    "events.total": Metric(Event.objects.all, "ts"),
    "agent.dispatches": Metric(dispatched, "asked_at"),
    "webhook.deliveries": Metric(Delivery.objects.all, "queued_at"),
}
WINDOWS = {"24h": Window("hour", 24), "7d": Window("day", 7), "30d": Window("day", 30)}


class TimeseriesQuery(serializers.Serializer[Any]):
    """How far to look back."""

    window = serializers.ChoiceField(choices=list(WINDOWS), default="24h")


class StatsTimeseries(StaffView):
    """`/admin/stats/timeseries/{metric}`"""

    @extend_schema(parameters=[TimeseriesQuery], responses={200: Timeseries, 404: ErrorBody})
    def get(self, request: Request, metric: str) -> Response:
        """One point for each hour or day, empty ones too, oldest first."""
        if metric not in METRICS:
            raise NotFound(f"no such metric: there are {', '.join(METRICS)}")
        name, now = read_query(TimeseriesQuery, request)["window"], db_now()
        window = WINDOWS[name]
        shown: Timeseries = {
            "metric": metric,
            "window": name,
            "bucket": window.bucket,
            "points": _points(METRICS[metric], window, now),
            "generatedAt": iso(now),
        }
        return Response(shown)


def _points(metric: Metric, window: Window, now: datetime) -> list[Point]:
    starts = window.starts(now)
    truncate = TruncHour if window.bucket == "hour" else TruncDay
    rows = since(metric.rows(), metric.field, starts[0]).order_by()
    counted = rows.annotate(bucket=truncate(metric.field, tzinfo=UTC)).values("bucket").annotate(count=Count("pk"))
    counts = {row["bucket"]: row["count"] for row in counted}
    return [{"ts": iso(start), "count": counts.get(start, 0)} for start in starts]
