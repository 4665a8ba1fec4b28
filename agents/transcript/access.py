"""The roles by which users see and steer their own and shared sessions; sharing a session, and ending a share."""

from datetime import datetime
from enum import IntEnum
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Case, IntegerField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.lookups import Exact

from accounts.models import Membership, User
from agents.models import Session, Share
from agents.models.session import SEEN_AT
from agents.transcript.announcements import announce_lost_access
from kit.clock import db_now


class SessionRole(IntEnum):
    """The role of a user in a session; each role includes those before it."""

    VIEWER = 1
    PROMPTER = 2
    APPROVER = 3
    OWNER = 4

    @property
    def word(self) -> str:
        """The role in the spelling of the wire."""
        return self.name.lower()


def sessions_visible_to(user_id: int, *, at_least: SessionRole = SessionRole.VIEWER) -> QuerySet[Session, Any]:
    """Sessions in which the user has that role: own ones, those of groups that the user maintains, and shared ones
    of an owner who is not suspended.

    Each row has `role_rank`, the caller's `SessionRole` in it, `seen_at`, and its owner loaded.
    """
    mine = Q(owner_id=user_id) | Q(owner_id__in=_maintained(user_id))
    lent = Q(pk__in=Share.objects.filter(user_id=user_id).values("session_id"), owner__is_active=True)
    seen: Any = Session.objects.filter(mine | lent).select_related("owner")
    ranked = seen.annotate(role_rank=_role_rank(user_id), seen_at=SEEN_AT)
    found: QuerySet[Session, Any] = (
        ranked.filter(role_rank__gte=at_least) if at_least > SessionRole.VIEWER else ranked
    )
    return found


def find_session(public_id: UUID, user_id: int, *, at_least: SessionRole = SessionRole.VIEWER) -> Session | None:
    """A session that this user may see; None if the session is absent or hidden from the user.

    Raises:
        NotAllowed: the user may see the session, but the user's role is below `at_least`.
    """
    session = sessions_visible_to(user_id).filter(public_id=public_id).first()
    if session is not None and role_of(session) < at_least:
        raise NotAllowed(at_least)
    return session


def role_of(session: Session) -> SessionRole:
    """The role in a session that `sessions_visible_to` found."""
    return SessionRole(session.role_rank)  # type: ignore[attr-defined]


def seen_at(session: Session) -> datetime:
    """The time when a session that was read with `seen_at=SEEN_AT` was last seen."""
    moment: datetime = session.seen_at  # type: ignore[attr-defined]
    return moment


class NotAllowed(Exception):
    """The session is visible to the caller, but the caller's role does not allow the action."""

    def __init__(self, needed: SessionRole) -> None:
        super().__init__(f"this takes the role {needed.word} of the session")
        self.needed = needed


def _maintained(user_id: int) -> QuerySet[Any, Any]:
    return Membership.objects.maintaining().filter(user_id=user_id).values("group_id")


def _role_rank(user_id: int) -> Case:
    share = Share.objects.filter(session_id=OuterRef("pk"), user_id=user_id)
    shared = Subquery(share.values("role")[:1])
    return Case(
        When(owner_id=user_id, then=Value(int(SessionRole.OWNER))),
        When(owner_id__in=_maintained(user_id), then=Value(int(SessionRole.OWNER))),
        *[
            When(Exact(shared, Value(role.word)), then=Value(int(role)))
            for role in (SessionRole.PROMPTER, SessionRole.APPROVER)
        ],
        default=Value(int(SessionRole.VIEWER)),
        output_field=IntegerField(),
    )


class SessionGone(Exception):
    """The session was deleted meanwhile; nothing was written."""


@transaction.atomic
def share_session(session: Session, user: User, role: str, *, by: User) -> bool:
    """Share the session with a user in a role, or change the role; True if the share is new.

    A user whose role became lower stops watching sessions that the new role does not allow.

    Raises:
        SessionGone: the session was deleted.
    """
    lock_session(session)
    found = Share.objects.filter(session=session, user=user).first()
    if found is None:
        Share.objects.create(session=session, user=user, role=role, shared_by=by)
        return True
    if SessionRole[role.upper()] < SessionRole[found.role.upper()]:
        announce_lost_access(session.pk, user.pk)
    found.role, found.shared_by = role, by
    found.save(update_fields=["role", "shared_by"])
    return False


@transaction.atomic
def unshare_session(session: Session, user: User) -> int:
    """End a share; returns the number of deleted shares."""
    removed = Share.objects.filter(session=session, user=user).delete()[0]
    if removed:
        announce_lost_access(session.pk, user.pk)
    return removed


def lock_session(session: Session) -> None:
    """Lock the session's row until the transaction ends, so that no other transaction deletes the session
    meanwhile.

    Raises:
        SessionGone: the session was deleted before.
    """
    if not Session.objects.select_for_update(no_key=True).filter(pk=session.pk).values_list("pk").first():
        raise SessionGone


@transaction.atomic
def archive_session(session: Session) -> tuple[bool, datetime]:
    """Archive a session; returns True if this call archived it, and the time since when the session is archived.

    Raises:
        SessionGone: it was deleted meanwhile.
    """
    rows = Session.objects.filter(pk=session.pk)
    changed = rows.filter(archived_at=None).update(archived_at=db_now())
    archived_at = rows.values_list("archived_at", flat=True).first()
    if archived_at is None:
        raise SessionGone
    return bool(changed), archived_at
