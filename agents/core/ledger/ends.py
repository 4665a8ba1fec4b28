"""The ends of turns in a batch, and the audit rows of refused asks."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime, timedelta

from agents.core.errors import Denied
from agents.core.ledger import statements
from agents.core.ledger.batch_events import BatchEvents, clone_files_for_source
from agents.core.ledger.database import Answer, Database
from agents.core.ledger.moment import Moment
from agents.core.ledger.statements import INSERT_TURNS, EndingRow, TurnRow, turn_row
from agents.core.ledger.texts import statement, table
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
        """One more, at that place."""
        self.settles[i] = work
        self.returns_budget = self.returns_budget or work.ending.returns_budget
        if work.ending.usage is not None:
            self._used[work.turn.ask.chat_id] = work.ending.usage

    @property
    def may_all_be_first(self) -> bool:
        """Whether each is of another turn, and nothing that is written with it has to be read first."""
        settles = self.settles.values()
        return (
            not self.returns_budget
            and len({work.turn.ask.chat_id for work in settles}) == len(settles)
            and not any(work.turn.ask.source for work in settles)
        )

    def send(self, moment: Moment) -> Answer:
        """End the turns, at least one; the answer says which were open."""
        ends = statements.settle(self._database, self._rows(), moment)
        if self._used:  # also where another process ended the turn
            statements.record_usage(self._database, self._used)
        return ends

    def send_as_first(self, moment: Moment) -> None:
        """End the turns, on PostgreSQL; it fails the transaction where one is not open any more."""
        if self.settles:
            statements.settle_all(self._database, self._rows(), moment)
        if self._used:
            statements.record_usage(self._database, self._used)
        for i, work in self.settles.items():
            self._win(i, work)

    def take(self, ends: Answer) -> None:
        """Which of the turns were open; give back what was counted for asks that never left."""
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
                statements.return_budget(self._database, agent_id, day, chat_id)
        if lost:
            stored = statements.read_ends(self._database, [work.turn.ask.chat_id for work in lost.values()])
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
        """Of two endings of one turn the first stands, in a batch as between batches."""
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


def write_refusals(database: Database, refused: Sequence[tuple[Ask, Denied]], moment: Moment) -> None:
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
