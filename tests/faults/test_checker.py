"""The checker of the fault suite: a run that keeps an invariant, and one that breaks it, for each."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from lab.faults import answers, audit, exactly_once
from lab.faults.agents import echo_of
from lab.faults.evidence import Evidence, grouped
from lab.faults.invariants import InvariantRow, as_markdown, merged

Line = dict[str, Any]
NOW = datetime.now(UTC)
DIED = "the hub stopped before the agent answered"


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
    more = {"kind": "hub", "keyed": False, "task_id": f"task-{nonce}", "events": [], "began_in": "F1"}
    return known | more | {"op": "ask", "retry_after": False, "cuts": 0} | fields


def turn(nonce: str = "n1", **fields: Any) -> Line:
    asked = {"question": f"{nonce} what did I say?", "login": "ann", "handle": "bob/a", "chat_id": f"c-{nonce}"}
    ended = {"outcome": "completed", "reason": "", "repeats": 1, "usage_day": NOW.date(), "home": "p1"}
    times = {"asked_at": NOW, "settled_at": NOW, "released_at": NOW, "claim_until": NOW}
    return asked | ended | times | fields


def read(op: str, **fields: Any) -> Line:
    known = {"op": op, "nonce": "n1", "task_id": "task-n1", "fault": "F1", "outcome": "refused", "status": 200}
    return known | {"code": -32001, "text": "task not found", "retry_after": False} | fields


def evidence(asks: list[Line], turns: list[Line], **lines: list[Line]) -> Evidence:
    found = grouped({"ask": asks, **lines}, turns)
    found.now = NOW
    return found


def check(row: InvariantRow, *, broken: bool) -> None:
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
        ([ask(outcome="failed", text=DIED)], [turn(outcome="failed")], False),
        ([ask(outcome="failed", text=DIED)], [turn(outcome="denied")], True),
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


def test_claims_and_ends_are_measured_by_the_clock_of_the_database() -> None:
    ahead = timedelta(days=700)
    held = turn(released_at=None, settled_at=None, outcome=None, claim_until=NOW + timedelta(seconds=30))
    for of, broken in ((timedelta(0), False), (ahead, True)):
        found = evidence([], [held])
        found.now += of
        check(audit.claims_are_released(found), broken=broken)
        check(audit.every_turn_ends(found), broken=broken)


def test_a_task_that_cannot_be_read_again_is_seen() -> None:
    same = {"outcome": "completed", "text": ask()["text"]}
    for fields, broken in ((same, False), ({}, True), ({"status": 401}, True)):
        again = read("reread", **fields)
        check(audit.one_end(evidence([ask()], [turn()], reread=[again])), broken=broken)


def test_anothers_task_that_is_found_is_seen_and_a_refusal_of_all_is_no_case() -> None:
    check(answers.others_tasks_are_hidden(evidence([], [], peek=[read("peek")])), broken=False)
    found = read("peek", outcome="broken", code=0)
    check(answers.others_tasks_are_hidden(evidence([], [], peek=[found])), broken=True)
    away = [read("peek", status=503, code=-32013), read("peek", status=401, code=-32010)]
    assert answers.others_tasks_are_hidden(evidence([], [], peek=away)).n == 0


@pytest.mark.parametrize(
    ("url", "at", "broken"),
    [(0, 100.0, False), (0, 170.0, False), (0, 54.0, True), (0, 176.0, True), (1, 100.0, True)],
)
def test_a_request_without_an_answer_is_seen_unless_its_process_was_paused(
    url: int, at: float, broken: bool
) -> None:
    """The process was paused from second 55 to 110; the request took 65 s."""
    pause = {"process": "p1", "url": 0, "at": 110.0, "took_s": 55.0}
    late = {"outcome": "late", "url": url, "at": at, "took_s": 65.0}
    check(answers.no_ask_hangs(evidence([ask(**late)], [], pause=[pause])), broken=broken)
    letter = {"nonce": "n1", "owner": "team-0", "began_in": "F26", "is_put": True}
    check(exactly_once.inboxes_answer(evidence([], [], letter=[letter | late], pause=[pause])), broken=broken)


def test_a_keyed_ask_without_its_answer_is_seen() -> None:
    known = {"nonce": "n1", "kind": "hub", "attempts": 2, "status": 200, "text": "", "fault": "F1"}
    for outcome in ("completed", "failed", "refused", "broken", "late", "unsent"):
        broken = outcome not in ("completed", "failed")
        found = evidence([], [], keyed=[known | {"outcome": outcome}])
        check(answers.keyed_asks_are_answered(found), broken=broken)


@pytest.mark.parametrize(
    ("events", "last", "broken"),
    [([0, 1, 2], 2, False), ([0, 2], 2, True), ([0, 1, 1, 2], 2, True), ([0, 1], 2, True), ([0, 1], None, True)],
)
def test_a_stream_with_a_hole_is_seen_cut_or_not(events: list[int], last: int | None, broken: bool) -> None:
    for cuts, row_of in ((0, answers.streams_are_complete), (2, answers.cut_streams_are_complete)):
        asked = ask(kind="v1 stream", events=events, cuts=cuts)
        tasks = [] if last is None else [{"id": asked["task_id"], "seq": last}]
        found = evidence([asked], [])
        found.rows = lambda statement, tasks=tasks: tasks
        check(row_of(found), broken=broken)


def test_what_a_dead_process_leaves_open_is_seen() -> None:
    death = {"fault": "F1", "process": "p1", "at": NOW.timestamp()}
    soon, late = NOW + timedelta(seconds=25), NOW + timedelta(seconds=50)
    for at, broken in ((soon, False), (late, True)):
        found = evidence([], [turn(settled_at=at, released_at=at, claim_until=late)], death=[death])
        check(audit.turns_of_the_dead_end(found), broken=broken)
        check(audit.claims_of_the_dead_end(found), broken=broken)


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


def test_a_row_of_an_order_or_of_a_message_to_a_seat_needs_no_ask() -> None:
    rows = [turn(), turn("n2", handle=None, chat_id="c-2")]
    check(audit.one_row_an_ask(evidence([ask()], rows)), broken=False)


BOOKING = "0d9f7e0a-3b1c-4a52-9f0e-6f2f7a0c1d2e"
OTHER = "1d9f7e0a-3b1c-4a52-9f0e-6f2f7a0c1d2e"


@pytest.mark.parametrize(
    ("told", "stored", "broken"),
    [
        ([BOOKING], [(BOOKING, 1)], False),
        ([BOOKING, BOOKING], [(BOOKING.replace("-", ""), 1)], False),
        ([""], [], False),
        ([""], [(BOOKING, 1)], False),
        ([BOOKING], [], True),
        ([BOOKING], [(OTHER, 1)], True),
        ([BOOKING], [(BOOKING, 2)], True),
        ([BOOKING], [(BOOKING, 0)], True),
        ([""], [(BOOKING, 1), (OTHER, 1)], True),
        ([BOOKING, OTHER], [(BOOKING, 1)], True),
        ([], [(BOOKING, 1)], True),
    ],
)
def test_a_confirmation_that_is_not_one_booking_is_seen(
    told: list[str], stored: list[tuple[str, int]], broken: bool
) -> None:
    known = {"op": "confirm", "nonce": "n1"}
    lines = [known | {"booking_id": one, "outcome": "completed" if one else "broken"} for one in told]
    found = evidence([], [], confirm=lines)
    rows = [{"public_id": one, "slot_id": "n1", "charges": charges} for one, charges in stored]
    found.rows = lambda statement: rows
    row = exactly_once.one_booking_a_confirmation(found)
    check(row, broken=broken)


def test_a_confirmation_without_an_answer_is_seen() -> None:
    known = {"nonce": "n1", "attempts": 2, "status": 0, "text": "", "fault": "F1"}
    for outcome, text, broken in (
        ("completed", "", False),
        ("refused", "circuit_open", False),
        ("refused", "internal_error", True),
        ("broken", "", True),
    ):
        found = evidence([], [], confirmed=[known | {"outcome": outcome, "text": text}])
        check(exactly_once.confirmations_are_answered(found), broken=broken)


@pytest.mark.parametrize(
    ("booked", "owed", "told", "broken"),
    [
        (True, False, False, False),
        (False, True, False, False),
        (False, False, True, False),
        (False, True, True, False),
        (False, False, False, True),
        (True, False, True, True),
    ],
)
def test_an_order_that_no_one_knows_is_seen(booked: bool, owed: bool, told: bool, broken: bool) -> None:
    cancels = [{"booking_id": BOOKING}] if told else []
    found = evidence([], [], order=[{"booking_id": BOOKING, "nonce": "n1"}], cancel=cancels)
    is_stored = {exactly_once.BOOKINGS: booked, exactly_once.CANCELLATIONS: owed}
    found.rows = lambda statement: [{"public_id": BOOKING}] if is_stored[statement] else []
    check(exactly_once.orders_are_booked_or_cancelled(found), broken=broken)


def test_a_stored_message_that_does_not_arrive_or_comes_twice_is_seen() -> None:
    letter = {"nonce": "n1", "owner": "team-0", "began_in": "F1", "outcome": "stored", "is_put": True}
    came, again = ({"nonce": "n1", "owner": "team-0", "socket": number} for number in (1, 2))
    for received, is_lost, is_twice in (
        ([came], False, False),
        ([came, again], False, False),
        ([came, came], False, True),
        ([came | {"nonce": "n2"}], True, False),
    ):
        found = evidence([], [], letter=[letter], received=received)
        check(exactly_once.stored_messages_arrive(found), broken=is_lost)
        check(exactly_once.messages_come_once(found), broken=is_twice)
    for outcome, broken in (("stored", False), ("refused", False), ("late", True)):
        found = evidence([], [], letter=[letter | {"outcome": outcome}])
        check(exactly_once.inboxes_answer(found), broken=broken)


def test_errors_that_are_none_are_seen() -> None:
    cases: list[tuple[Line, bool]] = [
        ({"status": 503, "retry_after": True}, False),
        ({"status": 503}, True),
        ({"status": 500}, True),
    ]
    for fields, broken in cases:
        found = evidence([ask(outcome="refused", **fields)], [])
        check(answers.errors_say_when_to_retry(found), broken=broken)
        for op in ("read", "reread", "peek"):
            found = evidence([], [], **{op: [read(op, **fields)]})
            check(answers.errors_say_when_to_retry(found), broken=broken)


def test_answers_lost_in_a_drain_are_seen() -> None:
    lost = ask(outcome="broken", began_in="F15")
    check(answers.nothing_lost_in_a_drain(evidence([lost], [])), broken=False)
    check(answers.nothing_lost_in_a_drain(evidence([lost], [turn()])), broken=True)


def test_tables_of_several_hubs_become_one_invariants_first() -> None:
    rows = [
        [InvariantRow("F1", "x", 1, ["bad"]), InvariantRow("I2", "y", 2)],
        [InvariantRow("F1", "x", 3), InvariantRow("I10", "z", 1)],
    ]
    assert [(row.name, row.n, len(row.violations)) for row in merged(rows)] == [
        ("I2", 2, 0),
        ("I10", 1, 0),
        ("F1", 4, 1),
    ]
    assert as_markdown(merged(rows)).splitlines()[2] == "| **I2** y | 2 | 0 |"
