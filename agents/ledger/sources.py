"""The sessions that asks came from. One may be deleted while its question is out: the turn goes on without it."""

from collections.abc import Collection, Sequence
from dataclasses import replace

from agents.ledger import statements
from agents.ledger.work import Admit, Deny, Settle, Work
from agents.types import Ask


def without_gone(batch: Sequence[Work]) -> Sequence[Work]:
    """The batch with no source that is gone; those that are there stay until the transaction ends."""
    named = {ask.source.session_id for ask in map(_ask_of, batch) if ask is not None and ask.source is not None}
    gone = named - statements.hold_sessions(named) if named else set()
    return [_without(work, gone) for work in batch] if gone else batch


def _ask_of(work: Work) -> Ask | None:
    if isinstance(work, Settle):
        return work.turn.ask
    return work.ask if isinstance(work, Admit | Deny) else None


def _without(work: Work, gone: Collection[int]) -> Work:
    ask = _ask_of(work)
    if ask is None or ask.source is None or ask.source.session_id not in gone:
        return work
    alone = replace(ask, source=None)
    if isinstance(work, Settle):
        return replace(work, turn=replace(work.turn, ask=alone))
    assert isinstance(work, Admit | Deny)  # noqa: S101  for the type checker
    return replace(work, ask=alone)
