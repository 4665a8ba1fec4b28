"""What the programs of a session ask leave for."""

from typing import cast
from uuid import UUID

from django.db.models import Case, IntegerField, Value, When
from drf_spectacular.utils import extend_schema
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from agents.api.paging import PageQuery, page
from agents.api.session_shapes import ApiPermission, PermissionStatus
from agents.api.visible import get_session
from agents.models import PermissionRequest
from agents.transcript.access import Role
from kit.describe import ErrorBody, Page
from kit.iso import iso, iso_or_none

DECIDED = Case(
    When(status=PermissionRequest.Status.PENDING, then=Value(0)), default=Value(1), output_field=IntegerField()
)


class Permissions(APIView):
    """`/sessions/{id}/permissions`"""

    @extend_schema(parameters=[PageQuery], responses={200: Page[ApiPermission], 403: ErrorBody})
    def get(self, request: Request, public_id: UUID) -> Response:
        """Requests for leave, those that wait for a decision first; of each kind the newest first."""
        session = get_session(request, public_id, at_least=Role.APPROVER)
        found = PermissionRequest.objects.filter(session=session).select_related("resolver")
        return page(request, found.order_by(DECIDED, "-pk"), lambda rows: [show_permission(row) for row in rows])


def show_permission(row: PermissionRequest) -> ApiPermission:
    """One request for leave."""
    return {
        "requestId": row.request_id,
        "tool": row.tool,
        "inputPreview": row.input_preview,
        "status": cast(PermissionStatus, row.status),
        "requestedAt": iso(row.requested_at),
        "resolvedAt": iso_or_none(row.resolved_at),
        "resolverLogin": row.resolver.login if row.resolver else None,
        "resolvedMessage": row.message or None,
    }
