"""One batch of the ledger: decides and writes the given work in one transaction."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from django.db.models import F, Q
from msgspec.structs import replace

from accounts.models import Credential
from agents.admission import AdmissionState, admit
from agents.announcing import Addressed
from agents.errors import Denied, FileGone, Unavailable, Waits
from agents.ledger import statements
from agents.ledger.batch_events import Announcement, BatchEvents, ask_for_listeners, write_events
from agents.ledger.database import Answer, Database, thread_database
from agents.ledger.state import StateReader
from agents.ledger.statements import CallerSpendingRow, EndingRow, Moment, QueuedRow
from agents.ledger.work import Admit, Deny, Record, Release, Result, Settle, Touch, Withdraw, Work
from agents.models import File
from agents.transcript.mentions import MAX_FILES, clone_into, mentions, readable, rewrite
from agents.types import NO_CONNECTION, Ask, Ending, Failure, OpenTurn, Outcome, SettledTurn
from kit import sql

MAX_FILES_LOOKED_UP = 500  # of the numbers a reply of a mebibyte can name


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed batch: results in the order of the work, and messages to send to processes now."""

    results: Sequence[Result]
    messages: Sequence[Addressed]


def commit(batch: Sequence[Work], *, home: str, is_retry: bool = False) -> Committed:
    """Do a batch in one transaction.

    Endings go before asks, so that an ask finds the claim free which the same batch releases.
    """
    database = thread_database()
    with database.django_errors, database:
        doing = _Batch(database, batch, home, is_retry=is_retry)
        announcement = doing.run()
    results = [doing.results.get(i) for i in range(len(batch))]
    if announcement.watchers:
        results = [_watched(result, announcement) for result in results]
    return Committed(results, announcement.messages)


def _watched(result: Result, announcement: Announcement) -> Result:
    """An open turn whose session is watched knows by which processes: its chunks go there too."""
    if not isinstance(result, OpenTurn):
        return result
    session_id = result.ask.target.session_id
    public_id, watchers = announcement.public_ids.get(session_id, ""), announcement.watchers.get(session_id, ())
    return replace(result, session_public_id=public_id, watchers=watchers)


