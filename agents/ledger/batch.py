"""One batch of the ledger: everything that waited, decided in order, in one transaction."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from django.db import transaction

from accounts.models import Credential
from agents import admission
from agents.announcing import Addressed
from agents.errors import Denied, FileGone, Unavailable, Waits
from agents.ledger import statements
from agents.ledger.handing import handed_back, handed_over, may_hand_on
from agents.ledger.house import read_house
from agents.ledger.refusals import write_refusals
from agents.ledger.rows import GRACE, Moment, open_row, queued_row
from agents.ledger.sources import without_gone
from agents.ledger.statements import EndingRow, QueuedRow
from agents.ledger.telling import Notes, Told, write
from agents.ledger.work import Admit, Deny, Record, Release, Result, Settle, Touch, Withdraw, Work
from agents.types import NO_CONNECTION, Ask, Failure, OpenTurn, Outcome, SettledTurn
from kit import sql


@dataclass(frozen=True, slots=True)
class Committed:
    """A batch as it was done: results in the order of the work, and messages to carry now."""

    results: Sequence[Result]
    messages: Sequence[Addressed]


def commit(batch: Sequence[Work], *, home: str, is_retry: bool = False) -> Committed:
    """Do a batch in one transaction.

    Endings go before asks, so that an ask finds the claim free which the same batch releases.
    """
    results: dict[int, Result] = {}
    notes = Notes([work.event for work in batch if isinstance(work, Record)])
    with transaction.atomic():
        if touched := [work.credential_id for work in batch if isinstance(work, Touch)]:
            Credential.touch(touched)  # before sessions, as a revocation
        sessions_of_late = statements.sessions_of(_chat_ids(batch)) if _chat_ids(batch) else {}
        moment = Moment(_lock(batch, sessions_of_late.values()))
        now = moment.now
        batch = without_gone(batch)
        _settle({i: work for i, work in enumerate(batch) if isinstance(work, Settle)}, now, results, notes)
        _release([work for work in batch if isinstance(work, Release)], sessions_of_late, now, notes)
        _withdraw([work.ask for work in batch if isinstance(work, Withdraw)], now)
        asks = {i: work.ask for i, work in enumerate(batch) if isinstance(work, Admit)}
        in_line = {i for i, work in enumerate(batch) if isinstance(work, Admit) and work.in_line}
        if is_retry:
            _skip_written(asks, now, results)
        refused = _admit(asks, in_line, moment, home, results, notes)
        _leave_lines(batch, results, is_retry=is_retry)
        refused += [(work.ask, work.denied) for work in batch if isinstance(work, Deny)]
        write_refusals(refused, moment)
        for ask, denied in refused:
            notes.denied(ask, denied)
        told = write(notes, now)
        _write_also(batch, results)
    return Committed([_watched(results.get(i), told) for i in range(len(batch))], told.messages)


def _watched(result: Result, told: Told) -> Result:
    """An open turn whose session somebody watches knows it: its chunks go there too."""
    if not told.watchers or not isinstance(result, OpenTurn):
        return result
    session_id = result.ask.target.session_id
    public_id, watchers = told.public_ids.get(session_id, ""), told.watchers.get(session_id, ())
    return replace(result, session_public_id=public_id, watchers=watchers)


def _chat_ids(batch: Sequence[Work]) -> list[str]:
    return [work.chat_id for work in batch if isinstance(work, Release) and work.chat_id]


def _lock(batch: Sequence[Work], late: Iterable[int]) -> datetime:
    """Lock the sessions of all this work, in one order; when that was done."""
    sessions = list(late)
    for work in batch:
        if isinstance(work, Admit | Deny | Withdraw):
            sessions.append(work.ask.target.session_id)
        elif isinstance(work, Settle):
            sessions.append(work.turn.ask.target.session_id)
        elif isinstance(work, Release) and work.session_id is not None:
            sessions.append(work.session_id)
    return statements.lock_sessions(sessions)


def _settle(settles: dict[int, Settle], now: datetime, results: dict[int, Result], notes: Notes) -> None:
    """End turns; of two endings of one turn the first stands, in a batch as between batches."""
    if not settles:
        return
    first = {work.turn.ask.chat_id: i for i, work in reversed(settles.items())}
    won = statements.settle([_ending_row(settles[i]) for i in first.values()], now, GRACE)
    winners = {first[chat_id] for chat_id in won}
    losers = [work.turn.ask.chat_id for i, work in settles.items() if i not in winners]
    stored = statements.read_ends(losers) if losers else {}
    for i, work in settles.items():
        chat_id, ending = work.turn.ask.chat_id, work.ending
        if i not in winners:
            results[i] = _as_stored(settles[i], *stored.get(chat_id, (Outcome.FAILED, "deleted")))
            continue
        ending = handed_back(work.turn.ask, ending)
        results[i] = SettledTurn(ending.outcome, ending.reason, ending.text, settles[i].has_also)
        notes.settled(work.turn, ending)
        agent_id, day = won[chat_id]
        if ending.gives_back and day is not None:
            statements.give_back(agent_id, day, chat_id)


def _write_also(batch: Sequence[Work], results: Mapping[int, Result]) -> None:
    """What surfaces keep of the ends of their turns, in one order: who locks their rows too locks them in that."""
    ends = [(work, results.get(i)) for i, work in enumerate(batch) if isinstance(work, Settle)]
    writes: list[sql.Query | sql.Insert] = []
    for work, settled in sorted(ends, key=lambda end: end[0].turn.ask.chat_id):
        if work.also is not None and isinstance(settled, SettledTurn):
            writes += work.also(settled)
    if writes:
        sql.write_each(writes)


def _as_stored(work: Settle, outcome: str, reason: str) -> SettledTurn:
    """The winner's end; its text is only known here when it says the same."""
    text = work.ending.text if outcome == work.ending.outcome else ""
    return SettledTurn(Outcome(outcome), reason, text, work.has_also)


