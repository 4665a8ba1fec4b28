"""I1 to I6 and F1: conditions that the tables of the hub must meet after a run."""

import json
from collections import defaultdict
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from lab.faults.evidence import Evidence
from lab.faults.invariants import Cases, invariant
from lab.faults.oplog import Line
from lab.faults.stack import REPLY_WAIT_S

GRACE = timedelta(seconds=60)
SLACK = timedelta(seconds=15)  # the reaper looks every 5 s, and a machine may be busy
ENDS_WITHIN = timedelta(seconds=REPLY_WAIT_S + 45)
ENDED_AFTER_DEATH, FREE_AFTER_DEATH = timedelta(seconds=45), timedelta(seconds=40)
FAR = datetime.max.replace(tzinfo=UTC)
HOLDS = """
SELECT t.session_id, caller_id, asked_at, chat_id, released_at, claim_until, a.concurrency_cap AS cap
FROM agents_turn t LEFT JOIN agents_agent a ON a.id = t.agent_id
WHERE t.outcome IS NULL OR t.outcome <> 'denied' ORDER BY t.session_id, asked_at, t.id
"""
BUDGETS = """
SELECT a.handle, u.day, u.queries, a.daily_budget,
  (SELECT count(*) FROM agents_turn t WHERE t.agent_id = a.id AND t.usage_day = u.day) AS counted
FROM agents_dailyusage u JOIN agents_agent a ON a.id = u.agent_id
"""
LAST_EVENTS = "SELECT task_id, max(seq) AS last FROM a2a_bridge_storedevent GROUP BY task_id"
STATUSES = "SELECT task_id, seq, body FROM a2a_bridge_storedevent WHERE body LIKE '%status%'"
UNRECORDED = ("could not record", "not_recorded")  # the text of the failure, and its name in `a2a-v1`
ADMITTED = ("reply was lost", "did not reply", "stopped before")  # of these a refusal knows nothing
ENDS = ["completed", "failed", "canceled", "rejected"]


@invariant("I1", "each ask has one audit row, and each audit row an ask")
def one_row_an_ask(found: Evidence) -> Cases:
    """I1. A refusal may be counted in the row of another one (`repeats`): the sums by caller and agent must agree.

    An ask whose answer is one of an admitted turn needs a row of its own.
    """
    told: dict[tuple[str, str], list[int]] = defaultdict(lambda: [0, 0, 0])
    for nonce, asks in found.by_nonce.items():
        answered = [ask for ask in asks if ask["outcome"] in ("completed", "failed")]
        rows = found.turns_of.get(nonce, [])
        sums = told[asks[0]["caller"], asks[0]["agent"]]
        sums[0] += bool(answered)
        sums[1] += sum(_may_be_written(ask) for ask in asks)
        is_complete = any(ask["outcome"] == "completed" for ask in asks)
        completed = [turn for turn in rows if turn["outcome"] == "completed"]
        admitted = [turn for turn in rows if turn["outcome"] != "denied"]
        is_complete_in_both = len(completed) == 1 or not is_complete
        is_there = bool(admitted) or not any(_was_admitted(ask) for ask in answered)
        told_as, written = {(ask["outcome"], ask["text"]) for ask in answered}, [turn["outcome"] for turn in rows]
        yield (
            len(rows) <= len(asks) and is_complete_in_both and is_there,
            f"{nonce}: {len(asks)} requests, told {told_as}, in the audit {written}",
        )
    for turn in found.turns:
        if turn["handle"] is None:  # an order to a venue, or a message to a seat: see I17 and I18
            continue
        if turn["nonce"] not in found.by_nonce:
            yield False, f"a row without an ask: {turn['question']!r}"
        told[turn["login"], turn["handle"]][2] += turn["repeats"]
    for (login, handle), (least, most, rows_of_both) in told.items():
        if not least <= rows_of_both <= most:
            yield False, f"{login} asked {handle} {least} to {most} times: {rows_of_both} in the audit"


@invariant("I2", "budgets are never overspent, and their counters agree with the audit")
def budgets_hold(found: Evidence) -> Cases:
    """I2: compare each day's counter with the budget and with the turns of that day."""
    for usage in found.rows(BUDGETS):
        ok = usage["queries"] == usage["counted"] <= usage["daily_budget"]
        yield from [(True, "")] * (usage["counted"] - 1)  # the row counts asks
        yield (ok, f"{usage['handle']} {usage['day']}: {usage['queries']} of {usage['daily_budget']}, "
                     f"{usage['counted']} in the audit")  # fmt: skip


@invariant("I3", "claims are released: none outlives its lease")
def claims_are_released(found: Evidence) -> Cases:
    """I3. The hub treats an expired claim as free at once; the sweep must also have written its release."""
    for turn in found.turns:
        if turn["outcome"] == "denied":
            continue
        if turn["released_at"] is None:
            is_held = turn["claim_until"] > found.now - SLACK
            yield is_held, f"{turn['chat_id']} held until {turn['claim_until']}, still"
        elif turn["settled_at"] is not None:
            held = turn["released_at"] - turn["settled_at"]
            yield held <= GRACE + SLACK, f"{turn['chat_id']} held for {held} after its end"


