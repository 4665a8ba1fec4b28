"""Putting sessions away, and tidying up those that share a name."""

from datetime import datetime
from typing import Annotated, Literal, TypedDict
from uuid import UUID

from django.db import transaction
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from accounts.rest import Body, caller_of, check_no_fields
from agents.api.sessions import get_session
from agents.models import Session
from agents.transcript.access import Role
from agents.transcript.session_deletion import Deletion, PruningPlan, delete_sessions, plan_pruning
from kit.clock import db_now, iso
from kit.describe import ErrorBody, Time, Uuid
from kit.rows import Source, show


class SessionArchived(TypedDict):
    """The session is archived, now or already."""

    ok: Literal[True]
    alreadyArchived: bool
    sessionId: Uuid
    archivedAt: Time


class SessionKept(TypedDict):
    """A session that stays."""

    routingName: Annotated[str, Source("shown_name")]
    sessionId: Annotated[Uuid, Source("public_id")]


class SessionPruned(TypedDict):
    """A session that goes, or went."""

    routingName: Annotated[str, Source("shown_name")]
    sessionId: Annotated[Uuid, Source("public_id")]
    lastSeenAt: Annotated[Time, Source("seen_at")]
    wasArchived: bool


class Pruned(TypedDict):
    """Of the caller's sessions that share a routing name: which stay, and which went or would go."""

    ok: Literal[True]
    dryRun: bool
    kept: list[SessionKept]
    deleted: list[SessionPruned]
    blobsSwept: int
    bytesFreed: int


class PruneBody(Body):
    """Which names to tidy up: one, with or without its @, or all. `dryRun` deletes nothing, and must be said."""

    dryRun = serializers.BooleanField()
    routingName = serializers.CharField(required=False, allow_null=True, max_length=81)


class ArchiveSession(APIView):
    """`/sessions/{id}/archive`"""

    @extend_schema(request=None, responses={200: SessionArchived, 400: ErrorBody})
    def post(self, request: Request, public_id: UUID) -> Response:
        """Take a session off the lists; it comes back when its agent does."""
        session = get_session(request, public_id, at_least=Role.OWNER)
        check_no_fields(request)
        archived, archived_at = archive(session)
        answer: SessionArchived = {
            "ok": True,
            "alreadyArchived": not archived,
            "sessionId": str(session.public_id),
            "archivedAt": iso(archived_at),
        }
        return Response(answer)


class PruneSessions(APIView):
    """`/sessions/prune`"""

    @extend_schema(request=PruneBody, responses={200: Pruned})
    def post(self, request: Request) -> Response:
        """Delete the caller's spare sessions: of those that share a routing name all but one.

        The live one stays, else the last seen; one that carries an agent stays besides.
        """
        wanted = PruneBody.read(request).validated_data
        name = (wanted.get("routingName") or "").removeprefix("@") or None
        planned, gone = plan_pruning(caller_of(request).pk, name), None
        if not wanted["dryRun"]:
            gone = delete_sessions([session.pk for session in planned.spare], only_offline=True)
        return Response(_show(planned, gone))


@transaction.atomic
def archive(session: Session) -> tuple[bool, datetime]:
    """Archive it: whether that is new, and since when it is.

    Raises:
        NotFound: it was deleted meanwhile.
    """
    rows = Session.objects.filter(pk=session.pk)
    changed = rows.filter(archived_at=None).update(archived_at=db_now())
    archived_at = rows.values_list("archived_at", flat=True).first()
    if archived_at is None:
        raise NotFound("no such session")
    return bool(changed), archived_at


def _show(planned: PruningPlan, gone: Deletion | None) -> Pruned:
    deleted = [one for one in planned.spare if gone is None or one.pk in gone.session_ids]
    return {
        "ok": True,
        "dryRun": gone is None,
        "kept": [show(SessionKept, one) for one in planned.kept],
        "deleted": [show(SessionPruned, one, wasArchived=one.archived_at is not None) for one in deleted],
        "blobsSwept": gone.blobs_swept if gone else 0,
        "bytesFreed": gone.bytes_freed if gone else 0,
    }
