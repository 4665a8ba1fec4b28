"""The statements that write asks, their ends and their events, and the rows of the statements.

A batch sends the statements under the locks of its sessions (`Database.lock_sessions`).
"""

from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Any

from msgspec import Struct

from agents.core.ledger.database import GRACE, Database
from agents.core.ledger.texts import NOW, Statement, checked, insert, statement, table
from agents.core.types import Ask, OpenTurn
from agents.transcript.pieces import Usage

# The process that holds a waiting ask ends the wait itself, on a busy machine a little late.
POSITION_GRACE = timedelta(seconds=10)
MAX_FAILURE_CHARS = 1_000


class TurnRow(Struct, gc=False):
    """The columns of a new turn: those of its ask, and those of the decision."""

    chat_id: str
    agent_id: int | None
    session_id: int
    caller_id: int
    surface: str
    question: str
    asked_at: object
    source_session_id: int | None
    depth: int
    traceparent: str
    message_key: str
    task_id: str
    context_id: str
    outcome: str | None = None
    reason: str = ""
    settled_at: object = None
    usage_day: object = None
    released_at: object = None
    claim_until: object = None
    home: str = ""
    connection_id: int | None = None
    repeats: int = 1


class QueuedRow(Struct, gc=False):
    """The columns of an ask that begins to wait."""

    agent_id: int | None
    session_id: int
    caller_id: int
    chat_id: str
    home: str
    task_id: str
    message_key: str
    question: str
    queued_at: object
    waits_until: object


class EventRow(Struct, gc=False):
    """The columns of a new event."""

    session_id: int
    kind: str
    type: str
    payload: str
    ts: object


class CallerSpendingRow(Struct, gc=False):
    """The spending of a caller at an agent on one day."""

    agent_id: int
    caller_id: int
    day: object
    queries: int


