"""Reads what a run left behind, and makes the table of it."""

from collections.abc import Callable, Iterator, Sequence

from lab.faults import answers, audit, secrecy
from lab.faults.evidence import Evidence
from lab.faults.filled import BY_FAULT, DONE, MUCH
from lab.faults.report import Row

Check = Callable[[Evidence], Row]
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


def check(found: Evidence, faults: Sequence[str]) -> list[Row]:
    """A row for each invariant, then one for each figure that faults noted (`Scene.saw`).

    A row that these faults, or a load of some hundred asks, must fill is a violation when nothing is in it.
    """
    always = [each(found) for each in OF_ANY_ASK]
    usual = [each(found) for each in OF_A_LOAD]
    rest = [each(found) for each in OF_SOME_FAULTS] + audit.deaths_are_cleaned_up(found) + figures(found)
    of_load = sum(bool(ask.get("by_load")) for ask in found.asks)
    for row in always + (usual if of_load >= MUCH else []):
        if not row.n:
            row.violations.append("no case: nothing was tried")
    return [row for row in always + usual + rest if row.n or row.violations] + list(empty(rest, faults))


def empty(rows: Sequence[Row], faults: Sequence[str]) -> Iterator[Row]:
    """A violation for each row that one of these faults must fill and did not. Rows go by how they begin."""
    filled = [(row.name, row.says) for row in rows if row.n]
    for fault in faults:
        for says in BY_FAULT.get(fault, ("",)):
            if not any(name == fault and said.startswith(says) and said != DONE for name, said in filled):
                yield Row(fault, says or "a figure of its own", 0, ["no case: nothing was tried"])


def figures(found: Evidence) -> list[Row]:
    """What faults measured, by fault and figure."""
    rows: dict[tuple[str, str], Row] = {}
    for seen in found.lines["seen"]:
        name = (seen["fault"], seen["what"])
        rows.setdefault(name, Row(*name)).case(seen["ok"], seen["detail"])
    return list(rows.values())