def _ending_row(work: Settle) -> EndingRow:
    ending = work.ending
    return EndingRow(
        work.turn.ask.chat_id, ending.outcome.value, ending.reason, ending.latency_ms, int(ending.keeps_claim)
    )


def _release(releases: Sequence[Release], sessions: Mapping[str, int], now: datetime, notes: Notes) -> None:
    for work in releases:
        if work.chat_id and work.chat_id in sessions and work.late:
            notes.late(sessions[work.chat_id], work.chat_id, work.late)
    if chat_ids := [work.chat_id for work in releases if work.chat_id]:
        statements.release_turns(chat_ids, now)
    if session_ids := [work.session_id for work in releases if work.session_id is not None]:
        statements.release_sessions(session_ids, now)


def _skip_written(asks: dict[int, Ask], now: datetime, results: dict[int, Result]) -> None:
    """A retried batch may find that the commit it lost sight of did happen: those asks are ended unsent."""
    written = _withdraw(list(asks.values()), now)
    for i, ask in list(asks.items()):
        if ask.chat_id in written:
            results[i] = Unavailable()
            del asks[i]


def _leave_lines(batch: Sequence[Work], results: Mapping[int, Result], *, is_retry: bool) -> None:
    """Delete the places of asks that waited and were decided, or wait no more.

    In a retried batch a new ask may have a place too, of the commit whose answer was lost.
    """
    left = [work.ask.chat_id for work in batch if isinstance(work, Withdraw) and work.ask.queues]
    left += [
        work.ask.chat_id
        for i, work in enumerate(batch)
        if isinstance(work, Admit | Deny)
        and (work.in_line or (is_retry and work.ask.queues))
        and not isinstance(results.get(i), Waits)
    ]
    if left:
        statements.leave_lines(left)


def _withdraw(asks: Sequence[Ask], now: datetime) -> Collection[str]:
    """End those of the asks that are written and open, and give them back; which are written at all."""
    written = statements.existing([ask.chat_id for ask in asks]) if asks else {}
    if open_ids := [chat_id for chat_id, is_open in written.items() if is_open]:
        unsent = [EndingRow(chat_id, Outcome.FAILED, Failure.NOT_DELIVERED, None, 0) for chat_id in open_ids]
        for chat_id, (agent_id, day) in statements.settle(unsent, now, GRACE).items():
            statements.give_back(agent_id, day, chat_id)
    return written


def _admit(
    asks: dict[int, Ask],
    in_line: Collection[int],
    moment: Moment,
    home: str,
    results: dict[int, Result],
    notes: Notes,
) -> list[tuple[Ask, Denied]]:
    """Decide the asks in order and write the admitted; those denied, with why."""
    if not asks:
        return []
    house = read_house(asks.values(), moment.now, statements.as_day(moment.day))
    turns: list[OpenTurn] = []
    refused: list[tuple[Ask, Denied]] = []
    queued: list[QueuedRow] = []
    for i, ask in asks.items():
        refusal = admission.admit(ask, house, in_line=i in in_line) if may_hand_on(ask) else FileGone()
        if refusal is None:
            results[i] = turn = handed_over(_open_turn(ask, house, home))
            turns.append(turn)
            notes.admitted(turn)
            continue
        results[i] = refusal
        if isinstance(refusal, Denied):
            refused.append((ask, refusal))
        elif isinstance(refusal, Waits) and refusal.is_new:
            queued.append(queued_row(ask, refusal.wait_s, home, moment))
    spent = Counter(turn.ask.target.agent_id for turn in turns if turn.ask.target.agent_id is not None)
    if queued:
        sql.write_each([statements.queueing(queued)])
    if turns:
        notes.turns = statements.inserting([open_row(turn, home, moment) for turn in turns])
    if spent:
        notes.spending, notes.spenders = statements.spending(spent, moment.day), len(spent)
    if house.callers:
        notes.callers_spending = _callers_spending([turn.ask for turn in turns], house, moment)
    return refused


def _callers_spending(asks: Sequence[Ask], house: admission.House, moment: Moment) -> sql.Insert | None:
    """Counts the admitted asks of callers who have a budget of their own."""
    spent = Counter(
        (ask.target.agent_id, ask.caller_id)
        for ask in asks
        if ask.target.agent_id is not None and house.find_spending(ask) is not None
    )
    return statements.callers_spending(spent, moment.day) if spent else None


def _open_turn(ask: Ask, house: admission.House, home: str) -> OpenTurn:
    asked = house.find(ask)
    assert asked is not None  # noqa: S101  it was just admitted
    return OpenTurn(
        ask=ask,
        connection_id=NO_CONNECTION if asked.is_remote else asked.connection_id or NO_CONNECTION,
        link_process=home if asked.is_remote else asked.process_id or "",
        text=ask.question,
        isolated=asked.isolated,
        is_remote=asked.is_remote,
    )
