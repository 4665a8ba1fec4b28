"""One batch of the ledger: decides and writes the given work in one transaction."""

from collections.abc import Collection, Sequence

from django.db import DataError
from msgspec import Struct

from accounts.models import Credential
from agents.core import trust
from agents.core.admission import AdmissionState, AgentState, decide_ask
from agents.core.errors import Denied, FileGone, MustWait, Unavailable
from agents.core.ledger import statements
from agents.core.ledger.batch_events import (
    EXPECT_NO_WEBHOOKS,
    LISTENERS,
    BatchEvents,
    clone_files_for_source,
    clone_files_for_target,
    files_are_there,
)
from agents.core.ledger.database import Database, Row, StatementResult, thread_database
from agents.core.ledger.refusals import write_refusals
from agents.core.ledger.state import read_state
from agents.core.ledger.statements import CallerSpendingRow, QueuedRow, TurnRow
from agents.core.ledger.texts import Statement
from agents.core.ledger.work import Result, Settle, SortedWork, Work
from agents.core.types import Ask, OpenTurn, SettledTurn
from agents.models.choices import NO_CONNECTION, Outcome, TurnFailure
from agents.transcript.announcements import AddressedMessage
from kit import sql

DIVISION_BY_ZERO = "22012"  # see `agents.core.ledger.texts.checked`


class Committed(Struct, frozen=True):
    """A committed batch: results in the order of the work, and messages to send to processes now."""

    results: Sequence[Result]
    messages: Sequence[AddressedMessage] = ()


def commit(batch: Sequence[Work], *, home: str, is_retry: bool = False) -> Committed:
    """Do the work of a batch in one transaction; returns the results, and the messages to send.

    Turns are ended before asks are decided, so that an ask can take a claim that the same batch releases.
    """
    database = thread_database()
    doing = _Batch(database, SortedWork(batch, is_retry=is_retry), home)
    try:
        with database.turn, database:
            if doing.may_run_at_once:
                doing.run_at_once()
            else:
                doing.run()
    except DataError as failure:
        if sql.state_of(failure) != DIVISION_BY_ZERO or not doing.may_run_at_once:
            raise
        # Everything was rolled back. Start again with a new `_Batch`; `run` reads before it writes.
        doing = _Batch(database, SortedWork(batch, is_retry=is_retry), home)
        with database:
            doing.run()
    if doing.watchers is None:
        return Committed(doing.results)
    return Committed(doing.results, doing.events.announce(doing.watchers, database.now, doing.results))


