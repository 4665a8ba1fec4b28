"""One batch of the ledger: everything that waited, decided in order, in one transaction."""

from collections import Counter
from collections.abc import Collection, Sequence
from datetime import datetime

from django.db import transaction

from accounts.models import Credential
from agents import admission
from agents.errors import Denied, Unavailable
from agents.ledger import statements
from agents.ledger.refusals import write_refusals
from agents.ledger.rows import GRACE, Moment, open_row
from agents.ledger.statements import EndingRow, TurnRow
from agents.ledger.work import Admit, Deny, Release, Result, Settle, Touch, Withdraw, Work
from agents.types import Ask, Ending, Failure, OpenTurn, Outcome, SettledTurn


def commit(batch: Sequence[Work], *, home: str, is_retry: bool = False) -> list[Result]:
    """Do a batch in one transaction; the results stand in the order of the work.

    Endings go before asks, so that an ask finds the claim free which the same batch releases.
    """
    results: dict[int, Result] = {}
    with transaction.atomic():
        moment = Moment(_lock(batch))
        now = moment.now
        _settle({i: work for i, work in enumerate(batch) if isinstance(work, Settle)}, now, results)
        _release([work for work in batch if isinstance(work, Release)], now)
        _withdraw([work.ask for work in batch if isinstance(work, Withdraw)], now)
        asks = {i: work.ask for i, work in enumerate(batch) if isinstance(work, Admit)}
        if is_retry:
            _skip_written(asks, now, results)
        refused = _admit(asks, moment, home, results)
        refused += [(work.ask, work.denied) for work in batch if isinstance(work, Deny)]
        write_refusals(refused, moment)
        if touched := [work.credential_id for work in batch if isinstance(work, Touch)]:
            Credential.touch(touched)
    return [results.get(i) for i in range(len(batch))]


def _lock(batch: Sequence[Work]) -> datetime:
    """Lock the sessions of all this work, in one order; when that was done."""
    sessions: list[int] = []
    for work in batch:
        if isinstance(work, Admit | Deny | Withdraw):
            sessions.append(work.ask.agent.session_id)
        elif isinstance(work, Settle):
            sessions.append(work.turn.ask.agent.session_id)
        elif isinstance(work, Release) and work.session_id is not None:
            sessions.append(work.session_id)
    if late := [work.chat_id for work in batch if isinstance(work, Release) and work.chat_id]:
        sessions += statements.sessions_of(late)
    return statements.lock_sessions(sessions)


def _settle(settles: dict[int, Settle], now: datetime, results: dict[int, Result]) -> None:
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
            results[i] = _as_stored(ending, *stored.get(chat_id, (Outcome.FAILED, "deleted")))
            continue
        results[i] = SettledTurn(ending.outcome, ending.reason, ending.text)
        agent_id, day = won[chat_id]
        if ending.gives_back and day is not None:
            statements.give_back(agent_id, day, chat_id)


def _as_stored(ending: Ending, outcome: str, reason: str) -> SettledTurn:
    """The winner's end; its text is only known here when it says the same."""
    return SettledTurn(Outcome(outcome), reason, ending.text if outcome == ending.outcome else "")


def _ending_row(work: Settle) -> EndingRow:
    ending = work.ending
    return EndingRow(
        work.turn.ask.chat_id, ending.outcome.value, ending.reason, ending.latency_ms, int(ending.keeps_claim)
    )


def _release(releases: Sequence[Release], now: datetime) -> None:
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


def _withdraw(asks: Sequence[Ask], now: datetime) -> Collection[str]:
    """End those of the asks that are written and open, and give them back; which are written at all."""
    written = statements.existing([ask.chat_id for ask in asks]) if asks else {}
    if open_ids := [chat_id for chat_id, is_open in written.items() if is_open]:
        unsent = [EndingRow(chat_id, Outcome.FAILED, Failure.NOT_DELIVERED, None, 0) for chat_id in open_ids]
        for chat_id, (agent_id, day) in statements.settle(unsent, now, GRACE).items():
            statements.give_back(agent_id, day, chat_id)
    return written


def _admit(
    asks: dict[int, Ask], moment: Moment, home: str, results: dict[int, Result]
) -> list[tuple[Ask, Denied]]:
    """Decide the asks in order and write the admitted; those denied, with why."""
    if not asks:
        return []
    agent_ids = list({ask.agent.agent_id for ask in asks.values()})
    session_ids = list({ask.agent.session_id for ask in asks.values()})
    house = statements.read_house(agent_ids, session_ids, moment.now)
    turns: list[TurnRow] = []
    refused: list[tuple[Ask, Denied]] = []
    for i, ask in asks.items():
        refusal = admission.admit(ask, house)
        if refusal is None:
            results[i] = turn = _open_turn(ask, house)
            turns.append(open_row(ask, turn.connection_id, home, moment))
            continue
        results[i] = refusal
        if isinstance(refusal, Denied):
            refused.append((ask, refusal))
    spent = Counter(turn.agent_id for turn in turns)
    if spent and statements.spend(spent, moment.day) != len(spent):
        raise RuntimeError("a budget changed under the batch")
    statements.insert_turns(turns)
    return refused


def _open_turn(ask: Ask, house: admission.House) -> OpenTurn:
    agent = house.agents[ask.agent.agent_id]
    return OpenTurn(ask=ask, connection_id=agent.connection_id or 0, link_process=agent.process_id or "")