class _Batch:
    """A batch in its transaction. `results`, `settles` and `admits` are by place in the batch."""

    def __init__(self, database: Database, batch: Sequence[Work], home: str, *, is_retry: bool) -> None:
        self._database = database
        self._home = home
        self._is_retry = is_retry
        self._settles: dict[int, Settle] = {}
        self._admits: dict[int, Admit] = {}
        self._skipped: list[Admit] = []
        self._denies: list[Deny] = []
        self._withdraws: list[Withdraw] = []
        self._releases: list[Release] = []
        self._touches: list[Touch] = []
        self._events = BatchEvents()
        self._turns: list[OpenTurn] = []
        self._spent: dict[int, int] = {}  # by agent
        self._spent_own: dict[tuple[int, int], int] = {}  # by agent and caller
        self.results: dict[int, Result] = {}
        for i, work in enumerate(batch):
            match work:
                case Admit():
                    self._admits[i] = work
                case Settle():
                    self._settles[i] = work
                case Deny():
                    self._denies.append(work)
                case Withdraw():
                    self._withdraws.append(work)
                case Release():
                    self._releases.append(work)
                case Record():
                    self._events.events.append(work.event)
                case Touch():
                    self._touches.append(work)

    def run(self) -> Announcement:
        """Do all work of the batch, in the order that locks and budgets need.

        Statements are sent before any answer is taken, so PostgreSQL mostly needs two round trips.
        """
        database = self._database
        if self._touches:
            with database.for_django():
                Credential.touch(
                    [work.credential_id for work in self._touches]
                )  # before sessions, as a revocation
        late = [work.chat_id for work in self._releases if work.chat_id]
        late_sessions = statements.sessions_of(database, late) if late else {}
        self._moment = self._lock(late_sessions.values())
        listeners = ask_for_listeners(database)
        held = self._hold_sources()
        ends = self._send_ends()
        gives_back = any(work.ending.gives_back for work in self._settles.values())
        if gives_back:  # admission must read what these ends give back
            self._take_answers(listeners, held, ends)
        self._release()
        if self._withdraws:
            self._withdraw([work.ask for work in self._withdraws])
        if self._is_retry and self._admits:
            self._skip_written()
        reader = StateReader(database, [work.ask for work in self._admits.values()], self._moment)
        if not gives_back:  # else one more round trip
            self._take_answers(listeners, held, ends)
        self._keep_late_replies(late_sessions)
        refused = self._admit(reader.read()) if self._admits else []
        self._leave_lines()
        refused += [(work.ask, work.denied) for work in self._denies]
        if refused:
            statements.write_refusals(database, refused, self._moment)
        for ask, denied in refused:
            self._events.denied(ask, denied)
        self._write_turns()
        announcement = write_events(database, self._events, self._moment)
        self._write_also()
        return announcement

    def _take_answers(self, listeners: Answer, held: Answer | None, ends: Answer | None) -> None:
        self._events.load_listeners(listeners)
        self._drop_gone_sources(held)
        self._take_ends(ends)

    def _lock(self, late: Iterable[int]) -> Moment:
        """Lock the sessions of all this work, in one order."""
        sessions = [*late]
        sessions += [work.session_id for work in self._releases if work.session_id is not None]
        sessions += [work.turn.ask.target.session_id for work in self._settles.values()]
        asked: list[Admit | Deny | Withdraw] = [*self._admits.values(), *self._denies, *self._withdraws]
        sessions += [work.ask.target.session_id for work in asked]
        return Moment(self._database, sessions)

    def _hold_sources(self) -> Answer | None:
        """The sessions that asks came from: one may be deleted while its question is out."""
        asks = [work.ask for work in self._admits.values()] + [work.ask for work in self._denies]
        asks += [work.turn.ask for work in self._settles.values()]
        sources = {ask.source.session_id for ask in asks if ask.source is not None}
        return statements.hold_sessions(self._database, sources) if sources else None

    def _drop_gone_sources(self, held: Answer | None) -> None:
        """A turn goes on without the session that asked, when that is gone."""
        if held is None:
            return
        there = {row[0] for row in held.fetchall()}
        self._denies = [replace(work, ask=_without_gone_source(work.ask, there)) for work in self._denies]
        for i, work in self._admits.items():
            self._admits[i] = replace(work, ask=_without_gone_source(work.ask, there))
        for i, settle in self._settles.items():
            turn = replace(settle.turn, ask=_without_gone_source(settle.turn.ask, there))
            self._settles[i] = replace(settle, turn=turn)

    def _send_ends(self) -> Answer | None:
        """End turns; of two endings of one turn the first stands, in a batch as between batches."""
        first: dict[str, EndingRow] = {}
        for work in self._settles.values():
            chat_id, ending = work.turn.ask.chat_id, work.ending
            outcome, keeps_claim = ending.outcome.value, int(ending.keeps_claim)
            first.setdefault(chat_id, EndingRow(chat_id, outcome, ending.reason, ending.latency_ms, keeps_claim))
        return statements.settle(self._database, list(first.values()), self._moment) if first else None

    def _take_ends(self, ends: Answer | None) -> None:
        if ends is None:
            return
        won = {row[0]: (row[1], row[2]) for row in ends.fetchall()}
        lost: dict[int, Settle] = {}
        for i, work in self._settles.items():
            chat_id = work.turn.ask.chat_id
            if chat_id not in won:
                lost[i] = work
                continue
            agent_id, day = won.pop(chat_id)
            ending = _hand_files_back(self._database, work.turn.ask, work.ending)
            self.results[i] = SettledTurn(ending.outcome, ending.reason, ending.text, work.has_also)
            self._events.settled(work.turn, ending)
            if ending.gives_back and day is not None:
                statements.give_back(self._database, agent_id, day, chat_id)
        if lost:
            stored = statements.read_ends(self._database, [work.turn.ask.chat_id for work in lost.values()])
            for i, work in lost.items():
                outcome, reason = stored.get(work.turn.ask.chat_id, (Outcome.FAILED, "deleted"))
                self.results[i] = _as_stored(work, outcome or Outcome.FAILED, reason)

    def _release(self) -> None:
        if not self._releases:
            return
        if chat_ids := [work.chat_id for work in self._releases if work.chat_id]:
            statements.release_turns(self._database, chat_ids, self._moment)
        if session_ids := [work.session_id for work in self._releases if work.session_id is not None]:
            statements.release_sessions(self._database, session_ids, self._moment)

    def _keep_late_replies(self, sessions: Mapping[str, int]) -> None:
        for work in self._releases:
            if work.chat_id and work.late and work.chat_id in sessions:
                self._events.late(sessions[work.chat_id], work.chat_id, work.late)

    def _withdraw(self, asks: Sequence[Ask]) -> Collection[str]:
        """End those of the asks that have an open row, and uncount them. Returns the chat ids that have a row."""
        written = statements.read_ends(self._database, [ask.chat_id for ask in asks])
        unsent = [
            EndingRow(chat_id, Outcome.FAILED, Failure.NOT_DELIVERED, None, 0)
            for chat_id, (outcome, _) in written.items()
            if outcome is None
        ]
        if unsent:
            for chat_id, agent_id, day in statements.settle(self._database, unsent, self._moment).fetchall():
                statements.give_back(self._database, agent_id, day, chat_id)
        return written

    def _skip_written(self) -> None:
        """End asks unsent whose row an earlier try wrote: its commit happened, but its answer was lost."""
        written = self._withdraw([work.ask for work in self._admits.values()])
        for i, work in list(self._admits.items()):
            if work.ask.chat_id in written:
                self.results[i] = Unavailable()
                self._skipped.append(self._admits.pop(i))

    def _admit(self, state: AdmissionState) -> list[tuple[Ask, Denied]]:
        """Decide the asks in order; those denied, with why."""
        refused: list[tuple[Ask, Denied]] = []
        queued: list[QueuedRow] = []
        for i, work in self._admits.items():
            ask = work.ask
            there = not ask.files or _files_are_there(self._database, ask)
            refusal = admit(ask, state, in_line=work.in_line) if there else FileGone()
            if ask.message_key and (refusal is None or isinstance(refusal, Waits)):
                key = ask.target.session_id, ask.caller_id, ask.message_key
                state.open_asks[key] = ask.chat_id, ask.task_id, self._home  # another of this batch joins it
            if refusal is None:
                self.results[i] = turn = self._open_turn(ask, state)
                self._turns.append(turn)
                self._count(ask, state)
                self._events.admitted(turn)
                continue
            self.results[i] = refusal
            if isinstance(refusal, Denied):
                refused.append((ask, refusal))
            elif isinstance(refusal, Waits) and refusal.is_new:
                queued.append(statements.queued_row(ask, refusal.wait_s, self._home, self._moment))
        if queued:
            self._database.insert(statements.INSERT_QUEUED, queued)
        return refused

    def _count(self, ask: Ask, state: AdmissionState) -> None:
        agent_id = ask.target.agent_id
        if agent_id is None:
            return
        self._spent[agent_id] = self._spent.get(agent_id, 0) + 1
        if state.find_spending(ask) is not None:
            key = agent_id, ask.caller_id
            self._spent_own[key] = self._spent_own.get(key, 0) + 1

    def _open_turn(self, ask: Ask, state: AdmissionState) -> OpenTurn:
        asked = state.find(ask)
        assert asked is not None  # noqa: S101  it was just admitted
        turn = OpenTurn(
            ask=ask,
            connection_id=NO_CONNECTION if asked.is_remote else asked.connection_id or NO_CONNECTION,
            link_process=self._home if asked.is_remote else asked.process_id or "",
            text=ask.question,
            isolated=asked.isolated,
            is_remote=asked.is_remote,
        )
        return _hand_files_over(self._database, turn) if ask.files else turn

    def _write_turns(self) -> None:
        """Write admitted asks, and count them: for agents, and for callers who have a budget of their own."""
        if not self._turns:
            return
        if self._spent:
            statements.spend(self._database, self._spent, self._moment)
        rows = [statements.open_row(turn, self._home, self._moment) for turn in self._turns]
        self._database.insert(statements.INSERT_TURNS, rows)
        if own := sorted(self._spent_own.items()):
            counted = [CallerSpendingRow(*key, self._moment.day, times) for key, times in own]
            self._database.insert(statements.SPEND_OF_CALLERS, counted)

    def _leave_lines(self) -> None:
        """Delete the queue rows of asks that were decided or withdrawn.

        In a retried batch a new ask may have one too, from a commit whose answer was lost.
        """
        decided: list[Admit | Deny] = [*self._skipped, *self._denies]
        decided += [work for i, work in self._admits.items() if not isinstance(self.results[i], Waits)]
        left = [work.ask.chat_id for work in decided if work.in_line or (self._is_retry and work.ask.queues)]
        left += [work.ask.chat_id for work in self._withdraws if work.ask.queues]
        if left:
            statements.delete_places(self._database, left)

    def _write_also(self) -> None:
        """Write what surfaces keep of the ends, ordered by chat id: the journal locks its rows in that order."""
        writes: list[sql.Query] = []
        for i, work in sorted(self._settles.items(), key=lambda item: item[1].turn.ask.chat_id):
            settled = self.results[i]
            if work.also is not None and isinstance(settled, SettledTurn):
                writes += work.also(settled)
        if writes:
            with self._database.for_django():
                sql.rows_of_each(writes)


