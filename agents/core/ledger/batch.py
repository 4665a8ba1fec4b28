"""One batch of the ledger: decides and writes the given work in one transaction."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass

from django.db import DataError
from msgspec.structs import replace

from accounts.models import Credential
from agents.core import trust
from agents.core.admission import AdmissionState, decide_ask
from agents.core.errors import Denied, FileGone, MustWait, Unavailable
from agents.core.ledger import statements
from agents.core.ledger.batch_events import (
    EXPECT_NO_WEBHOOKS,
    LISTENERS,
    Announcement,
    BatchEvents,
    clone_files_for_target,
    files_are_there,
    write_events,
)
from agents.core.ledger.database import Database, StatementResult, thread_database
from agents.core.ledger.ends import EndingRow, Ends, read_ends, record_usage, return_budget, settle, write_refusals
from agents.core.ledger.state import StateReader
from agents.core.ledger.statements import CallerSpendingRow, DecisionTime, QueuedRow
from agents.core.ledger.work import Admit, Deny, Record, Release, Result, Settle, Touch, Withdraw, Work
from agents.core.types import Ask, OpenTurn
from agents.models.choices import NO_CONNECTION, Outcome, TurnFailure
from agents.transcript.announcements import AddressedMessage
from kit import sql

DIVISION_BY_ZERO = "22012"  # see `agents.core.ledger.texts.checked`


@dataclass(frozen=True, slots=True)
class Committed:
    """A committed batch: results in the order of the work, and messages to send to processes now."""

    results: Sequence[Result]
    messages: Sequence[AddressedMessage]


def commit(batch: Sequence[Work], *, home: str, is_retry: bool = False) -> Committed:
    """Do a batch in one transaction.

    Endings go before asks, so that an ask finds the claim free which the same batch releases.
    """
    database = thread_database()
    doing = _Batch(database, batch, home, is_retry=is_retry)
    if database.is_postgresql and doing.may_run_at_once:
        try:
            return _committed(database, doing, doing.run_at_once)
        except DataError as failure:
            if sql.state_of(failure) != DIVISION_BY_ZERO:
                raise
        doing = _Batch(database, batch, home, is_retry=is_retry)
    return _committed(database, doing, doing.run)


def _committed(database: Database, doing: "_Batch", run: Callable[[], None]) -> Committed:
    with database.django_errors:
        with database:
            run()
        announcement = doing.announcement() if doing.watchers else None
    if announcement is None or not announcement.watchers:
        return Committed(doing.results, ())
    return Committed([_watched(result, announcement) for result in doing.results], announcement.messages)


def _watched(result: Result, announcement: Announcement) -> Result:
    """Add to an open turn the processes whose operators watch its session: its chunks go there too."""
    if not isinstance(result, OpenTurn):
        return result
    session_id = result.ask.target.session_id
    public_id, watchers = announcement.public_ids.get(session_id, ""), announcement.watchers.get(session_id, ())
    return replace(result, session_public_id=public_id, watchers=watchers)


class _Batch:
    """A batch in its transaction. `results` and `_admits` are by place in the batch."""

    def __init__(self, database: Database, batch: Sequence[Work], home: str, *, is_retry: bool) -> None:
        self._database = database
        self._home = home
        self._is_retry = is_retry
        self._admits: dict[int, Admit] = {}
        self._skipped: list[Admit] = []
        self._denies: list[Deny] = []
        self._withdraws: list[Withdraw] = []
        self._releases: list[Release] = []
        self._touches: list[Touch] = []
        self._events = BatchEvents()
        self.watchers: StatementResult | None = None  # the processes with operators, where there may be some
        self._turns: list[OpenTurn] = []
        self._sessions: set[int] = set()  # that this is about
        self._sources: set[int] = set()  # that asks came from
        self._leaves_lines = is_retry
        self._spent: dict[int, int] = {}  # by agent
        self._spent_own: dict[tuple[int, int], int] = {}  # by agent and caller
        self.results: list[Result] = [None] * len(batch)
        self._ends = Ends(database, self._events, self.results)
        for i, work in enumerate(batch):
            ask: Ask | None = None
            match work:
                case Admit():
                    self._admits[i], ask = work, work.ask
                    self._leaves_lines = self._leaves_lines or work.in_queue
                case Settle():
                    self._ends.add(i, work)
                    ask = work.turn.ask
                case Deny():
                    self._denies.append(work)
                    ask, self._leaves_lines = work.ask, self._leaves_lines or work.in_queue
                case Withdraw():
                    self._withdraws.append(work)
                    ask, self._leaves_lines = work.ask, True
                case Release():
                    self._releases.append(work)
                    if work.session_id is not None:
                        self._sessions.add(work.session_id)
                case Record():
                    self._events.events.append(work.event)
                case Touch():
                    self._touches.append(work)
            if ask is not None:
                self._sessions.add(ask.target.session_id)
                if ask.source is not None:
                    self._sources.add(ask.source.session_id)

    @property
    def may_run_at_once(self) -> bool:
        """True if it only ends turns and records events, and what it writes depends on nothing that it reads."""
        return (
            not (self._database.webhooks_listen or self._is_retry)
            and len(self._ends.settles) + len(self._events.events) == len(self.results)
            and self._ends.may_all_be_first
        )

    def run_at_once(self) -> None:
        """End turns and record events in one round trip to PostgreSQL.

        A statement fails the transaction where a turn is not open any more, or a webhook subscription is live.
        In that case nothing is written, and `run` does the batch.
        """
        self._moment = DecisionTime(self._database, self._sessions)
        self._database.send(EXPECT_NO_WEBHOOKS, {})
        self._events.is_watched = True
        self._ends.send_as_first(self._moment)
        self._write_events()

    def announcement(self) -> Announcement:
        """The messages to send after the commit to processes with operators of the sessions."""
        assert self.watchers is not None  # noqa: S101  for the type checker: see `commit`
        return self._events.announcement(self.watchers, self._moment)

    def run(self) -> None:
        """Do all work of the batch, in the order that locks and budgets need.

        Statements are sent before any answer is taken, so PostgreSQL mostly needs two round trips. See
        `run_at_once` for one.
        """
        database = self._database
        if self._touches:
            with database.for_django():
                credentials = [work.credential_id for work in self._touches]
                Credential.touch(credentials)  # before sessions, as a revocation
        late = [work.chat_id for work in self._releases if work.chat_id] if self._releases else []
        late_sessions = statements.sessions_of(database, late) if late else {}
        self._sessions.update(late_sessions.values())
        self._moment = DecisionTime(database, self._sessions)  # they are locked now, in one order
        listeners = database.send(LISTENERS, {})
        # One of the sessions that asked may be deleted while its question is out.
        held = statements.lock_sessions_shared(database, self._sources) if self._sources else None
        ends = self._ends.send(self._moment) if self._ends.settles else None
        if returns_budget := self._ends.returns_budget:  # admission must read what these ends give back
            self._take_answers(listeners, held, ends)
        if self._releases:
            self._release()
        if self._withdraws:
            self._withdraw([work.ask for work in self._withdraws])
        if self._is_retry and self._admits:
            self._skip_written()
        reader = StateReader(database, self._admits.values(), self._moment) if self._admits else None
        if not returns_budget:  # else one more round trip
            self._take_answers(listeners, held, ends)
        if late_sessions:
            self._keep_late_replies(late_sessions)
        refused = self._admit(reader.read()) if reader else []
        if self._leaves_lines:
            self._leave_queues()
        refused += [(work.ask, work.denied) for work in self._denies] if self._denies else []
        if refused:
            write_refusals(database, refused, self._moment)
            for ask, denied in refused:
                self._events.denied(ask, denied)
        if self._turns:
            self._write_turns()
        self._write_events()

    def _write_events(self) -> None:
        self.watchers = write_events(self._database, self._events, self._moment)
        if self._ends.settles:
            self._ends.write_extras()

    def _take_answers(
        self, listeners: StatementResult, held: StatementResult | None, ends: StatementResult | None
    ) -> None:
        is_watched, webhooks_listen = listeners.fetchall()[0]
        self._events.is_watched, self._events.is_subscribed = bool(is_watched), bool(webhooks_listen)
        self._database.webhooks_listen = self._events.is_subscribed
        if held is not None:
            self._drop_gone_sources(held)
        if ends is not None:
            self._ends.take(ends)

    def _drop_gone_sources(self, held: StatementResult) -> None:
        """A turn goes on without the session that asked, when that is gone."""
        there = {row[0] for row in held.fetchall()}
        self._denies = [replace(work, ask=_without_gone_source(work.ask, there)) for work in self._denies]
        for i, work in self._admits.items():
            self._admits[i] = replace(work, ask=_without_gone_source(work.ask, there))
        for i, end in self._ends.settles.items():
            turn = replace(end.turn, ask=_without_gone_source(end.turn.ask, there))
            self._ends.settles[i] = replace(end, turn=turn)

    def _release(self) -> None:
        if chat_ids := [work.chat_id for work in self._releases if work.chat_id]:
            statements.release_turns(self._database, chat_ids, self._moment)
        if used := {work.chat_id: work.usage for work in self._releases if work.chat_id and work.usage}:
            record_usage(self._database, used)
        if session_ids := [work.session_id for work in self._releases if work.session_id is not None]:
            statements.release_sessions(self._database, session_ids, self._moment)

    def _keep_late_replies(self, sessions: Mapping[str, int]) -> None:
        for work in self._releases:
            if work.chat_id and work.late and work.chat_id in sessions:
                self._events.late(sessions[work.chat_id], work.chat_id, work.late)

    def _withdraw(self, asks: Sequence[Ask]) -> Collection[str]:
        """End those of the asks that have an open row, and uncount them. Returns the chat ids that have a row."""
        written = read_ends(self._database, [ask.chat_id for ask in asks])
        unsent = [
            EndingRow(chat_id, Outcome.FAILED, TurnFailure.NOT_DELIVERED, None, 0)
            for chat_id, (outcome, _) in written.items()
            if outcome is None
        ]
        if unsent:
            for chat_id, agent_id, day in settle(self._database, unsent, self._moment).fetchall():
                return_budget(self._database, agent_id, day, chat_id)
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
            there = not ask.files or files_are_there(self._database, ask)
            refusal = decide_ask(ask, state, in_queue=work.in_queue) if there else FileGone()
            if ask.message_key and (refusal is None or isinstance(refusal, MustWait)):
                key = ask.target.session_id, ask.caller_id, ask.message_key
                state.open_asks[key] = ask.chat_id, ask.task_id, self._home  # another of this batch joins it
            if refusal is None:
                self.results[i] = turn = self._open_turn(ask, state)
                self._turns.append(turn)
                if (agent_id := ask.target.agent_id) is not None:
                    self._spent[agent_id] = self._spent.get(agent_id, 0) + 1
                    if (own := (agent_id, ask.caller_id)) in state.callers:
                        self._spent_own[own] = self._spent_own.get(own, 0) + 1
                self._events.admitted(turn)
                continue
            self.results[i] = refusal
            if isinstance(refusal, Denied):
                refused.append((ask, refusal))
            elif isinstance(refusal, MustWait) and refusal.is_new:
                queued.append(statements.queued_row(ask, refusal.wait_s, self._home, self._moment))
        if queued:
            self._database.insert(statements.INSERT_QUEUED, queued)
        return refused

    def _open_turn(self, ask: Ask, state: AdmissionState) -> OpenTurn:
        asked = state.find(ask)
        assert asked is not None  # noqa: S101  it was just admitted
        is_own = trust.is_own(ask, asked.owner_id)
        turn = OpenTurn(
            ask=ask,
            connection_id=asked.connection_id or NO_CONNECTION,
            link_process=asked.process_id or self._home,
            text=ask.question,
            isolated=trust.isolates(is_own=is_own, is_isolated_agent=asked.isolated),
            is_own=is_own,
            link=asked.link,
        )
        return clone_files_for_target(self._database, turn) if ask.files else turn

    def _write_turns(self) -> None:
        """Write admitted asks, and count them: for agents, and for callers who have a budget of their own."""
        if self._spent:
            statements.spend(self._database, self._spent, self._moment)
        rows = [statements.open_row(turn, self._home, self._moment) for turn in self._turns]
        self._database.insert(statements.INSERT_TURNS, rows)
        for turn in self._turns:
            if turn.ask.writes:
                self._database.send_queries(turn.ask.writes)
        if self._spent_own:
            own = sorted(self._spent_own.items())
            counted = [CallerSpendingRow(*key, self._moment.day, times) for key, times in own]
            self._database.insert(statements.SPEND_OF_CALLERS, counted)

    def _leave_queues(self) -> None:
        """Delete the queue rows of asks that were decided or withdrawn.

        A new ask of a retried batch may have a position too, from a commit whose answer was lost.
        """
        decided: list[Admit | Deny] = [*self._skipped, *self._denies]
        decided += [work for i, work in self._admits.items() if not isinstance(self.results[i], MustWait)]
        left = [work.ask.chat_id for work in decided if work.in_queue or (self._is_retry and work.ask.queues)]
        left += [work.ask.chat_id for work in self._withdraws if work.ask.queues]
        if left:
            statements.delete_positions(self._database, left)


def _without_gone_source(ask: Ask, there: Collection[int]) -> Ask:
    return ask if ask.source is None or ask.source.session_id in there else replace(ask, source=None)
