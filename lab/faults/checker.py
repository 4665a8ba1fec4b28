"""Makes the table of invariants from the log and the database of a run.

Two invariants are declared here. I15: logs and tables show no token, secret or question. I6: PostgreSQL logged no
deadlock.
"""

from collections.abc import Iterator, Sequence

from lab.faults import answers, audit, exactly_once
from lab.faults.evidence import Evidence
from lab.faults.fault import DONE, Fault
from lab.faults.invariants import Cases, Check, InvariantRow, invariant

MUCH = 300  # asks of a load; a twentieth of them are streams of A2A 1.0, a quarter is keyed
ASKED = b"what did I say?"  # in every question, and in every echo of one


@invariant("I15", "no token or secret in any log or table")
def no_secret_is_shown(found: Evidence) -> Cases:
    """Search all logs, and a dump of all tables, for every token and secret of the run."""
    assert found.stack is not None, "no hub"
    tokens = {token.encode(): name for name, token in found.stack.tokens.items()}
    places = {str(log): log.read_bytes() for log in found.stack.logs()} | {"the database": found.stack.dump()}
    for place, shown in places.items():
        for token, name in tokens.items():
            yield token not in shown, f"the token of {name} is in {place}"


@invariant("I15", "no question or reply in a log of the hub's processes")
def no_question_is_logged(found: Evidence) -> Cases:
    """Search the logs of the hub's processes for questions and replies."""
    assert found.stack is not None, "no hub"
    for log in found.stack.logs():
        if log.parent == found.stack.hub.logs:
            lines = [line for line in log.read_bytes().splitlines() if ASKED in line]
            yield not lines, f"{log.name}: {len(lines)} times, {lines[:1]}"


@invariant("I6", "no transactions wait for each other: no deadlock")
def no_deadlock_is_logged(found: Evidence) -> Cases:
    """Search the log of PostgreSQL for transactions that it ended because of a deadlock."""
    assert found.stack is not None, "no hub"
    yield from [(True, "")] * len(found.turns)  # the row counts turns
    for log in found.stack.folder.glob("postgres.log"):  # SQLite has one writer at a time
        for line in log.read_text(errors="replace").splitlines():
            if "deadlock detected" in line:
                yield False, line


OF_ANY_ASK: Sequence[Check] = (
    audit.one_row_an_ask,
    audit.budgets_hold,
    audit.claims_are_released,
    audit.one_caller_at_a_time,
    audit.one_end,
    audit.every_turn_ends,
    answers.replies_are_ones_own,
    answers.prompts_go_out_once,
    answers.no_ask_hangs,
    no_secret_is_shown,
    no_question_is_logged,
    no_deadlock_is_logged,
)
OF_A_LOAD: Sequence[Check] = (
    answers.others_tasks_are_hidden,
    answers.one_task_a_key,
    answers.keyed_asks_are_answered,
    answers.streams_are_complete,
    answers.cut_streams_are_complete,
    answers.webhooks_arrive,
    answers.every_kind_is_answered,
    exactly_once.one_booking_a_confirmation,
    exactly_once.confirmations_are_answered,
    exactly_once.orders_are_booked_or_cancelled,
    exactly_once.stored_messages_arrive,
    exactly_once.messages_come_once,
    exactly_once.inboxes_answer,
)
OF_SOME_FAULTS: Sequence[Check] = (
    answers.nothing_lost_in_a_drain,
    answers.deliveries_come_again,
    answers.errors_say_when_to_retry,
    audit.turns_of_the_dead_end,
    audit.claims_of_the_dead_end,
)


def check(found: Evidence, faults: Sequence[Fault]) -> list[InvariantRow]:
    """A row for each invariant, then one for each figure that faults noted (`Scene.note`).

    An empty row is a violation if these faults, or a load of some hundred asks, must fill it.
    """
    always = [each(found) for each in OF_ANY_ASK]
    usual = [each(found) for each in OF_A_LOAD]
    rest = [each(found) for each in OF_SOME_FAULTS] + figures(found)
    of_load = sum(bool(ask.get("by_load")) for ask in found.asks)
    for row in always + (usual if of_load >= MUCH else []):
        if not row.n:
            row.violations.append("no case: nothing was tried")
    return [row for row in always + usual + rest if row.n or row.violations] + list(empty(rest, faults))


def empty(rows: Sequence[InvariantRow], faults: Sequence[Fault]) -> Iterator[InvariantRow]:
    """A violation for each row that one of these faults must fill (`Fault.fills`) and did not."""
    filled = [(row.name, row.says) for row in rows if row.n]
    for fault in faults:
        for says in fault.fills:
            if not any(name == fault.name and said.startswith(says) and said != DONE for name, said in filled):
                yield InvariantRow(fault.name, says or "a figure of its own", 0, ["no case: nothing was tried"])


def figures(found: Evidence) -> list[InvariantRow]:
    """The figures that faults noted, by fault and figure."""
    rows: dict[tuple[str, str], InvariantRow] = {}
    for seen in found.lines["seen"]:
        name = (seen["fault"], seen["what"])
        rows.setdefault(name, InvariantRow(*name)).case(seen["ok"], seen["detail"])
    return list(rows.values())
