"""What a new session needs, whichever way its agent comes: room, and a name."""

import re

from django.db.models import Q

from accounts import quotas
from agents.models import Session
from agents.settings import get_settings


def check_sessions(owner_id: int) -> None:
    """Refuse one session too many, archived ones counted; call it in the transaction that makes it.

    Raises:
        QuotaExceeded: the owner has as many as one may.
    """
    if most := get_settings().sessions_per_owner:
        quotas.hold(owner_id)
        quotas.check(Session.objects.filter(owner_id=owner_id).count(), most, "sessions")


def free_name(session: Session, wanted: str) -> str:
    """A routing name for a new session: the wanted one, made longer where a live one of the owner's has it."""
    same = Session.objects.filter(owner_id=session.owner_id, routing_name=wanted)
    taken = same.filter(Q(connection__isnull=False) | Q(remote__isnull=False))
    return f"{wanted}-{session.public_id.hex[:8]}" if taken.exists() else wanted


def slug_of(text: str) -> str:
    """A text as a routing name or agent slug: lower case, `[a-z0-9-]`, at most 64 characters."""
    return re.sub(r"[^a-z0-9]+", "-", text.lower()).strip("-")[:64].strip("-")
