"""The operators attached to sessions, as rows that are deleted with their process (docs/adr/0004)."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import cast
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet

from agents.models import Attachment, Share
from agents.models.session import alive_since
from agents.transcript import permissions
from agents.transcript.access import find_session, role_of, sessions_visible_to
from agents.transcript.announcements import PermissionRequested, RecheckAccess
from kit.clock import db_now
from operators.wire.errors import NoSuchSession
from operators.wire.frames import RoleWord

MOST_PENDING = 200


@dataclass(frozen=True, slots=True)
class Attached:
    """A row that says which session an operator watches. `is_first`: their login was not attached before."""

    attachment_id: int
    session_id: int
    public_id: str
    is_first: bool


@dataclass(frozen=True, slots=True)
class Attendance:
    """The logins attached to a session, and the processes that hold their sockets."""

    logins: list[str]
    processes: frozenset[str]


@transaction.atomic
def attach(public_id: UUID, user_id: int, process_id: str) -> Attached:
    """Note that this process shows a session to a user.

    Raises:
        NoSuchSession: not visible to them.
    """
    session = find_session(public_id, user_id)
    if session is None:
        raise NoSuchSession
    is_first = not _live(session.pk).filter(user_id=user_id).exists()
    row = Attachment.objects.create(session=session, process_id=process_id, user_id=user_id)
    return Attached(row.pk, session.pk, str(session.public_id), is_first)


def find_role_name(session_id: int, user_id: int) -> RoleWord | None:
    """A user's role in a session as the wire writes it; None when the user may not see the session."""
    session = sessions_visible_to(user_id).filter(pk=session_id).first()
    return cast(RoleWord, role_of(session).word) if session else None


def detach(attached: Collection[Attached]) -> None:
    """Delete these attachments."""
    Attachment.objects.filter(pk__in=[one.attachment_id for one in attached]).delete()


def find_lost_views(process_id: str) -> list[RecheckAccess]:
    """The views of this process whose users may no longer see the session; the message about it may be lost."""
    shared = Exists(Share.objects.filter(session_id=OuterRef("session_id"), user_id=OuterRef("user_id")))
    others = Attachment.objects.filter(process_id=process_id).exclude(session__owner_id=F("user_id"))
    lost = others.exclude(shared, session__owner__is_active=True).distinct()
    return [
        RecheckAccess(session_id, user_id) for session_id, user_id in lost.values_list("session_id", "user_id")
    ]


def load_attendance(session_id: int) -> Attendance:
    """The logins that are attached now, in order."""
    rows = _live(session_id).values_list("user__login", "process_id")
    return Attendance(sorted({login for login, _ in rows}), frozenset(process for _, process in rows))


def pending(session_id: int) -> list[PermissionRequested]:
    """The permission requests that wait for a decision, oldest first."""
    waiting = permissions.pending(session_id).select_related("session")
    return [permissions.shown(one.session, one) for one in waiting[:MOST_PENDING]]


def _live(session_id: int) -> QuerySet[Attachment]:
    return Attachment.objects.filter(session_id=session_id, process__beat_at__gt=alive_since(db_now()))
