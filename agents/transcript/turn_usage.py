"""Tokens of one turn, as a `Stop` hook tells them, added to what its program used up before (section 4.8).

Rows of token usage are cumulative. A report of the program's supervisor counts the same turns, and stands from
then on: the next turn is added to the newest row, whoever wrote it.
"""

from typing import Annotated, Literal

import msgspec
from django.db import transaction
from msgspec import Meta, Struct

from agents.models import Session, TokenUsage
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


class TurnUsage(Struct, frozen=True):
    """What one turn used up of one model."""

    grain: Literal["turn"]
    model: Name
    usage: Counters
    cc_session_id: Name


class _Stop(Struct, frozen=True):
    token_usage: TurnUsage | None = None


_decode = msgspec.json.Decoder(_Stop).decode


def usage_in(payload: str) -> TurnUsage | None:
    """The usage in a `Stop`'s payload; None without one, and for one of another shape."""
    try:
        usage = _decode(payload).token_usage
    except (msgspec.DecodeError, RecursionError):
        return None
    return usage if usage and (usage.model + usage.cc_session_id).isprintable() else None


@transaction.atomic
def add(session_id: int, turn: TurnUsage) -> None:
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
        input_tokens=_sum(last.input_tokens, used.input_tokens),
        output_tokens=_sum(last.output_tokens, used.output_tokens),
        cache_read_tokens=_sum(last.cache_read_tokens, used.cache_read_input_tokens),
        cache_creation_tokens=_sum(last.cache_creation_tokens, used.cache_creation_input_tokens),
    )


def _sum(before: int, more: int) -> int:
    return min(before + more, MAX_TOTAL)
