"""The ends of turns in a batch, and the audit rows of refused asks."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from agents.core.errors import Denied
from agents.core.ledger.batch_events import BatchEvents, clone_files_for_source
from agents.core.ledger.database import Database, StatementResult
from agents.core.ledger.statements import GRACE, INSERT_TURNS, DecisionTime, TurnRow, turn_row
from agents.core.ledger.texts import NOW, Statement, checked, statement, table
from agents.core.ledger.work import Result, Settle
from agents.core.types import Ask, SettledTurn
from agents.models.choices import Outcome
from agents.transcript.pieces import Usage
from kit import sql

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
_SETTLE = statement(
    """
UPDATE agents_turn SET
  outcome = v.column2, reason = v.column3, latency_ms = v.column4, settled_at = {now},
  released_at = CASE WHEN v.column5 = 1 THEN NULL ELSE {now} END,
  claim_until = CASE WHEN v.column5 = 1 THEN {grace} ELSE claim_until END
FROM {endings} AS v WHERE chat_id = v.column1 AND outcome IS NULL
RETURNING chat_id, agent_id, usage_day
""",
    endings=table("endings", "text", "text", "text", "integer", "integer"),
    grace=Statement(":until", f"({NOW.postgresql} + interval '{GRACE.total_seconds()} seconds')"),
)
_SETTLE_ALL = checked(_SETTLE, "turns")
# A turn's usage counts once, on the day of its question: the turns of `used` that have none yet. The row of that
# turn is written last, so that the sums before it see which are new.
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
    statement("UPDATE agents_turn SET usage_day = NULL WHERE chat_id = :chat_id"),
)


class EndingRow(NamedTuple):
    """The end of one turn."""

    chat_id: str
    outcome: str
    reason: str
    latency_ms: int | None
    keeps_claim: int


class TurnUsageRow(NamedTuple):
    """The usage that the agent reported for one turn."""

    chat_id: str
    input_tokens: int | None
    output_tokens: int | None
    cost_microusd: int | None


class Ends:
    """Settles the turns of a batch: writes `results` by their index in the batch, and adds to `events`.

    `returns_budget`: one of them uncounts its ask.
    """

    def __init__(self, database: Database, events: BatchEvents, results: list[Result]) -> None:
        self.settles: dict[int, Settle] = {}
        self.returns_budget = False
        self._database = database
        self._events = events
        self._results = results
        self._used: dict[str, Usage] = {}

    def add(self, i: int, work: Settle) -> None:
        """Add one ending, at that place."""
        self.settles[i] = work
        self.returns_budget = self.returns_budget or work.ending.returns_budget
        if work.ending.usage is not None:
            self._used[work.turn.ask.chat_id] = work.ending.usage

    @property
    def may_all_be_first(self) -> bool:
        """True if each is of another turn, and nothing that is written with it has to be read first."""
        settles = self.settles.values()
        return (
            not self.returns_budget
            and len({work.turn.ask.chat_id for work in settles}) == len(settles)
            and not any(work.turn.ask.source for work in settles)
        )

    def send(self, moment: DecisionTime) -> StatementResult:
        """End the turns, at least one; the answer says which were open."""
        ends = settle(self._database, self._rows(), moment)
        if self._used:  # also where another process ended the turn
            record_usage(self._database, self._used)
        return ends

    def send_as_first(self, moment: DecisionTime) -> None:
        """End the turns, on PostgreSQL; it fails the transaction where one is not open any more."""
        if self.settles:
            settle_all(self._database, self._rows(), moment)
        if self._used:
            record_usage(self._database, self._used)
        for i, work in self.settles.items():
            self._win(i, work)

    def take(self, ends: StatementResult) -> None:
        """The turns of these that were open; the method gives back the counts of asks that never left."""
        won = {row[0]: (row[1], row[2]) for row in ends.fetchall()}
        lost: dict[int, Settle] = {}
        for i, work in self.settles.items():
            chat_id = work.turn.ask.chat_id
            if chat_id not in won:
                lost[i] = work
                continue
            agent_id, day = won.pop(chat_id)
            self._win(i, work)
            if work.ending.returns_budget and day is not None:
                return_budget(self._database, agent_id, day, chat_id)
        if lost:
            stored = read_ends(self._database, [work.turn.ask.chat_id for work in lost.values()])
            for i, work in lost.items():
                outcome, reason = stored.get(work.turn.ask.chat_id, (Outcome.FAILED, "deleted"))
                self._results[i] = _as_stored(work, outcome or Outcome.FAILED, reason)

    def write_extras(self) -> None:
        """Write what surfaces keep of the ends, ordered by chat id: the journal locks its rows in that order."""
        writes: list[sql.Query] = []
        ends = list(self.settles.items())
        if len(ends) > 1:
            ends.sort(key=lambda end: end[1].turn.ask.chat_id)
        for i, work in ends:
            settled = self._results[i]
            if work.extra_writes is not None and isinstance(settled, SettledTurn):
                writes += work.extra_writes(settled)
        if writes:
            self._database.send_queries(writes)

    def _rows(self) -> Sequence[EndingRow]:
        """The first of two endings of one turn stands, in a batch as between batches."""
        first: dict[str, EndingRow] = {}
        for work in self.settles.values():
            chat_id, ending = work.turn.ask.chat_id, work.ending
            outcome, keeps_claim = ending.outcome.value, int(ending.keeps_claim)
            first.setdefault(chat_id, EndingRow(chat_id, outcome, ending.reason, ending.latency_ms, keeps_claim))
        return list(first.values())

    def _win(self, i: int, work: Settle) -> None:
        ask, ending = work.turn.ask, work.ending
        if ask.source is not None:
            ending = clone_files_for_source(self._database, ask, ask.source, ending)
        self._results[i] = SettledTurn(
            ending.outcome,
            ending.reason,
            ending.text,
            work.has_extra_writes,
            usage=ending.usage,
            is_unsent=ending.returns_budget,
        )
        self._events.settled(work.turn, ending)


def _as_stored(work: Settle, outcome: str, reason: str) -> SettledTurn:
    """The winner's end; its text is only known here when it says the same."""
    ending = work.ending
    text = ending.text if outcome == ending.outcome else ""
    is_unsent = ending.returns_budget and (outcome, reason) == (ending.outcome, ending.reason)
    return SettledTurn(
        Outcome(outcome), reason, text, work.has_extra_writes, usage=ending.usage, is_unsent=is_unsent
    )