def _without_gone_source(ask: Ask, there: Collection[int]) -> Ask:
    return ask if ask.source is None or ask.source.session_id in there else replace(ask, source=None)


def _as_stored(work: Settle, outcome: str, reason: str) -> SettledTurn:
    """The winner's end; its text is only known here when it says the same."""
    text = work.ending.text if outcome == work.ending.outcome else ""
    return SettledTurn(Outcome(outcome), reason, text, work.has_also)


def _files_are_there(database: Database, ask: Ask) -> bool:
    """Whether every file the question names is still there for its caller."""
    with database.for_django():
        return readable(ask.files, ask.caller_id).keys() >= set(ask.files)


def _hand_files_over(database: Database, turn: OpenTurn) -> OpenTurn:
    """The question with the ids its files have in the session that is asked.

    Raises:
        FilesRefused: one went since `_files_are_there`; the batch is tried again.
    """
    ask = turn.ask
    with database.for_django():
        ids = clone_into(ask.target.session_id, ask.files, ask.caller_id)
    return replace(turn, text=rewrite(turn.text, ids))


def _hand_files_back(database: Database, ask: Ask, ending: Ending) -> Ending:
    """The reply with the ids its files have where it was asked from.

    Only files of the answering session go, its owner's and those its caller brought: whatever else the agent can
    name, what other callers brought too, is not its caller's to have. Of more than MAX_FILES the first: a reply
    never fails to end its turn.
    """
    if ending.outcome is not Outcome.COMPLETED or ask.source is None or "fileId=" not in ending.text:
        return ending
    with database.for_django():
        return _with_files_of_source(ask, ask.source.session_id, ending)


def _with_files_of_source(ask: Ask, source_id: int, ending: Ending) -> Ending:
    named = mentions(ending.text)[:MAX_FILES_LOOKED_UP]
    open_to_caller = Q(uploader_id=F("session__owner_id")) | Q(uploader_id=ask.caller_id)
    own = File.objects.live().filter(open_to_caller, session_id=ask.target.session_id, pk__in=named)
    owners = dict(own.values_list("pk", "session__owner_id"))
    if not owners:
        return ending
    first = [number for number in named if number in owners][:MAX_FILES]
    ids = clone_into(source_id, first, owners[first[0]])
    return replace(ending, text=rewrite(ending.text, ids))
