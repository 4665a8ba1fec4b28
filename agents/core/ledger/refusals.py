"""Writes the audit rows of refused asks: one for each of the first of a minute, and a count of the rest."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import timedelta

from agents.core.errors import Denied
from agents.core.ledger.database import Database
from agents.core.ledger.statements import INSERT_TURNS, TurnRow, turn_row
from agents.core.ledger.texts import statement, table
from agents.core.types import Ask
from agents.models.choices import Outcome

REFUSALS_WINDOW = timedelta(seconds=60)
REFUSALS_A_MINUTE = 20
REFUSED_QUESTION_CHARS = 1_000

_RECENT_REFUSALS = statement(
    """
SELECT session_id, caller_id, reason, count(*), max(id) FROM agents_turn
WHERE outcome = 'denied' AND asked_at > :since AND (session_id, caller_id, reason) IN {keys}
GROUP BY session_id, caller_id, reason
""",
    keys=table("keys", "bigint", "bigint", "text"),
)
_REPEAT_REFUSAL = statement("UPDATE agents_turn SET repeats = repeats + :times WHERE id = :id")


def write_refusals(database: Database, refused: Sequence[tuple[Ask, Denied]]) -> None:
    """Write a row for each of the first 20 refusals a minute of one session, caller and reason; the last row
    counts the rest.

    The row of a refused ask has ended already, counts in no budget and holds no claim. The row keeps only the
    beginning of the question.
    """
    groups: dict[tuple[int, int, str], list[Ask]] = defaultdict(list)
    for ask, denied in refused:
        groups[ask.target.session_id, ask.caller_id, denied.reason].append(ask)
    since = database.moment(database.now - REFUSALS_WINDOW)
    found = database.send(_RECENT_REFUSALS, keys=list(groups), since=since).fetchall()
    recent = {(row[0], row[1], row[2]): (row[3], row[4]) for row in found}
    now, rows = database.stored_now, list[TurnRow]()
    ended = {"outcome": Outcome.DENIED.value, "settled_at": now, "released_at": now}
    for key, asks in groups.items():
        written, last_id = recent.get(key, (0, 0))
        room = max(0, REFUSALS_A_MINUTE - written)
        fresh = [
            turn_row(database, ask, ask.question[:REFUSED_QUESTION_CHARS], reason=key[2], **ended)
            for ask in asks[:room]
        ]
        over = len(asks) - len(fresh)
        if over and fresh:
            fresh[-1].repeats = 1 + over
        elif over:
            database.send(_REPEAT_REFUSAL, times=over, id=last_id)
        rows += fresh
    if rows:
        database.insert(INSERT_TURNS, rows)