def write_refusals(database: Database, refused: Sequence[tuple[Ask, Denied]], moment: DecisionTime) -> None:
    """A row for each of the first 20 like refusals a minute; the rest are counted in the last row."""
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


def _refusal_row(ask: Ask, reason: str, moment: DecisionTime) -> TurnRow:
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


def settle(database: Database, endings: Sequence[EndingRow], moment: DecisionTime) -> StatementResult:
    """End open turns; those this ended, each with its agent and the day it was counted on."""
    return database.send(_SETTLE, moment.values | database.table_of("endings", endings))


def settle_all(database: Database, endings: Sequence[EndingRow], moment: DecisionTime) -> None:
    """End turns that are all open, on PostgreSQL: it fails the transaction (DIVISION_BY_ZERO) where one is not."""
    database.send(_SETTLE_ALL, moment.values | database.table_of("endings", endings) | {"turns": len(endings)})


def record_usage(database: Database, used: Mapping[str, Usage]) -> None:
    """Keep what turns used, by chat id, and count it on the days of their questions; what is kept stays."""
    rows = [
        TurnUsageRow(chat_id, one.input_tokens, one.output_tokens, one.cost_microusd)
        for chat_id, one in used.items()
    ]
    values = database.table_of("used", rows)
    for one in _RECORD_USAGE:
        database.send(one, values)


def read_ends(database: Database, chat_ids: Sequence[str]) -> dict[str, tuple[str | None, str]]:
    """The written ones of these turns: the outcome, None of an open one, and the reason."""
    found = database.send(_ENDS, {"ids": database.list_of(chat_ids)}).fetchall()
    return {row[0]: (row[1], row[2]) for row in found}


def return_budget(database: Database, agent_id: int | None, day: object, chat_id: str) -> None:
    """Uncount one ask that never reached its agent, on the day it was counted, for the agent and its caller."""
    values = {"agent": agent_id, "counted_on": day, "chat_id": chat_id}
    for one in _RETURN_BUDGET:
        database.send(one, values)
