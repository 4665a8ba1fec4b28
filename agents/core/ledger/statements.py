"""The moment of a batch, and the rows and statements that write asks and events.

Turns are written under the locks of their sessions (`DecisionTime`); `ends` has the statements of their ends.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cached_property
from typing import Any, NamedTuple

from agents.core.ledger.database import Database, StatementResult
from agents.core.ledger.texts import READ_CLOCK, Statement, checked, insert, statement, table
from agents.core.types import Ask, OpenTurn
from agents.models.session import PROCESS_DEAD_S
from kit.durations import seconds

GRACE = timedelta(seconds=seconds(60.0))
PROCESS_DEAD = timedelta(seconds=PROCESS_DEAD_S)
# its process ends the wait itself, in time; on a busy machine a little later
POSITION_GRACE = timedelta(seconds=10)
# Run on PostgreSQL alone. `count` makes it lock all sessions before it reads the clock.
_LOCK_SESSIONS = statement(
    """
WITH locked AS MATERIALIZED (
  SELECT id FROM agents_session WHERE id = ANY(:ids) ORDER BY id FOR NO KEY UPDATE
)
SELECT {clock}, locked_all.count FROM (SELECT count(*) AS count FROM locked) AS locked_all
""",
    clock=Statement("", READ_CLOCK),
)


class DecisionTime:
    """The time at which a batch is decided: of the database's clock, after its sessions are locked, in one order.

    SQLite already holds its one write lock, and its clock is this host's. `values`: what a statement's `{now}`,
    `{day}` and `{alive}` are.
    """

    def __init__(self, database: Database, session_ids: Collection[int]) -> None:
        self._database = database
        self._leases: dict[float, object] = {}
        if database.is_postgresql:
            self._clock = database.send(_LOCK_SESSIONS, {"ids": database.list_of(set(session_ids))})
            self.values: dict[str, Any] = {}
            return
        self.now = datetime.now(UTC)
        now = self.now.replace(tzinfo=None)  # as SQLite stores it
        alive, until = now - PROCESS_DEAD, now + GRACE
        # Set here, so that a batch on SQLite calls none of the properties below.
        self.stored, self.day = str(now), str(now)[:10]
        self.values = {"now": self.stored, "day": self.day, "alive": str(alive), "until": str(until)}

    @cached_property
    def now(self) -> datetime:
        """Aware, in UTC."""
        now: datetime = self._clock.fetchall()[0][0]
        return now.astimezone(UTC)

    @cached_property
    def stored(self) -> Any:
        """The time in the form that the database stores."""
        return self._database.moment(self.now)

    @cached_property
    def day(self) -> str:
        """The day, as both databases take it."""
        return self.now.date().isoformat()

    def lease(self, wait_s: float) -> object:
        """The time until which a turn holds its claim if nothing ends the turn."""
        if wait_s not in self._leases:
            self._leases[wait_s] = self._database.moment(self.now + timedelta(seconds=wait_s) + GRACE)
        return self._leases[wait_s]

    def position_until(self, wait_s: float) -> object:
        """The time until which an ask keeps its position in a queue."""
        return self._database.moment(self.now + timedelta(seconds=wait_s) + POSITION_GRACE)


class TurnRow(NamedTuple):
    """The columns of a new turn: those of its ask, and what was decided about it."""

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


class EventRow(NamedTuple):
    """The columns of a new event."""

    session_id: int
    kind: str
    type: str
    payload: str
    ts: object


class CallerSpendingRow(NamedTuple):
    """The spending of a caller at an agent on one day."""

    agent_id: int
    caller_id: int
    day: object
    queries: int


# One that is there already (an unknown commit, retried) stays as it is.
INSERT_TURNS = insert("agents_turn", TurnRow._fields, "ON CONFLICT (chat_id) DO NOTHING")
INSERT_QUEUED = insert("agents_queuedask", QueuedRow._fields, "ON CONFLICT (chat_id) DO NOTHING")
INSERT_EVENTS = insert("agents_event", EventRow._fields, now="ts")
# The sessions' locks keep what admission read of callers' budgets true.
SPEND_OF_CALLERS = insert(
    "agents_callerbudget",
    CallerSpendingRow._fields,
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
_SPEND = checked(_SPEND, "agents")  # fails where a budget changed under the batch
_HOLD_SESSIONS = statement(
    "SELECT id FROM agents_session WHERE id = ANY(:ids)", postgresql_lock="ORDER BY id FOR KEY SHARE"
)
_SESSIONS_OF = statement("SELECT chat_id, session_id FROM agents_turn WHERE chat_id = ANY(:ids)")
_DELETE_POSITIONS = statement("DELETE FROM agents_queuedask WHERE chat_id = ANY(:ids)")
_RELEASE = "UPDATE agents_turn SET released_at = {now} WHERE outcome IS NOT NULL AND released_at IS NULL AND "
_RELEASE_TURNS = statement(f"{_RELEASE} chat_id = ANY(:ids)")
_RELEASE_SESSIONS = statement(f"{_RELEASE} session_id = ANY(:ids)")


def lock_sessions_shared(database: Database, session_ids: Collection[int]) -> StatementResult:
    """The sessions that exist; they are not deleted before the transaction ends."""
    return database.send(_HOLD_SESSIONS, {"ids": database.list_of(session_ids)})


def sessions_of(database: Database, chat_ids: Sequence[str]) -> dict[str, int]:
    """The sessions of these turns, by chat id."""
    return dict(database.send(_SESSIONS_OF, {"ids": database.list_of(chat_ids)}).fetchall())


def delete_positions(database: Database, chat_ids: Sequence[str]) -> None:
    """Delete the queue rows of these asks."""
    database.send(_DELETE_POSITIONS, {"ids": database.list_of(chat_ids)})


def release_turns(database: Database, chat_ids: Sequence[str], moment: DecisionTime) -> None:
    """Free the lingering claims of ended turns whose agent finished after all."""
    database.send(_RELEASE_TURNS, moment.values | {"ids": database.list_of(chat_ids)})


def release_sessions(database: Database, session_ids: Sequence[int], moment: DecisionTime) -> None:
    """Free every lingering claim of these sessions."""
    database.send(_RELEASE_SESSIONS, moment.values | {"ids": database.list_of(session_ids)})


def spend(database: Database, counts: Mapping[int, int], moment: DecisionTime) -> None:
    """Count asks of agents on this day.

    Raises:
        RuntimeError: a budget changed under the batch. PostgreSQL raises a division by zero, at the commit.
    """
    values = database.table_of("spent", sorted(counts.items())) | {"agents": len(counts)}
    spent = database.send(_SPEND, moment.values | values)
    if not database.is_postgresql and len(spent.fetchall()) != len(counts):
        raise RuntimeError("a budget changed under the batch")


def open_row(turn: OpenTurn, home: str, moment: DecisionTime) -> TurnRow:
    """An admitted ask: open, holding its claim; counted on this day when an agent was asked."""
    return turn_row(
        turn.ask,
        turn.text,
        moment,
        usage_day=moment.day if turn.ask.target.agent_id is not None else None,
        claim_until=moment.lease(turn.ask.wait_s),
        home=home,
        connection_id=turn.connection_id,
    )


def turn_row(ask: Ask, question: str, moment: DecisionTime, **decided: Any) -> TurnRow:
    """The row of an ask, with what was decided about it."""
    return TurnRow(
        chat_id=ask.chat_id,
        agent_id=ask.target.agent_id,
        session_id=ask.target.session_id,
        caller_id=ask.caller_id,
        surface=ask.surface,
        question=question,
        asked_at=moment.stored,
        source_session_id=ask.source.session_id if ask.source else None,
        depth=len(ask.chain),
        traceparent=ask.traceparent,
        message_key=ask.message_key,
        task_id=ask.task_id,
        context_id=ask.context_id,
        **decided,
    )


def queued_row(ask: Ask, wait_s: float, home: str, moment: DecisionTime) -> QueuedRow:
    """An ask that begins to wait for a free agent."""
    return QueuedRow(
        agent_id=ask.target.agent_id,
        session_id=ask.target.session_id,
        caller_id=ask.caller_id,
        chat_id=ask.chat_id,
        home=home,
        task_id=ask.task_id,
        message_key=ask.message_key,
        question=ask.question,
        queued_at=moment.stored,
        waits_until=moment.position_until(wait_s),
    )
