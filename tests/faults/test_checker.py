"""The checker of the fault suite: a run that keeps an invariant, and one that breaks it, for each."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from faults import answers, audit
from faults.agents import echo_of
from faults.evidence import Evidence, grouped
from faults.report import Row, as_markdown, merged

Line = dict[str, Any]
NOW = datetime.now(UTC)


def ask(nonce: str = "n1", **fields: Any) -> Line:
    text = echo_of(f"{nonce} what did I say?")
    known = {
        "nonce": nonce,
        "caller": "ann",
        "agent": "bob/a",
        "outcome": "completed",
        "text": text,
        "status": 200,
    }
    more = {"way": "hub", "keyed": False, "task_id": f"task-{nonce}", "events": [], "began_in": "F1"}
    return known | more | {"retry_after": False} | fields


def turn(nonce: str = "n1", **fields: Any) -> Line:
    asked = {"question": f"{nonce} what did I say?", "login": "ann", "handle": "bob/a", "chat_id": f"c-{nonce}"}
    ended = {"outcome": "completed", "reason": "", "repeats": 1, "usage_day": NOW.date(), "home": "p1"}
    times = {"asked_at": NOW, "settled_at": NOW, "released_at": NOW, "claim_until": NOW}
    return asked | ended | times | fields


def evidence(asks: list[Line], turns: list[Line], **lines: list[Line]) -> Evidence:
    return grouped({"ask": asks, **lines}, turns)


def check(row: Row, *, broken: bool) -> None:
    assert row.n > 0
    assert bool(row.violations) is broken, row


@pytest.mark.parametrize(
    ("asks", "turns", "broken"),
    [
        ([ask()], [turn()], False),
        ([ask()], [], True),
        ([ask()], [turn(), turn(chat_id="c-2")], True),
        ([ask()], [turn(outcome="failed")], True),
        ([ask()], [turn(), turn("n2")], True),
        ([ask(outcome="broken")], [], False),
        ([ask(outcome="unsent")], [turn(outcome="failed")], True),
        ([ask("n1", outcome="failed"), ask("n2", outcome="failed")], [turn(outcome="denied", repeats=2)], False),
        ([ask("n1", outcome="failed"), ask("n2", outcome="failed")], [turn(outcome="denied")], True),
    ],
)
def test_an_ask_without_its_row_is_seen(asks: list[Line], turns: list[Line], broken: bool) -> None:
    check(audit.one_row_an_ask(evidence(asks, turns)), broken=broken)


@pytest.mark.parametrize(
    ("fields", "broken"),
    [
        ({}, False),
        ({"released_at": NOW + timedelta(seconds=60)}, False),
        ({"released_at": NOW + timedelta(seconds=90)}, True),
        ({"released_at": None, "claim_until": NOW + timedelta(hours=1)}, False),
        ({"released_at": None, "claim_until": NOW - timedelta(seconds=30)}, True),
    ],
)
def test_a_claim_that_stays_is_seen(fields: Line, broken: bool) -> None:
    check(audit.claims_are_released(evidence([], [turn(**fields)])), broken=broken)


def test_an_ask_that_does_not_end_is_seen() -> None:
    old = NOW - timedelta(minutes=10)
    check(audit.every_turn_ends(evidence([], [turn()])), broken=False)
    check(audit.every_turn_ends(evidence([], [turn(asked_at=old, settled_at=None, outcome=None)])), broken=True)


def test_what_a_dead_process_leaves_open_is_seen() -> None:
    death = {"fault": "F1", "process": "p1", "at": NOW.timestamp()}
    soon, late = NOW + timedelta(seconds=25), NOW + timedelta(seconds=50)
    for at, broken in ((soon, False), (late, True)):
        found = evidence([], [turn(settled_at=at, released_at=at, claim_until=late)], death=[death])
        for row in audit.deaths_are_cleaned_up(found):
            check(row, broken=broken)


def test_anothers_reply_is_seen() -> None:
    check(answers.replies_are_ones_own(evidence([ask()], [])), broken=False)
    check(answers.replies_are_ones_own(evidence([ask(text=echo_of("n2 what did I say?"))], [])), broken=True)


def test_two_charges_under_one_key_are_seen() -> None:
    keyed = [ask(keyed=True), ask(keyed=True)]
    check(answers.one_task_a_key(evidence(keyed, [turn()])), broken=False)
    check(answers.one_task_a_key(evidence(keyed, [turn(), turn(chat_id="c-2")])), broken=True)
    check(answers.one_task_a_key(evidence([keyed[0], ask(keyed=True, task_id="task-2")], [turn()])), broken=True)


def test_a_prompt_handed_over_twice_is_seen() -> None:
    one, two = ({"chat_id": "c-1", "socket": number} for number in (1, 2))
    check(answers.prompts_go_out_once(evidence([], [], prompt=[one])), broken=False)
    check(answers.prompts_go_out_once(evidence([], [], prompt=[one, two])), broken=True)


def test_errors_that_are_none_are_seen() -> None:
    for fields, broken in (
        ({"status": 503, "retry_after": True}, False),
        ({"status": 503}, True),
        ({"status": 500}, True),
    ):
        found = evidence([ask(outcome="refused", **fields)], [])
        check(answers.errors_say_when_to_come_back(found), broken=broken)


def test_answers_lost_in_a_drain_are_seen() -> None:
    lost = ask(outcome="broken", began_in="F15")
    check(answers.nothing_lost_in_a_drain(evidence([lost], [])), broken=False)
    check(answers.nothing_lost_in_a_drain(evidence([lost], [turn()])), broken=True)


def test_tables_of_several_hubs_become_one_invariants_first() -> None:
    rows = [[Row("F1", "x", 1, ["bad"]), Row("I2", "y", 2)], [Row("F1", "x", 3), Row("I10", "z", 1)]]
    assert [(row.name, row.n, len(row.violations)) for row in merged(rows)] == [
        ("I2", 2, 0),
        ("I10", 1, 0),
        ("F1", 4, 1),
    ]
    assert as_markdown(merged(rows)).splitlines()[2] == "| **I2** y | 2 | 0 |"
