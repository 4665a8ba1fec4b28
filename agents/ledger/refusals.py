"""Auditing refusals without letting a stubborn caller fill the table (docs/adr/0008)."""

from collections import defaultdict
from collections.abc import Sequence

from agents.errors import Denied
from agents.ledger import statements
from agents.ledger.rows import Moment, refusal_row
from agents.ledger.statements import RefusalKey, TurnRow
from agents.types import Ask
from kit import sql

ROWS_A_MINUTE = 20


def write_refusals(refused: Sequence[tuple[Ask, Denied]], moment: Moment) -> None:
    """A row for each of the first 20 like refusals a minute; the rest are counted in the last row."""
    if not refused:
        return
    groups: dict[RefusalKey, list[Ask]] = defaultdict(list)
    for ask, denied in refused:
        groups[ask.target.session_id, ask.caller_id, denied.reason].append(ask)
    recent = statements.recent_refusals(list(groups), moment.now)
    rows: list[TurnRow] = []
    for key, asks in groups.items():
        written, last_id = recent.get(key, (0, 0))
        room = max(0, ROWS_A_MINUTE - written)
        fresh = [refusal_row(ask, key[2], moment) for ask in asks[:room]]
        over = len(asks) - len(fresh)
        if over and fresh:
            fresh[-1] = fresh[-1]._replace(repeats=1 + over)
        elif over:
            statements.repeat_refusal(last_id, over)
        rows += fresh
    if rows:
        sql.write_each([statements.inserting(rows)])
