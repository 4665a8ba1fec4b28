"""What a session's program says it has used up."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db import transaction
from django.db.models import QuerySet

from accounts import quotas
from agents.models import Session, TokenUsage
from agents.transcript.shares import lock
from agents.transcript.storage import USAGE_ROW_BYTES, check_room


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """Counters of one model since its program began."""

    model: str
    input_tokens: int
    output_tokens: int
    cache_read_tokens: int
    cache_creation_tokens: int


@transaction.atomic
def note(
    session: Session, cc_session_id: str, captured_at: datetime, reason: str, models: Sequence[ModelUsage]
) -> list[TokenUsage]:
    """Write a row for each model that this snapshot has no row of yet: a report sent again changes nothing.

    A snapshot is one program run at one moment, for one reason. The lock on the session makes the check safe.

    Raises:
        Gone: the session was deleted meanwhile.
        accounts.quotas.QuotaExceeded: its owner has no room for new rows.
    """
    quotas.hold(session.owner_id)
    lock(session)
    snapshot = TokenUsage.objects.filter(
        session=session, cc_session_id=cc_session_id, captured_at=captured_at, reason=reason
    )
    reported = set(snapshot.values_list("model", flat=True))
    new = {one.model: one for one in models if one.model not in reported}
    if new:
        check_room(session.owner_id, len(new) * USAGE_ROW_BYTES)
    rows = [
        TokenUsage(
            session=session,
            owner_id=session.owner_id,
            cc_session_id=cc_session_id,
            captured_at=captured_at,
            reason=reason,
            model=one.model,
            input_tokens=one.input_tokens,
            output_tokens=one.output_tokens,
            cache_read_tokens=one.cache_read_tokens,
            cache_creation_tokens=one.cache_creation_tokens,
        )
        for one in new.values()
    ]
    return TokenUsage.objects.bulk_create(rows)


def between(rows: QuerySet[TokenUsage], since: datetime | None, until: datetime | None) -> QuerySet[TokenUsage]:
    """Those captured in a span of time, both ends of it counted."""
    if since is not None:
        rows = rows.filter(captured_at__gte=since)
    return rows if until is None else rows.filter(captured_at__lte=until)
