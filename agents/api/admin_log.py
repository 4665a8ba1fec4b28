"""REST views of the audit log for the hub's staff: what users changed in the admin, and staff changed and read."""

from typing import Any

from django.contrib.admin.models import LogEntry
from django.db.models import QuerySet
from django.http import StreamingHttpResponse
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.act_export import CSV, FORMS, JSON_LINES_TYPE, export_acts
from accounts.audit_log import ListedAct, show_act
from accounts.models import MAX_LOGIN_CHARS
from accounts.paging import page, page_query, read_query
from accounts.rest import caller_of
from agents.api.admin import MAX_ROWS, StaffView
from agents.api.files import AnyType
from kit.describe import ErrorBody, Page

HUNDRED = page_query(100)
STAFF = {"true": True, "false": False}


class ActFilters(serializers.Serializer[Any]):
    """The acts to show, from `since` on, before `until`. `kind`: a table, such as `accounts.user`."""

    actor = serializers.CharField(required=False, max_length=MAX_LOGIN_CHARS, source="user__login__iexact")
    staff = serializers.ChoiceField(choices=[*STAFF, "all"], default="all")
    kind = serializers.RegexField(r"^[a-z0-9_]+\.[a-z0-9_]+$", required=False, max_length=201)
    since = serializers.DateTimeField(required=False, source="action_time__gte")
    until = serializers.DateTimeField(required=False, source="action_time__lt")


class ActExport(serializers.Serializer[Any]):
    """The form of the file."""

    form = serializers.ChoiceField(choices=FORMS, default=CSV)


class AdminLog(StaffView):
    """`/admin/log`"""

    @extend_schema(parameters=[ActFilters, HUNDRED], responses=Page[ListedAct])
    def get(self, request: Request) -> Response:
        """The audit log, newest first: acts in the admin and of staff over REST, and what staff read."""
        acts = _find_acts(request).select_related("user", "content_type").order_by("-pk")
        return page(request, acts, lambda rows: [show_act(one) for one in rows], HUNDRED, most=MAX_ROWS)


class AdminLogExport(StaffView):
    """`/admin/log/export`"""

    content_negotiation_class = AnyType

    @extend_schema(
        parameters=[ActFilters, ActExport],
        responses={
            (200, "text/csv"): bytes,
            (200, JSON_LINES_TYPE): bytes,
            429: ErrorBody,
            503: ErrorBody,
        },
    )
    def get(self, request: Request) -> StreamingHttpResponse:
        """The log as a file, newest first: `csv` for spreadsheets, or `jsonl`, one object a line."""
        form = read_query(ActExport, request)["form"]
        return export_acts(request, _find_acts(request), form, caller_of(request))


def _find_acts(request: Request) -> QuerySet[LogEntry]:
    wanted = read_query(ActFilters, request)
    if (staff := STAFF.get(wanted.pop("staff"))) is not None:
        wanted["user__is_staff"] = staff
    if kind := wanted.pop("kind", None):
        wanted["content_type__app_label"], wanted["content_type__model"] = kind.split(".")
    return LogEntry.objects.filter(**wanted)