class _Batch:
    """One batch and its transaction. `results`: one for each work item, in the order of the batch.

    `watchers`: the processes whose operators watch sessions of the batch; None if there can be none.
    """

    def __init__(self, database: Database, work: SortedWork, home: str) -> None:
        self._database = database
        self._work = work
        self._home = home
        self.may_run_at_once = database.is_postgresql and work.only_ends and not database.webhooks_listen
        self.events = BatchEvents(work.events)
        self.watchers: StatementResult | None = None
        self.results: list[Result] = [None] * work.size

    def run_at_once(self) -> None:
        """End turns and record events in one round trip to PostgreSQL.

        A statement fails the transaction if a turn is no longer open, or if a webhook subscription is live.
        Then nothing is written, and `commit` calls `run` for the batch.
        """
        database, work = self._database, self._work
        database.lock_sessions(work.session_ids)
        self.events.is_watched = True
        if work.settles:
            self._send_ends(statements.SETTLE_ALL)
            self._take_ends([(one.turn.ask.chat_id, None, None) for one in work.settles.values()])
        else:
            database.send(EXPECT_NO_WEBHOOKS)
        self._write_events()

    def run(self) -> None:
        """Do all work of the batch, in the order that locks and budgets need.

        Statements are sent before any result is fetched, so PostgreSQL mostly needs two round trips; `run_at_once`
        needs one.
        """
        database, work = self._database, self._work
        if work.touched:
            # Credentials are locked before sessions, as in a revocation (docs/adr/0065).
            with database.for_django():
                Credential.touch(work.touched)
        sessions_of: dict[str, int] = {}
        if chat_ids := [one.chat_id for one in work.releases if one.chat_id] if work.releases else []:
            sessions_of = dict(database.send(statements.SESSIONS_OF, ids=chat_ids).fetchall())
            work.session_ids.update(sessions_of.values())
        # One statement locks all sessions in the order of their ids, so that two batches cannot deadlock.
        database.lock_sessions(work.session_ids)
        listeners = database.send(LISTENERS)
        # A session that asked may be deleted before its turn ends. FOR KEY SHARE makes only such a deletion wait,
        # and no other batch, so these locks need no order.
        sources = database.send(statements.HOLD_SESSIONS, ids=work.source_ids) if work.source_ids else None
        # Turns are ended before the asks are decided: an ask may take a claim that one of these ends releases.
        ends = self._send_ends(statements.SETTLE) if work.settles else None
        if work.returns_budget:
            self._take_answers(listeners, sources, ends)  # these ends return budget, which admission must read
        if work.releases:
            self._release(chat_ids)
        if work.withdrawn:
            self._withdraw(work.withdrawn)
        if work.is_retry and work.admits:
            self._skip_written()
        state = read_state(database, work.admits.values()) if work.admits else None
        if not work.returns_budget:  # fetching these results before `read_state` would cost one more round trip
            self._take_answers(listeners, sources, ends)
        for late in work.releases:
            if late.late and late.chat_id in sessions_of:
                self.events.late(sessions_of[late.chat_id], late.chat_id, late.late)
        refused = self._admit(state) if state is not None else []
        if work.positions:
            database.send(statements.DELETE_POSITIONS, ids=work.positions)
        for deny in work.denies:
            refused.append((deny.ask, deny.denied))
        if refused:
            write_refusals(database, refused)
            for ask, denied in refused:
                self.events.denied(ask, denied)
        self._write_events()

    def _take_answers(
        self, listeners: StatementResult, sources: StatementResult | None, ends: StatementResult | None
    ) -> None:
        is_watched, webhooks_listen = listeners.fetchall()[0]
        self.events.is_watched, self.events.is_subscribed = bool(is_watched), bool(webhooks_listen)
        self._database.webhooks_listen = self.events.is_subscribed
        if sources is not None:
            self._work.drop_sources_except({row[0] for row in sources.fetchall()})
        if ends is not None:
            self._take_ends(ends.fetchall())

    def _send_ends(self, settling: Statement) -> StatementResult:
        """End the turns, at least one. Of two endings of one turn the first stands, as it does between batches."""
        rows: dict[str, tuple[object, ...]] = {}
        for settle in self._work.settles.values():
            chat_id, ending = settle.turn.ask.chat_id, settle.ending
            if chat_id not in rows:
                said = None if ending.outcome is Outcome.COMPLETED else statements.shorten_failure(ending.text)
                rows[chat_id] = (
                    *(chat_id, ending.outcome, ending.reason, ending.latency_ms, 1 if ending.keeps_claim else 0),
                    *(said, ending.waited_ms, ending.delivered_ms, ending.first_piece_ms),
                )
        ended = self._database.send(settling, endings=[*rows.values()], turns=len(rows))
        if self._work.used:  # also for turns that another process ended
            statements.record_usage(self._database, self._work.used)
        return ended

    def _take_ends(self, ended: Sequence[Row]) -> None:
        """Set the results of the ends. `ended`: chat id, agent id and day of usage of each turn that was open."""
        database, settles = self._database, self._work.settles
        won: dict[str, Row] = {}
        lost: dict[int, str] = {}
        for row in ended:
            won[row[0]] = row
        for i, settle in settles.items():
            ask, ending = settle.turn.ask, settle.ending
            count = won.pop(ask.chat_id, None)
            if count is None:
                lost[i] = ask.chat_id
                continue
            if ask.source is not None:
                ending = clone_files_for_source(database, ask, ask.source, ending)
            self.results[i] = SettledTurn(
                ending.outcome,
                ending.reason,
                ending.text,
                settle.has_extra_writes,
                usage=ending.usage,
                is_unsent=ending.returns_budget,
            )
            self.events.settled(settle.turn, ending)
            if ending.returns_budget and count[2] is not None:
                statements.return_budget(database, *count)
        if lost:
            stored = statements.read_ends(database, [*lost.values()])
            for i, chat_id in lost.items():
                outcome, reason = stored.get(chat_id, (Outcome.FAILED, "deleted"))
                self.results[i] = _as_stored(settles[i], outcome or Outcome.FAILED, reason)

    def _release(self, chat_ids: Sequence[str]) -> None:
        database, work = self._database, self._work
        if chat_ids:
            database.send(statements.RELEASE_TURNS, ids=chat_ids)
        if work.used and not work.settles:  # otherwise `_send_ends` recorded it
            statements.record_usage(database, work.used)
        if session_ids := [one.session_id for one in work.releases if one.session_id is not None]:
            database.send(statements.RELEASE_SESSIONS, ids=session_ids)

    def _withdraw(self, asks: Sequence[Ask]) -> Collection[str]:
        """End the asks that have an open row, and return their budget; returns the chat ids that have a row."""
        database = self._database
        written = statements.read_ends(database, [ask.chat_id for ask in asks])
        unsent = [
            (chat_id, Outcome.FAILED, TurnFailure.NOT_DELIVERED, None, 0, None, None, None, None)
            for chat_id, (outcome, _) in written.items()
            if outcome is None
        ]
        if unsent:
            for ended in database.send(statements.SETTLE, endings=unsent).fetchall():
                statements.return_budget(database, *ended)
        return written

    def _skip_written(self) -> None:
        """End the asks that an earlier try wrote, as not sent: its commit succeeded, but the answer was lost.

        The event loop never got such a turn, so no prompt was sent. The result of the ask is Unavailable.
        """
        admits = self._work.admits
        written = self._withdraw([one.ask for one in admits.values()])
        for i, one in list(admits.items()):
            if one.ask.chat_id in written:
                self.results[i] = Unavailable()
                del admits[i]

    def _admit(self, state: AdmissionState) -> list[tuple[Ask, Denied]]:
        """Decide the asks in order, and write the admitted and the newly queued ones; returns the denied asks."""
        database = self._database
        refused: list[tuple[Ask, Denied]] = []
        turns: list[TurnRow] = []
        queued: list[QueuedRow] = []
        writes: list[sql.Query] = []
        spent: dict[int, int] = {}  # by agent
        spent_own: dict[tuple[int, int], int] = {}  # by agent and caller or group with a budget
        for i, admit in self._work.admits.items():
            ask = admit.ask
            there = not ask.files or files_are_there(database, ask)
            decided = decide_ask(ask, state, in_queue=admit.in_queue) if there else FileGone()
            if ask.message_key and isinstance(decided, AgentState | MustWait):
                key = ask.target.session_id, ask.caller_id, ask.message_key
                # An identical ask of this batch joins this one.
                state.open_asks[key] = ask.chat_id, ask.task_id, self._home
            if isinstance(decided, AgentState):
                self.results[i] = turn = self._open_turn(ask, decided)
                self.events.admitted(turn)
                turns.append(statements.open_row(database, turn, self._home))
                writes += ask.writes
                if (agent_id := ask.target.agent_id) is not None:
                    spent[agent_id] = spent.get(agent_id, 0) + 1
                    if (own := (agent_id, ask.caller_id)) in state.callers:
                        spent_own[own] = spent_own.get(own, 0) + 1
                    for group_id in state.groups.get(own, ()) if state.groups else ():
                        spent_own[agent_id, group_id] = spent_own.get((agent_id, group_id), 0) + 1
                continue
            self.results[i] = decided
            if isinstance(decided, Denied):
                refused.append((ask, decided))
            elif isinstance(decided, MustWait):
                self._work.positions.discard(ask.chat_id)
                if decided.is_new:
                    queued.append(statements.queued_row(database, ask, decided.wait_s, self._home))
        if spent:
            statements.spend(database, spent)
        if turns:
            database.insert(statements.INSERT_TURNS, turns)
        if writes:
            database.send_queries(writes)
        if spent_own:
            counted = [CallerSpendingRow(*own, database.day, times) for own, times in sorted(spent_own.items())]
            database.insert(statements.SPEND_OF_CALLERS, counted)
        if queued:
            database.insert(statements.INSERT_QUEUED, queued)
        return refused

    def _open_turn(self, ask: Ask, asked: AgentState) -> OpenTurn:
        is_own = trust.is_own(ask, asked.owner_id)
        turn = OpenTurn(
            ask=ask,
            connection_id=asked.connection_id or NO_CONNECTION,
            link_process=asked.process_id or self._home,
            text=ask.question,
            isolated=trust.isolates(is_own=is_own, is_isolated_agent=bool(asked.isolated)),
            is_own=is_own,
            link=asked.link,
        )
        return clone_files_for_target(self._database, turn) if ask.files else turn

    def _write_events(self) -> None:
        """Write the transcript events, the webhook deliveries and the extra writes of surfaces."""
        self.watchers = self.events.write(self._database)
        settles = self._work.settles
        if not settles:
            return
        writing = [(one.turn.ask.chat_id, i) for i, one in settles.items() if one.extra_writes is not None]
        writes: list[sql.Query] = []
        for _, i in sorted(writing):  # by chat id: the journal of tasks locks its rows in that order
            settled, extra_writes = self.results[i], settles[i].extra_writes
            if extra_writes is not None and isinstance(settled, SettledTurn):
                writes += extra_writes(settled)
        if writes:
            self._database.send_queries(writes)


def _as_stored(work: Settle, outcome: str, reason: str) -> SettledTurn:
    """The stored end of a turn that had ended before; its text is known only if both ends have one outcome."""
    ending = work.ending
    text = ending.text if outcome == ending.outcome else ""
    is_unsent = ending.returns_budget and (outcome, reason) == (ending.outcome, ending.reason)
    return SettledTurn(
        Outcome(outcome), reason, text, work.has_extra_writes, usage=ending.usage, is_unsent=is_unsent
    )
