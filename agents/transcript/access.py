"""Who may see and steer which session: own ones, and those shared, by role."""

from datetime import datetime
from enum import IntEnum
from typing import Any
from uuid import UUID

from django.db.models import Case, IntegerField, OuterRef, Q, QuerySet, Subquery, Value, When
from django.db.models.lookups import Exact

from agents.models import Session, Share
from agents.models.session import SEEN_AT


class Role(IntEnum):
    """What a user may do with a session; each role includes those before it."""

    VIEWER = 1
    PROMPTER = 2
    APPROVER = 3
    OWNER = 4

    @property
    def word(self) -> str:
        """As the wire writes it."""
        return self.name.lower()


def visible_sessions(user_id: int, *, at_least: Role = Role.VIEWER) -> QuerySet[Session, Any]:
    """Sessions in which the user has that role: own ones, and shared ones of an owner who is not suspended.

    Each row has `role_rank`, the caller's `Role` in it, `seen_at`, and its owner loaded.
    """
    mine = Q(owner_id=user_id)
    lent = Q(pk__in=Share.objects.filter(user_id=user_id).values("session_id"), owner__is_active=True)
    seen: Any = Session.objects.filter(mine | lent).select_related("owner")
    ranked = seen.annotate(role_rank=_role_rank(user_id), seen_at=SEEN_AT)
    found: QuerySet[Session, Any] = ranked.filter(role_rank__gte=at_least) if at_least > Role.VIEWER else ranked
    return found


def find_session(public_id: UUID, user_id: int, *, at_least: Role = Role.VIEWER) -> Session | None:
    """A session this user may see; None when absent or not theirs to see.

    Raises:
        NotAllowed: they may see it, but not do this.
    """
    session = visible_sessions(user_id).filter(public_id=public_id).first()
    if session is not None and role_of(session) < at_least:
        raise NotAllowed(at_least)
    return session


def role_of(session: Session) -> Role:
    """The role in a session that `visible_sessions` found."""
    return Role(session.role_rank)  # type: ignore[attr-defined]


def seen_at(session: Session) -> datetime:
    """When a session that was read with `seen_at=SEEN_AT` was last seen."""
    moment: datetime = session.seen_at  # type: ignore[attr-defined]
    return moment


class NotAllowed(Exception):
    """The session is visible to the caller, whose role does not reach."""

    def __init__(self, needed: Role) -> None:
        super().__init__(f"this takes the role {needed.word} of the session")
        self.needed = needed


def _role_rank(user_id: int) -> Case:
    share = Share.objects.filter(session_id=OuterRef("pk"), user_id=user_id)
    shared = Subquery(share.values("role")[:1])
    return Case(
        When(owner_id=user_id, then=Value(int(Role.OWNER))),
        *[When(Exact(shared, Value(role.word)), then=Value(int(role))) for role in (Role.PROMPTER, Role.APPROVER)],
        default=Value(int(Role.VIEWER)),
        output_field=IntegerField(),
    )
