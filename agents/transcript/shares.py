"""Lending a session to others, and taking it back."""

from django.db import transaction

from accounts.models import User
from agents.models import Session, Share
from agents.transcript.access import Role
from agents.transcript.announcing import oust


class Gone(Exception):
    """The session was deleted meanwhile; nothing was written."""


@transaction.atomic
def share(session: Session, user: User, role: str, *, by: User) -> bool:
    """Lend it to a user in a role, or change their role; whether the share is new.

    Who loses part of what they had stops watching what they may no longer.

    Raises:
        Gone: see there.
    """
    lock(session)
    found = Share.objects.filter(session=session, user=user).first()
    if found is None:
        Share.objects.create(session=session, user=user, role=role, shared_by=by)
        return True
    if Role[role.upper()] < Role[found.role.upper()]:
        oust(session.pk, user.pk)
    found.role, found.shared_by = role, by
    found.save(update_fields=["role", "shared_by"])
    return False


@transaction.atomic
def unshare(session: Session, user: User) -> int:
    """Take it back; how many shares there were."""
    removed = Share.objects.filter(session=session, user=user).delete()[0]
    if removed:
        oust(session.pk, user.pk)
    return removed


def lock(session: Session) -> None:
    """Hold the session's row until the transaction ends, so that it cannot go while something is written to it.

    Raises:
        Gone: it went before.
    """
    if not Session.objects.select_for_update(no_key=True).filter(pk=session.pk).values_list("pk").first():
        raise Gone
