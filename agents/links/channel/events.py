"""`POST /api/channel/event`: what an agent's hooks report (section 4.8 of the channel's wire).

A `Stop` ends the agent's turn and frees the claims that linger on its session. Other events are accepted; the
transcript that keeps them comes with the native API.
"""

from typing import Any
from uuid import UUID

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.decorators import api_view, authentication_classes, permission_classes
from rest_framework.request import Request
from rest_framework.response import Response

from accounts.authn import Identity, identify, presented
from accounts.models import Credential
from agents.ledger import statements
from agents.models import Session
from kit.clock import db_now
from kit.describe import CHANNEL_TOKEN, Done, ErrorBody


class EventSerializer(serializers.Serializer[Any]):
    """One event of one session."""

    sessionId = serializers.UUIDField()
    kind = serializers.ChoiceField(["chat", "tail"])
    type = serializers.CharField(max_length=64)
    payload = serializers.JSONField(required=False)
    ts = serializers.CharField(max_length=64, required=False)


@extend_schema(
    methods=["POST"],
    operation_id="postEvent",
    auth=[CHANNEL_TOKEN],
    request=EventSerializer,
    responses={202: Done, 404: ErrorBody},
)
@api_view(["POST"])
@authentication_classes([])
@permission_classes([])
def post_event(request: Request) -> Response:
    """Take an event of a session that was registered with this channel token."""
    token = presented({"authorization": request.headers.get("Authorization", "")})
    identity = identify({token.digest}).get(token.digest) if token else None
    if identity is None or identity.kind != Credential.Kind.CHANNEL:
        return _refusal("unauthorized", "want a live channel token", status=401)
    event = EventSerializer(data=request.data)
    event.is_valid(raise_exception=True)
    session = _session_of(identity, event.validated_data["sessionId"])
    if session is None:
        return _refusal("not_found", "no such session of this token", status=404)
    if (event.validated_data["kind"], event.validated_data["type"]) == ("tail", "Stop"):
        release_claims(session.pk)
    return Response({"ok": True}, status=202)


@transaction.atomic
def release_claims(session_id: int) -> None:
    """The agent's turn is over: free every claim that lingers on its session."""
    statements.lock_sessions([session_id])
    statements.release_sessions([session_id], db_now())


def _session_of(identity: Identity, public_id: UUID) -> Session | None:
    mine = Session.objects.filter(owner_id=identity.user_id, credential_id=identity.credential_id)
    found: Session | None = mine.filter(public_id=public_id).first()
    return found


def _refusal(error: str, message: str, *, status: int) -> Response:
    headers = {"WWW-Authenticate": "Bearer"} if status == 401 else {}
    return Response({"error": error, "message": message}, status=status, headers=headers)
