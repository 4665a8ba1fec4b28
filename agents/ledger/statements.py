"""The ledger's SQL, for SQLite and PostgreSQL alike. Callers hold the session locks (`lock_sessions`) first."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import NamedTuple

from django.db import connection

from agents.types import AGENTS_OWN_WORDS, Outcome
from kit import sql
from kit.clock import db_now

REFUSALS_WINDOW = timedelta(seconds=60)


class TurnRow(NamedTuple):
    """The columns of a new turn, in the order INSERT_TURNS names them."""

    chat_id: str
    agent_id: int | None
    session_id: int
    caller_id: int
    surface: str
    question: str
    asked_at: object
    outcome: str | None
    reason: str
    settled_at: object
    usage_day: object
    released_at: object
    claim_until: object
    home: str
    connection_id: int | None
    repeats: int
    source_session_id: int | None
    depth: int
    traceparent: str
    message_key: str
    task_id: str


class EndingRow(NamedTuple):
    """How one turn ends, in the order SETTLE reads it."""

    chat_id: str
    outcome: str
    reason: str
    latency_ms: int | None
    keeps_claim: int


class QueuedRow(NamedTuple):
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


RefusalKey = tuple[int, int, str]

_TURNS = f"INSERT INTO agents_turn ({', '.join(TurnRow._fields)})"
_QUEUED = f"INSERT INTO agents_queuedask ({', '.join(QueuedRow._fields)})"
_SETTLE = """
UPDATE agents_turn SET
  outcome = v.column2, reason = v.column3, latency_ms = CAST(v.column4 AS integer), settled_at = %s,
  released_at = CASE WHEN v.column5 = 1 THEN NULL ELSE {now} END,
  claim_until = CASE WHEN v.column5 = 1 THEN {grace} ELSE claim_until END
FROM (VALUES {rows}) AS v WHERE chat_id = v.column1 AND outcome IS NULL
RETURNING chat_id, agent_id, usage_day
"""
_SPEND = """
INSERT INTO agents_dailyusage (agent_id, day, queries)
SELECT a.id, %s, v.column2 FROM (VALUES {rows}) AS v JOIN agents_agent a ON a.id = v.column1
WHERE v.column2 <= a.daily_budget
ON CONFLICT (agent_id, day) DO UPDATE SET queries = agents_dailyusage.queries + excluded.queries
WHERE agents_dailyusage.queries + excluded.queries
  <= (SELECT daily_budget FROM agents_agent WHERE id = agents_dailyusage.agent_id)
RETURNING agent_id
"""
_SPEND_CALLERS = "INSERT INTO agents_callerbudget (agent_id, caller_id, day, queries)"
_SPEND_CALLERS_END = """
ON CONFLICT (agent_id, caller_id) DO UPDATE SET day = excluded.day, queries = excluded.queries
  + CASE WHEN agents_callerbudget.day = excluded.day THEN agents_callerbudget.queries ELSE 0 END
"""


def lock_sessions(session_ids: Iterable[int]) -> datetime:
    """Serialise with every other process on these sessions; the database's time once they are locked.

    SQLite already holds its one write lock.
    """
    wanted = sorted(set(session_ids))
    if not wanted or connection.vendor != "postgresql":
        return db_now()
    lock = f"SELECT id FROM agents_session WHERE id IN ({sql.marks(wanted)}) ORDER BY id FOR NO KEY UPDATE"
    _, [(now,)] = sql.rows_of_each([sql.Query(lock, wanted), sql.Query("SELECT clock_timestamp()")])
    return now.astimezone(UTC)  # type: ignore[no-any-return]


def hold_sessions(session_ids: Collection[int]) -> set[int]:
    """Those of these sessions that are there; they are not deleted before the transaction ends."""
    lock = " ORDER BY id FOR KEY SHARE" if connection.vendor == "postgresql" else ""
    found = sql.rows(
        f"SELECT id FROM agents_session WHERE id IN ({sql.marks(session_ids)}){lock}", sorted(session_ids)
    )
    return {row[0] for row in found}


def sessions_of(chat_ids: Collection[str]) -> dict[str, int]:
    """The sessions of these turns, by chat id."""
    found = sql.rows(
        f"SELECT chat_id, session_id FROM agents_turn WHERE chat_id IN ({sql.marks(chat_ids)})", list(chat_ids)
    )
    return dict(found)


def spending(counts: Mapping[int, int], day: date) -> sql.Query:
    """Counts asks of agents on a day; a row comes back for each agent, but for one that is at its budget."""
    wanted = sorted(counts.items())
    marks = ", ".join(["(%s, %s)"] * len(wanted))
    return sql.Query(_SPEND.format(rows=marks), [as_day(day), *(value for pair in wanted for value in pair)])


def callers_spending(counts: Mapping[tuple[int, int], int], day: date) -> sql.Insert:
    """Counts asks by agent and caller on a day. The sessions' locks keep what admission read of them true."""
    rows = [(agent_id, caller_id, as_day(day), times) for (agent_id, caller_id), times in sorted(counts.items())]
    return sql.Insert(_SPEND_CALLERS, rows, _SPEND_CALLERS_END)


