"""Reads what a run left behind, and makes the table of it."""

from collections.abc import Callable, Sequence

from faults import answers, audit, secrecy
from faults.evidence import Evidence
from faults.report import Row

CHECKS: Sequence[Callable[[Evidence], Row]] = (
    audit.one_row_an_ask,
    audit.budgets_hold,
    audit.claims_are_released,
    audit.one_caller_at_a_time,
    audit.one_end,
    audit.every_turn_ends,
    answers.replies_are_ones_own,
    answers.others_tasks_are_hidden,
    answers.one_task_a_key,
    answers.prompts_go_out_once,
    answers.streams_are_complete,
    answers.webhooks_arrive,
    answers.nothing_lost_in_a_drain,
    answers.deliveries_come_again,
    answers.no_ask_hangs,
    answers.errors_say_when_to_come_back,
    secrecy.no_secret_is_shown,
)


def check(found: Evidence) -> list[Row]:
    """A row for each invariant, then one for each figure that faults noted (`Scene.saw`)."""
    rows = [each(found) for each in CHECKS] + audit.deaths_are_cleaned_up(found) + figures(found)
    return [row for row in rows if row.n or row.violations]


def figures(found: Evidence) -> list[Row]:
    """What faults measured, by fault and figure."""
    rows: dict[tuple[str, str], Row] = {}
    for seen in found.lines["seen"]:
        name = (seen["fault"], seen["what"])
        rows.setdefault(name, Row(*name)).case(seen["ok"], seen["detail"])
    return list(rows.values())
