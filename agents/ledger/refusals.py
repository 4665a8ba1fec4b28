"""The audit rows of refused asks: the first 20 like refusals a minute, then a count (ADR 0008)."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from agents.errors import Denied
from agents.ledger.database import Database
from agents.ledger.statements import INSERT_TURNS, Moment, TurnRow, turn_row
from agents.ledger.texts import statement, table
from agents.types import Ask, Outcome

REFUSALS_WINDOW = timedelta(seconds=60)
REFUSALS_A_MINUTE = 20
REFUSED_QUESTION_CHARS = 1_000

RefusalKey = tuple[int, int, str]

_RECENT_REFUSALS = statement(
    """
SELECT session_id, caller_id, reason, count(*), max(id) FROM agents_turn
WHERE outcome = 'denied' AND asked_at > :since AND (session_id, caller_id, reason) IN {keys}
GROUP BY session_id, caller_id, reason
""",
    keys=table("keys", "bigint", "bigint", "text"),
)
_REPEAT_REFUSAL = statement("UPDATE agents_turn SET repeats = repeats + :times WHERE id = :id")


def write_refusals(database: Database, refused: Sequence[tuple[Ask, Denied]], moment: Moment) -> None:
    """A row for each of the first 20 like refusals a minute; the rest are counted in the last row (ADR 0008)."""
    groups: dict[RefusalKey, list[Ask]] = defaultdict(list)
    for ask, denied in refused:
        groups[ask.target.session_id, ask.caller_id, denied.reason].append(ask)
    recent = _recent_refusals(database, list(groups), moment.now)
    rows: list[TurnRow] = []
    for key, asks in groups.items():
        written, last_id = recent.get(key, (0, 0))
        room = max(0, REFUSALS_A_MINUTE - written)
        fresh = [_refusal_row(ask, key[2], moment) for ask in asks[:room]]
        over = len(asks) - len(fresh)
        if over and fresh:
            fresh[-1] = fresh[-1]._replace(repeats=1 + over)
        elif over:
            database.send(_REPEAT_REFUSAL, {"times": over, "id": last_id})
        rows += fresh
    if rows:
        database.insert(INSERT_TURNS, rows)


def _recent_refusals(
    database: Database, keys: Sequence[RefusalKey], now: datetime
) -> dict[RefusalKey, tuple[int, int]]:
    """Refusal rows of the last minute by session, caller and reason: how many, and the id of the last."""
    values = database.table_of("keys", keys) | {"since": database.moment(now - REFUSALS_WINDOW)}
    found = database.send(_RECENT_REFUSALS, values).fetchall()
    return {(row[0], row[1], row[2]): (row[3], row[4]) for row in found}


def _refusal_row(ask: Ask, reason: str, moment: Moment) -> TurnRow:
    """A refused ask: ended as it began, nothing counted, nothing held; of its question the beginning."""
    return turn_row(
        ask,
        ask.question[:REFUSED_QUESTION_CHARS],
        moment,
        outcome=Outcome.DENIED.value,
        reason=reason,
        settled_at=moment.stored,
        released_at=moment.stored,
    )