def give_back(agent_id: int | None, day: object, chat_id: str) -> None:
    """Uncount one ask that never reached its agent, on the day it was counted, for the agent and its caller."""
    sql.run(
        "UPDATE agents_dailyusage SET queries = queries - 1 WHERE agent_id = %s AND day = %s AND queries > 0",
        [agent_id, day],
    )
    sql.run(
        "UPDATE agents_callerbudget SET queries = queries - 1 WHERE agent_id = %s AND day = %s AND queries > 0"
        " AND caller_id = (SELECT caller_id FROM agents_turn WHERE chat_id = %s)",
        [agent_id, day, chat_id],
    )
    sql.run("UPDATE agents_turn SET usage_day = NULL WHERE chat_id = %s", [chat_id])


def inserting(turns: Sequence[TurnRow]) -> sql.Insert:
    """Writes new turns; one that is there already (an unknown commit, retried) stays as it is."""
    return sql.Insert(_TURNS, turns, "ON CONFLICT (chat_id) DO NOTHING")


def queueing(asks: Sequence[QueuedRow]) -> sql.Insert:
    """Writes asks that begin to wait; one that is there already stays where it is."""
    return sql.Insert(_QUEUED, asks, "ON CONFLICT (chat_id) DO NOTHING")


def leave_lines(chat_ids: Collection[str]) -> None:
    """These asks wait no more."""
    sql.run(f"DELETE FROM agents_queuedask WHERE chat_id IN ({sql.marks(chat_ids)})", list(chat_ids))


def existing(chat_ids: Collection[str]) -> dict[str, bool]:
    """Which of these turns are written already, each with whether it is open."""
    found = sql.rows(
        f"SELECT chat_id, outcome FROM agents_turn WHERE chat_id IN ({sql.marks(chat_ids)})", [*chat_ids]
    )
    return {row[0]: row[1] is None for row in found}


def settle(endings: Sequence[EndingRow], now: datetime, grace: timedelta) -> dict[str, tuple[int | None, object]]:
    """End open turns; those this call ended, each with its agent and the day it was counted on."""
    marks = ", ".join(["(%s, %s, %s, %s, %s)"] * len(endings))
    settled_at, until = sql.moment(now), sql.moment(now + grace)
    stamp = "CAST(%s AS timestamptz)" if connection.vendor == "postgresql" else "%s"
    statement = _SETTLE.format(now=stamp, grace=stamp, rows=marks)
    values = [value for ending in endings for value in ending]
    won = sql.rows(statement, [settled_at, settled_at, until, *values])
    return {row[0]: (row[1], row[2]) for row in won}


def read_ends(chat_ids: Collection[str]) -> dict[str, tuple[str, str]]:
    """The stored outcome and reason of ended turns."""
    found = sql.rows(
        f"SELECT chat_id, outcome, reason FROM agents_turn WHERE chat_id IN ({sql.marks(chat_ids)})", [*chat_ids]
    )
    return {row[0]: (row[1], row[2]) for row in found}


def ended_parents(chat_ids: Collection[str]) -> set[str]:
    """Those of these turns that were canceled, failed or deleted: no caller waits for what was asked in them.

    A turn whose agent itself says that it failed or refuses is none of them, as an answered one is none.
    """
    if not chat_ids:
        return set()
    found = sql.rows(
        f"SELECT chat_id FROM agents_turn WHERE chat_id IN ({sql.marks(chat_ids)})"
        f" AND (outcome IS NULL OR outcome = %s OR reason IN ({sql.marks(AGENTS_OWN_WORDS)}))",
        [*chat_ids, Outcome.COMPLETED, *AGENTS_OWN_WORDS],
    )
    return set(chat_ids) - {row[0] for row in found}


def release_turns(chat_ids: Collection[str], now: datetime) -> None:
    """Free the lingering claims of ended turns whose agent finished after all."""
    sql.run(
        "UPDATE agents_turn SET released_at = %s"
        f" WHERE chat_id IN ({sql.marks(chat_ids)}) AND outcome IS NOT NULL AND released_at IS NULL",
        [sql.moment(now), *chat_ids],
    )


def release_sessions(session_ids: Collection[int], now: datetime) -> None:
    """Free every lingering claim of these sessions."""
    sql.run(
        "UPDATE agents_turn SET released_at = %s"
        f" WHERE session_id IN ({sql.marks(session_ids)}) AND outcome IS NOT NULL AND released_at IS NULL",
        [sql.moment(now), *session_ids],
    )


def recent_refusals(keys: Collection[RefusalKey], now: datetime) -> dict[RefusalKey, tuple[int, int]]:
    """Refusal rows of the last minute by session, caller and reason: how many, and the id of the last."""
    marks = ", ".join(["(%s, %s, %s)"] * len(keys))
    found = sql.rows(
        "SELECT session_id, caller_id, reason, count(*), max(id) FROM agents_turn"
        f" WHERE outcome = 'denied' AND asked_at > %s AND (session_id, caller_id, reason) IN (VALUES {marks})"
        " GROUP BY session_id, caller_id, reason",
        [sql.moment(now - REFUSALS_WINDOW), *(part for key in keys for part in key)],
    )
    return {(row[0], row[1], row[2]): (row[3], row[4]) for row in found}


def repeat_refusal(turn_id: int, times: int) -> None:
    """Count like refusals in the row of the last one."""
    sql.run("UPDATE agents_turn SET repeats = repeats + %s WHERE id = %s", [times, turn_id])


def as_day(day: date) -> object:
    """A day as this database stores it."""
    return connection.ops.adapt_datefield_value(day)
