"""Token usage: what one turn used (section 4.8), and what agents' programs report of their runs."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal

import msgspec
from django.db import transaction
from msgspec import Meta, Struct

from accounts import quotas
from agents import limits
from agents.models import Session, TokenUsage
from agents.transcript.access import lock_session
from kit.clock import db_now

Count = Annotated[int, Meta(ge=0, le=10**12)]
Name = Annotated[str, Meta(min_length=1, max_length=128)]
MAX_TOTAL = 2**62


class Counters(Struct, frozen=True):
    """Tokens by kind."""

    input_tokens: Count = 0
    output_tokens: Count = 0
    cache_read_input_tokens: Count = 0
    cache_creation_input_tokens: Count = 0


class TurnModelUsage(Struct, frozen=True):
    """The usage of one model in one turn."""

    grain: Literal["turn"]
    model: Name
    usage: Counters
    cc_session_id: Name


class _Stop(Struct, frozen=True):
    token_usage: TurnModelUsage | None = None


_decode = msgspec.json.Decoder(_Stop).decode


def usage_in(payload: str) -> TurnModelUsage | None:
    """The usage in a `Stop`'s payload; None without one, and for one of another shape."""
    try:
        usage = _decode(payload).token_usage
    except (msgspec.DecodeError, RecursionError):
        return None
    return usage if usage and (usage.model + usage.cc_session_id).isprintable() else None


@transaction.atomic
def add_turn_usage(session_id: int, turn: TurnModelUsage) -> None:
    """Write the new sums of a model; nothing when the session is gone."""
    session = Session.objects.select_for_update(no_key=True).filter(pk=session_id).first()
    if session is None:
        return
    of_model = TokenUsage.objects.filter(session=session, cc_session_id=turn.cc_session_id, model=turn.model)
    last = of_model.order_by("-captured_at", "-pk").first() or TokenUsage()
    used = turn.usage
    TokenUsage.objects.create(
        session=session,
        owner_id=session.owner_id,
        cc_session_id=turn.cc_session_id,
        model=turn.model,
        captured_at=db_now(),
        reason=TokenUsage.Reason.HOURLY,
        input_tokens=_capped_sum(last.input_tokens, used.input_tokens),
        output_tokens=_capped_sum(last.output_tokens, used.output_tokens),
        cache_read_tokens=_capped_sum(last.cache_read_tokens, used.cache_read_input_tokens),
        cache_creation_tokens=_capped_sum(last.cache_creation_tokens, used.cache_creation_input_tokens),
    )


def _capped_sum(before: int, more: int) -> int:
    return min(before + more, MAX_TOTAL)


@transaction.atomic
def store_usage_report(
    session: Session, snapshot: Mapping[str, Any], models: Sequence[Mapping[str, Any]]
) -> list[TokenUsage]:
    """Write a row for each model that this snapshot has no row of yet: a report sent again changes nothing.

    A snapshot is one program run at one moment, for one reason; `models` are counters since the program began.
    Both are named as the columns are. The lock on the session makes the check safe.

    Raises:
        SessionGone: the session was deleted meanwhile.
        accounts.quotas.QuotaExceeded: its owner has no room for new rows.
    """
    quotas.lock_owner(session.owner_id)
    lock_session(session)
    reported = set(TokenUsage.objects.filter(session=session, **snapshot).values_list("model", flat=True))
    new = {one["model"]: one for one in models if one["model"] not in reported}
    if new:
        limits.STORAGE.check(session.owner_id, len(new) * limits.USAGE_ROW_BYTES)
    return TokenUsage.objects.bulk_create(
        TokenUsage(session=session, owner_id=session.owner_id, **snapshot, **one) for one in new.values()
    )
