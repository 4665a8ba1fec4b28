"""The ends of turns in a batch."""

from collections.abc import Sequence

from agents.ledger import statements
from agents.ledger.batch_events import BatchEvents
from agents.ledger.batch_files import hand_files_back
from agents.ledger.database import Answer, Database
from agents.ledger.statements import EndingRow, Moment
from agents.ledger.work import Result, Settle
from agents.types import Outcome, SettledTurn
from kit import sql


class Ends:
    """`settles` by their place in the batch; their results go to `results`, and what is to be told to `events`.

    `gives_back`: one of them uncounts its ask.
    """

    def __init__(self, database: Database, events: BatchEvents, results: list[Result]) -> None:
        self.settles: dict[int, Settle] = {}
        self.gives_back = False
        self._database = database
        self._events = events
        self._results = results

    def add(self, i: int, work: Settle) -> None:
        """One more, at that place."""
        self.settles[i] = work
        self.gives_back = self.gives_back or work.ending.gives_back

    @property
    def may_all_be_first(self) -> bool:
        """Whether each is of another turn, and nothing that is written with it has to be read first."""
        settles = self.settles.values()
        return (
            not self.gives_back
            and len({work.turn.ask.chat_id for work in settles}) == len(settles)
            and not any(work.turn.ask.source for work in settles)
        )

    def send(self, moment: Moment) -> Answer:
        """End the turns, at least one; the answer says which were open."""
        return statements.settle(self._database, self._rows(), moment)

    def send_as_first(self, moment: Moment) -> None:
        """End the turns, on PostgreSQL; it fails the transaction where one is not open any more."""
        if self.settles:
            statements.settle_all(self._database, self._rows(), moment)
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
            if work.ending.gives_back and day is not None:
                statements.give_back(self._database, agent_id, day, chat_id)
        if lost:
            stored = statements.read_ends(self._database, [work.turn.ask.chat_id for work in lost.values()])
            for i, work in lost.items():
                outcome, reason = stored.get(work.turn.ask.chat_id, (Outcome.FAILED, "deleted"))
                self._results[i] = _as_stored(work, outcome or Outcome.FAILED, reason)

    def write_also(self) -> None:
        """Write what surfaces keep of the ends, ordered by chat id: the journal locks its rows in that order."""
        writes: list[sql.Query] = []
        ends = list(self.settles.items())
        if len(ends) > 1:
            ends.sort(key=lambda end: end[1].turn.ask.chat_id)
        for i, work in ends:
            settled = self._results[i]
            if work.also is not None and isinstance(settled, SettledTurn):
                writes += work.also(settled)
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
            ending = hand_files_back(self._database, ask, ask.source, ending)
        self._results[i] = SettledTurn(ending.outcome, ending.reason, ending.text, work.has_also)
        self._events.settled(work.turn, ending)


def _as_stored(work: Settle, outcome: str, reason: str) -> SettledTurn:
    """The winner's end; its text is only known here when it says the same."""
    text = work.ending.text if outcome == work.ending.outcome else ""
    return SettledTurn(Outcome(outcome), reason, text, work.has_also)