# A row that exists (the batch is retried after a commit whose answer was lost) stays as it is.
INSERT_TURNS = insert("agents_turn", TurnRow.__struct_fields__, "ON CONFLICT (chat_id) DO NOTHING")
INSERT_QUEUED = insert("agents_queuedask", QueuedRow.__struct_fields__, "ON CONFLICT (chat_id) DO NOTHING")
INSERT_EVENTS = insert("agents_event", EventRow.__struct_fields__, now="ts")
# The locks of the sessions keep other batches from changing the callers' budgets that admission read.
SPEND_OF_CALLERS = insert(
    "agents_callerbudget",
    CallerSpendingRow.__struct_fields__,
    """
ON CONFLICT (agent_id, caller_id) DO UPDATE SET day = excluded.day, queries = excluded.queries
  + CASE WHEN agents_callerbudget.day = excluded.day THEN agents_callerbudget.queries ELSE 0 END,
  cost_microusd
  = CASE WHEN agents_callerbudget.day = excluded.day THEN agents_callerbudget.cost_microusd ELSE 0 END
""",
)
_SPEND = statement(
    """
INSERT INTO agents_dailyusage (agent_id, day, queries)
SELECT a.id, {day}, v.column2 FROM {spent} AS v JOIN agents_agent a ON a.id = v.column1
WHERE v.column2 <= a.daily_budget
ON CONFLICT (agent_id, day) DO UPDATE SET queries = agents_dailyusage.queries + excluded.queries
WHERE agents_dailyusage.queries + excluded.queries
  <= (SELECT daily_budget FROM agents_agent WHERE id = agents_dailyusage.agent_id)
RETURNING agent_id
""",
    spent=table("spent", "bigint", "integer"),
)
_SPEND = checked(_SPEND, "agents")  # fails if a budget changed after admission read it
# Returns the sessions that exist. Their deletion waits for the end of the transaction; other batches do not wait.
HOLD_SESSIONS = statement(
    "SELECT id FROM agents_session WHERE id = ANY(:ids)", postgresql_lock="ORDER BY id FOR KEY SHARE"
)
SESSIONS_OF = statement("SELECT chat_id, session_id FROM agents_turn WHERE chat_id = ANY(:ids)")
DELETE_POSITIONS = statement("DELETE FROM agents_queuedask WHERE chat_id = ANY(:ids)")
_RELEASE = "UPDATE agents_turn SET released_at = {now} WHERE outcome IS NOT NULL AND released_at IS NULL AND "
RELEASE_TURNS = statement(f"{_RELEASE} chat_id = ANY(:ids)")
RELEASE_SESSIONS = statement(f"{_RELEASE} session_id = ANY(:ids)")
# A row of `endings`: chat id, outcome, reason, latency, 1 if the turn keeps its claim, the text of a failure, and
# the moments of its run.
SETTLE = statement(
    """
UPDATE agents_turn SET
  outcome = v.column2, reason = v.column3, latency_ms = v.column4, settled_at = {now},
  failure_text = v.column6,
  released_at = CASE WHEN v.column5 = 1 THEN NULL ELSE {now} END,
  claim_until = CASE WHEN v.column5 = 1 THEN {grace} ELSE claim_until END,
  waited_ms = v.column7, delivered_ms = v.column8, first_piece_ms = v.column9
FROM {endings} AS v WHERE chat_id = v.column1 AND outcome IS NULL
RETURNING chat_id, agent_id, CAST(usage_day AS text)
""",
    endings=table(
        *("endings", "text", "text", "text", "integer", "integer", "text"),
        *("integer", "integer", "integer"),
    ),
    grace=Statement(":until", f"({NOW.postgresql} + interval '{GRACE.total_seconds()} seconds')"),
)
SUBSCRIBED = "SELECT EXISTS (SELECT 1 FROM webhooks_subscription)"
# Fails if one of the turns is no longer open, or if a webhook subscription is live.
SETTLE_ALL = checked(SETTLE, "turns", f"NOT ({SUBSCRIBED})")
# A row of `used`: chat id, tokens in, tokens out, cost. Only turns without stored usage count, on the
# day of their question. The turn's row is updated last, so that the statements before it see which turns have no
# usage yet.
_NEW_COSTS = """
  SELECT t.agent_id, {group}, CAST(SUM(v.column4) AS bigint) AS cost
  FROM {{used}} AS v JOIN agents_turn t ON t.chat_id = v.column1
  WHERE t.usage_day IS NOT NULL AND v.column4 > 0
    AND t.input_tokens IS NULL AND t.output_tokens IS NULL AND t.cost_microusd IS NULL
  GROUP BY t.agent_id, {group}
"""
_USED = table("used", "text", "bigint", "bigint", "bigint")
_RECORD_USAGE = (
    statement(
        "UPDATE agents_dailyusage SET cost_microusd = cost_microusd + n.cost FROM ("
        + _NEW_COSTS.format(group="t.usage_day")
        + ") AS n WHERE agents_dailyusage.agent_id = n.agent_id AND agents_dailyusage.day = n.usage_day",
        used=_USED,
    ),
    statement(
        "UPDATE agents_callerbudget SET cost_microusd = cost_microusd + n.cost FROM ("
        + _NEW_COSTS.format(group="t.caller_id, t.usage_day")
        + ") AS n WHERE agents_callerbudget.agent_id = n.agent_id AND agents_callerbudget.caller_id = n.caller_id"
        " AND agents_callerbudget.day = n.usage_day",
        used=_USED,
    ),
    statement(
        "UPDATE agents_turn SET input_tokens = v.column2, output_tokens = v.column3, cost_microusd = v.column4"
        " FROM {used} AS v WHERE chat_id = v.column1"
        " AND input_tokens IS NULL AND output_tokens IS NULL AND cost_microusd IS NULL",
        used=_USED,
    ),
)
_ENDS = statement("SELECT chat_id, outcome, reason FROM agents_turn WHERE chat_id = ANY(:ids)")
_RETURN_BUDGET = (
    statement(
        "UPDATE agents_dailyusage SET queries = queries - 1"
        " WHERE agent_id = :agent AND day = :counted_on AND queries > 0"
    ),
    statement(
        "UPDATE agents_callerbudget SET queries = queries - 1"
        " WHERE agent_id = :agent AND day = :counted_on AND queries > 0"
        " AND caller_id = (SELECT caller_id FROM agents_turn WHERE chat_id = :chat_id)"
    ),
    # Not the budget of a group that the caller joined later: the ask was not counted there.
    statement(
        "UPDATE agents_callerbudget SET queries = queries - 1"
        " WHERE agent_id = :agent AND day = :counted_on AND queries > 0 AND caller_id IN ("
        "SELECT m.group_id FROM agents_turn t JOIN accounts_membership m ON m.user_id = t.caller_id"
        " WHERE t.chat_id = :chat_id AND m.role <> 'auditor' AND m.created_at <= t.asked_at)"
    ),
    statement("UPDATE agents_turn SET usage_day = NULL WHERE chat_id = :chat_id"),
)