@invariant("I4", "all claims on a session belong to one caller, and are at most its cap")
def one_caller_at_a_time(found: Evidence) -> Cases:
    """I4: the claims of a session that overlap belong to one caller."""
    open_now: list[dict[str, Any]] = []
    session = None
    for hold in found.rows(HOLDS):
        if hold["session_id"] != session:
            session, open_now = hold["session_id"], []
        open_now = [one for one in open_now if _over_at(one) > hold["asked_at"]]
        others = [one for one in open_now if one["caller_id"] != hold["caller_id"]]
        yield (
            not others and len(open_now) < (hold["cap"] or 20),
            f"{hold['chat_id']} while {[one['chat_id'] for one in open_now]} held",
        )
        open_now.append(hold)


@invariant("I5", "exactly one end for each task, the same for every reader, and nothing after it")
def one_end(found: Evidence) -> Cases:
    """I5. The first answer, later reads of the task, and the tables show the same end."""
    said: dict[str, tuple[str, str]] = {}
    for ask in found.asks:
        if ask["outcome"] not in ("completed", "failed") or _is_unrecorded(ask):
            continue
        ends = {turn["outcome"] for turn in found.turns_of.get(ask["nonce"], [])}
        as_stored = "completed" if ask["outcome"] == "completed" else "failed"
        is_denied = as_stored == "failed" and "denied" in ends and not _was_admitted(ask)
        yield (not ends or as_stored in ends or is_denied,
                 f"{ask['nonce']}: told {ask['outcome']} ({ask['text']}), stored {ends}")  # fmt: skip
        if ask["task_id"]:
            before = said.setdefault(ask["task_id"], (ask["outcome"], ask["text"]))
            yield before == (ask["outcome"], ask["text"]), f"{ask['task_id']}: {before}, then {ask['text']}"
    for again in found.lines["reread"]:
        if again["outcome"] in ("completed", "failed"):
            end = (again["outcome"], again["text"])
            yield said.get(again["task_id"], end) == end, f"{again['task_id']}: read again as {end}"
        elif again["status"] not in (0, 503):
            yield False, f"{again['task_id']}: {again['outcome']} when read again: {again['text']}"
    ends_of: dict[str, list[int]] = defaultdict(list)
    for event in found.rows(STATUSES):
        body = json.loads(event["body"])
        if body["type"] == "status" and body["state"] in ENDS:
            ends_of[event["task_id"]].append(event["seq"])
    for task in found.rows(LAST_EVENTS):
        events = ends_of[task["task_id"]]
        yield events in ([], [task["last"]]), f"{task['task_id']}: ends {events}, last event {task['last']}"


@invariant("I6", "every accepted ask ends, at the latest 45 s after its wait")
def every_turn_ends(found: Evidence) -> Cases:
    """I6: no turn stays open for longer than its wait and 45 s."""
    for turn in found.turns:
        took = (turn["settled_at"] or found.now) - turn["asked_at"]
        yield took <= ENDS_WITHIN, f"{turn['chat_id']} took {took}, {turn['outcome']} {turn['reason']}"


def _over_at(turn: dict[str, Any]) -> datetime:
    """When a turn no longer held its session."""
    return min(turn["released_at"] or FAR, turn["claim_until"] or FAR)


def _is_unrecorded(ask: Line) -> bool:
    return any(text in ask["text"] for text in UNRECORDED)


def _was_admitted(ask: Line) -> bool:
    return ask["outcome"] == "completed" or any(text in ask["text"] for text in ADMITTED)


def _may_be_written(ask: Line) -> bool:
    """True if an ask may have a row in the audit. A request that the hub refused as wrong has none."""
    return ask["outcome"] != "unsent" and not (ask["outcome"] == "refused" and 400 <= ask["status"] < 500)


def _left_open(found: Evidence) -> Iterator[tuple[dict[str, Any], datetime]]:
    """The turns that were open when their process was killed, with the time. In F19 no beat runs."""
    died = {
        line["process"]: datetime.fromtimestamp(line["at"], UTC)
        for line in found.lines["death"]
        if line["fault"] != "F19"
    }
    for turn in found.turns:
        at = died.get(turn["home"])
        if at is not None and not (turn["settled_at"] and turn["settled_at"] <= at):
            yield turn, at


@invariant("F1", "open turns of a killed process end within 45 s")
def turns_of_the_dead_end(found: Evidence) -> Cases:
    """F1: open turns of a killed process end in time."""
    for turn, died_at in _left_open(found):
        ok = turn["settled_at"] and turn["settled_at"] <= died_at + ENDED_AFTER_DEATH
        yield ok, f"{turn['chat_id']}"


@invariant("F1", "claims of a killed process are free within 35 s, and 5 for a busy machine")
def claims_of_the_dead_end(found: Evidence) -> Cases:
    """F1: claims of a killed process are free in time."""
    for turn, died_at in _left_open(found):
        free_at = _over_at(turn)
        ok = free_at <= died_at + FREE_AFTER_DEATH
        yield ok, f"{turn['chat_id']} free {free_at - died_at} after its process died"
