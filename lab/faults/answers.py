"""I7 to I11, F2, F3, F6 and F15: the answers to callers, and the deliveries to webhook receivers."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterator
from typing import Any

from lab.faults.agents import echo_of
from lab.faults.audit import UNRECORDED
from lab.faults.evidence import Evidence
from lab.faults.invariants import Cases, invariant
from lab.faults.oplog import Line
from lab.faults.request_kinds import REQUEST_KINDS

OUTBOX = "SELECT event_id, status, payload FROM webhooks_delivery WHERE type = 'agent.replied'"
SEQS = "SELECT id, seq FROM a2a_bridge_storedtask"
DELIVERED = "SELECT event_id, delivered_at FROM webhooks_delivery WHERE delivered_at IS NOT NULL"
AGAIN_WITHIN_S = 90.0
TRIED = 20  # asks of a kind, of which under any fault some are completed
TASK_NOT_FOUND = -32001


@invariant("I7", "no reply reaches the wrong caller: every reply holds the nonce of its question")
def replies_are_ones_own(found: Evidence) -> Cases:
    """I7: each completed ask has the reply to its own question."""
    for ask in found.asks:
        if ask["outcome"] == "completed":
            wanted = echo_of(f"{ask['nonce']} what did I say?")
            yield ask["text"] == wanted, f"{ask['nonce']} ({ask['kind']}) got {ask['text']!r}"


@invariant("I7", "asks of every kind, of every surface, are completed")
def every_kind_is_answered(found: Evidence) -> Cases:
    """I7. A kind of which every ask fails would fill no other row."""
    tried = Counter(ask["kind"] for ask in found.asks)
    completed = {ask["kind"] for ask in found.asks if ask["outcome"] == "completed"}
    for kind in REQUEST_KINDS:
        if tried[kind] >= TRIED:
            yield kind in completed, f"{kind}: {tried[kind]} asks"


@invariant("I8", "another caller's task is not found")
def others_tasks_are_hidden(found: Evidence) -> Cases:
    """I8, for GetTask alone; tests/tenancy has all routes and callers."""
    for peek in found.lines["peek"]:
        if peek["code"] == TASK_NOT_FOUND or peek["outcome"] != "refused":
            yield peek["code"] == TASK_NOT_FOUND, f"{peek['task_id']}: {peek['outcome']} {peek['text']}"


@invariant("I9", "one Idempotency-Key, one task and one charge, however often and wherever it is sent")
def one_task_a_key(found: Evidence) -> Cases:
    """I9. The key of an ask that was not delivered (`not_delivered`) is free, and may be used again."""
    for nonce, asks in found.by_nonce.items():
        if not asks[0]["keyed"]:
            continue
        tasks = {ask["task_id"] for ask in asks if ask["outcome"] == "completed"}
        charged = [turn for turn in found.turns_of.get(nonce, []) if turn["usage_day"] is not None]
        yield len(tasks) <= 1 and len(charged) <= 1, f"{nonce}: tasks {tasks}, {len(charged)} charges"


@invariant("I9", "a keyed ask that goes on is answered")
def keyed_asks_are_answered(found: Evidence) -> Cases:
    """I9. A refusal by admission is an answer, too; an error is not, because the load sends no wrong request."""
    for keyed in found.lines["keyed"]:
        ok = keyed["outcome"] in ("completed", "failed")
        said = f"{keyed['status']} {keyed['outcome']} {keyed['text']}"
        yield ok, f"{keyed['nonce']} ({keyed['kind']}, {keyed['fault']}, {keyed['attempts']} attempts): {said}"


@invariant("I9", "a prompt is sent to one socket, once")
def prompts_go_out_once(found: Evidence) -> Cases:
    """I9, at the agent: the hub sends a prompt once."""
    sockets: dict[str, list[int]] = defaultdict(list)
    for prompt in found.lines["prompt"]:
        sockets[prompt["chat_id"]].append(prompt["socket"])
    for chat_id, got in sockets.items():
        yield len(got) == 1, f"{chat_id} went to sockets {got}"


@invariant("I10", "streams are complete after breaks: every event once, in order, to the end in the table")
def streams_are_complete(found: Evidence) -> Cases:
    """I10, of streams that the caller read without a break."""
    for ask, ok, detail in _streams(found):
        if not ask["cuts"]:
            yield ok, detail


@invariant("I10", "streams that their reader cuts 1 to 5 times are complete, too")
def cut_streams_are_complete(found: Evidence) -> Cases:
    """I10, of streams that the caller cut and followed again, up to their end."""
    for ask, ok, detail in _streams(found):
        if ask["cuts"]:
            yield ok, f"{detail}, {ask['cuts']} cuts"


def _streams(found: Evidence) -> Iterator[tuple[Line, bool, str]]:
    """The streams whose end the hub stored: whether each is complete, and a description."""
    last = {task["id"]: task["seq"] for task in found.rows(SEQS)}
    for ask in found.asks:
        if ask["kind"] != "v1 stream" or not ask["events"] or ask["outcome"] not in ("completed", "failed"):
            continue
        if any(text in ask["text"] for text in UNRECORDED):
            continue
        events, end = ask["events"], last.get(ask["task_id"])
        first = events[0]  # 0 is the task as it began; a refusal is told by event 1 alone
        ok = first in (0, 1) and events == list(range(first, events[-1] + 1)) and end == events[-1]
        yield ask, ok, f"{ask['task_id']}: {events}, the table's last is {end}"


@invariant("I11", "webhooks arrive at least once, signed, each event under one id")
def webhooks_arrive(found: Evidence) -> Cases:
    """I11: each completed turn of an agent with a webhook has one delivery, which arrives signed under one id."""
    told: dict[str, set[str]] = defaultdict(set)
    for line in found.lines["webhook"]:
        told[line["event_id"]].add(line["digest"] if line["is_signed"] else "unsigned")
    queued: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for delivery in found.rows(OUTBOX):
        queued[json.loads(delivery["payload"])["routeId"]].append(delivery)
    for turn in found.turns:
        is_heard = turn["handle"] and turn["handle"].startswith("owner-0/")
        if not is_heard or turn["outcome"] not in ("completed", "failed"):
            continue
        for delivery in queued.get(turn["chat_id"], []):
            heard = told.get(delivery["event_id"], set())
            ok = delivery["status"] == "delivered" and len(heard) == 1 and "unsigned" not in heard
            yield ok, f"{delivery['event_id']}: {delivery['status']}, heard as {heard}"
        if turn["outcome"] == "completed":
            count = len(queued.get(turn["chat_id"], []))
            yield count == 1, f"{turn['chat_id']} is in the outbox {count} times"


@invariant("F15", "asks admitted during a rolling restart are answered")
def nothing_lost_in_a_drain(found: Evidence) -> Cases:
    """F15. The hub answers each ask that it admitted during a restart; a refused ask may be repeated."""
    for ask in found.asks:
        if ask["began_in"] != "F15" or ask["keyed"] or ask["outcome"] == "unsent":
            continue
        taken = [turn for turn in found.turns_of.get(ask["nonce"], []) if turn["outcome"] != "denied"]
        ok = ask["outcome"] not in ("broken", "late") or not taken
        yield ok, f"{ask['nonce']} ({ask['kind']}): {ask['text']}, in the audit {[t['reason'] for t in taken]}"


@invariant("F2", "a delivery that a killed worker was sending arrives within 60 s and 30 for a busy machine")
def deliveries_come_again(found: Evidence) -> Cases:
    """F2. The lease of a delivery is 60 s; the sweep after its end sends the delivery again."""
    at = {one["event_id"]: one["delivered_at"] for one in found.rows(DELIVERED)}
    last = {line["event_id"]: line for line in found.lines["held"]}  # it may have met the next kill too
    for held in last.values():
        told = at.get(held["event_id"])
        took_s = told.timestamp() - held["at"] if told else None
        yield took_s is not None and took_s <= AGAIN_WITHIN_S, f"{held['event_id']}: after {took_s} s"


@invariant("F6", "no 5xx but 503 with Retry-After, under every fault")
def errors_say_when_to_retry(found: Evidence) -> Cases:
    """F6, and all others: a hub that cannot serve answers 503 with Retry-After."""
    for said in (line for op in ("ask", "read", "reread", "peek") for line in found.lines[op]):
        if said["outcome"] == "refused":
            ok = said["status"] < 500 or (said["status"] == 503 and said["retry_after"])
            where = f"{said['op']}, {said.get('kind')}, {said.get('began_in') or said['fault']}"
            yield ok, f"{said['nonce']} ({where}): {said['status']} {said['text']}"


@invariant("F3", "no ask hangs: each has an answer, or an end, within its wait and 40 s")
def no_ask_hangs(found: Evidence) -> Cases:
    """F3, and all others: an ask that ran out of time is a violation, unless its process was paused meanwhile."""
    for ask in found.asks:
        ok = ask["outcome"] != "late" or found.met_pause(ask)
        yield ok, f"{ask['nonce']} ({ask['kind']}, {ask['began_in']})"