def turn_row(database: Database, ask: Ask, question: str, **decided: Any) -> TurnRow:
    """The row of an ask; `decided`: the columns of the decision."""
    return TurnRow(
        chat_id=ask.chat_id,
        agent_id=ask.target.agent_id,
        session_id=ask.target.session_id,
        caller_id=ask.caller_id,
        surface=ask.surface,
        question=question,
        asked_at=database.stored_now,
        source_session_id=ask.source.session_id if ask.source else None,
        depth=len(ask.chain),
        traceparent=ask.traceparent,
        message_key=ask.message_key,
        task_id=ask.task_id,
        context_id=ask.context_id,
        **decided,
    )


def open_row(database: Database, turn: OpenTurn, home: str) -> TurnRow:
    """The row of an admitted ask: open, with its claim; if an agent was asked, the ask counts on this day."""
    ask = turn.ask
    return turn_row(
        database,
        ask,
        turn.text,
        usage_day=None if ask.target.agent_id is None else database.day,
        claim_until=database.moment(database.now + timedelta(seconds=ask.wait_s) + GRACE),
        home=home,
        connection_id=turn.connection_id,
    )


def queued_row(database: Database, ask: Ask, wait_s: float, home: str) -> QueuedRow:
    """The row of an ask that begins to wait for a free agent."""
    return QueuedRow(
        agent_id=ask.target.agent_id,
        session_id=ask.target.session_id,
        caller_id=ask.caller_id,
        chat_id=ask.chat_id,
        home=home,
        task_id=ask.task_id,
        message_key=ask.message_key,
        question=ask.question,
        queued_at=database.stored_now,
        waits_until=database.moment(database.now + timedelta(seconds=wait_s) + POSITION_GRACE),
    )


def shorten_failure(text: str) -> str | None:
    """The beginning of an agent's words about its failure, without what a database refuses; None without words."""
    kept = text[:MAX_FAILURE_CHARS].replace("\0", "").encode("utf-8", "replace").decode()
    return kept or None


def spend(database: Database, counts: Mapping[int, int]) -> None:
    """Count asks of agents on this day, in the order of the agents' ids, in which other batches lock the rows too.

    Raises:
        RuntimeError: a budget changed after admission read it. On PostgreSQL the commit raises a division by zero.
    """
    agents = len(counts)
    spent = database.send(_SPEND, spent=sorted(counts.items()), agents=agents)
    if not database.is_postgresql and len(spent.fetchall()) != agents:
        raise RuntimeError("a budget changed under the batch")


def record_usage(database: Database, used: Mapping[str, Usage]) -> None:
    """Store the usage of turns, by chat id, and count it on the days of their questions; stored usage stays."""
    rows = [(id_, one.input_tokens, one.output_tokens, one.cost_microusd) for id_, one in used.items()]
    for one in _RECORD_USAGE:
        database.send(one, used=rows)


def read_ends(database: Database, chat_ids: Sequence[str]) -> dict[str, tuple[str | None, str]]:
    """Outcome and reason of the turns among these that have a row; the outcome of an open turn is None."""
    return {row[0]: (row[1], row[2]) for row in database.send(_ENDS, ids=chat_ids).fetchall()}


def return_budget(database: Database, chat_id: str, agent_id: int | None, day: object) -> None:
    """Subtract an ask that never reached its agent from the counts of its day: the agent's, the caller's and those
    of the caller's groups.
    """
    for one in _RETURN_BUDGET:
        database.send(one, agent=agent_id, counted_on=day, chat_id=chat_id)
