"""Deciding what the program of a session asks leave for."""

from typing import Literal, TypedDict
from uuid import UUID

from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.rest import Body, Conflict, StrictJSONParser, caller_of
from agents.api.visible import get_session
from agents.transcript import permissions
from agents.transcript.access import Role
from agents.transcript.permissions import MAX_MESSAGE_CHARS, AlreadyResolved, NoSuchRequest
from kit.describe import ErrorBody, Time, Uuid
from kit.iso import iso


class DecisionBody(Body):
    """Yes or no, and a word about it that the agent reads."""

    decision = serializers.ChoiceField(["allow", "deny"])
    message = serializers.CharField(
        required=False, allow_null=True, allow_blank=True, max_length=MAX_MESSAGE_CHARS
    )


class PermissionDecided(TypedDict):
    """The decision, which stands."""

    ok: Literal[True]
    sessionId: Uuid
    requestId: str
    decision: Literal["allow", "deny"]
    resolverLogin: str
    resolvedAt: Time | None


class ResolvePermission(APIView):
    """`/sessions/{id}/permissions/{requestId}/resolve`"""

    parser_classes = [StrictJSONParser]

    @extend_schema(
        request=DecisionBody, responses={200: PermissionDecided, 403: ErrorBody, 404: ErrorBody, 409: ErrorBody}
    )
    def post(self, request: Request, public_id: UUID, request_id: str) -> Response:
        """Allow or deny a request for leave, for good; 409 once it is decided or has run out."""
        session = get_session(request, public_id, at_least=Role.APPROVER)
        body = DecisionBody(data=request.data)
        body.is_valid(raise_exception=True)
        resolver, said = caller_of(request), body.validated_data
        try:
            row = permissions.decide(
                session.pk,
                request_id if request_id.isprintable() else "",
                decision=said["decision"],
                resolver_id=resolver.pk,
                message=said.get("message") or "",
            )
        except NoSuchRequest:
            raise NotFound("no such request for leave") from None
        except AlreadyResolved as resolved:
            raise Conflict(str(resolved)) from None
        decided: PermissionDecided = {
            "ok": True,
            "sessionId": str(session.public_id),
            "requestId": row.request_id,
            "decision": said["decision"],
            "resolverLogin": resolver.login,
            "resolvedAt": iso(row.resolved_at) if row.resolved_at else None,
        }
        return Response(decided)
