"""Makes the table of invariants from the log and the database of a run."""

from collections.abc import Callable, Iterator, Sequence

from lab.faults import answers, audit, secrecy
from lab.faults.evidence import Evidence
from lab.faults.fault import DONE, Fault
from lab.faults.report import InvariantRow

MUCH = 300  # asks of a load; a twentieth of them are streams of A2A 1.0, a quarter is keyed
Check = Callable[[Evidence], InvariantRow]
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
    secrecy.no_secret_is_shown,
    secrecy.no_question_is_logged,
    secrecy.no_deadlock_is_logged,
)
OF_A_LOAD: Sequence[Check] = (
    answers.others_tasks_are_hidden,
    answers.one_task_a_key,
    answers.keyed_asks_are_answered,
    answers.streams_are_complete,
    answers.cut_streams_are_complete,
    answers.webhooks_arrive,
)
OF_SOME_FAULTS: Sequence[Check] = (
    answers.nothing_lost_in_a_drain,
    answers.deliveries_come_again,
    answers.errors_say_when_to_retry,
)


def check(found: Evidence, faults: Sequence[Fault]) -> list[InvariantRow]:
    """A row for each invariant, then one for each figure that faults noted (`Scene.saw`).

    An empty row is a violation if these faults, or a load of some hundred asks, must fill it.
    """
    always = [each(found) for each in OF_ANY_ASK]
    usual = [each(found) for each in OF_A_LOAD]
    rest = [each(found) for each in OF_SOME_FAULTS] + audit.deaths_are_cleaned_up(found) + figures(found)
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
