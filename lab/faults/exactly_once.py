"""I17 and I18: bookings of outside programs, and messages that wait for an agent that is away."""

from collections import Counter, defaultdict
from typing import Any
from uuid import UUID

from lab.faults.bookings import OPEN_BREAKER
from lab.faults.evidence import Evidence
from lab.faults.invariants import Cases, invariant

BOOKINGS = """
SELECT b.public_id, b.slot_id, (SELECT count(*) FROM agnt_usageevent u WHERE u.booking_id = b.id) AS charges
FROM agnt_booking b
"""
CANCELLATIONS = "SELECT public_id FROM agnt_cancellation WHERE state IN ('asking', 'owed', 'told')"


@invariant("I17", "a confirmation is one booking and one charge, however often and wherever it is sent")
def one_booking_a_confirmation(found: Evidence) -> Cases:
    """I17. A confirmation without an answer may have a booking, too, but never two."""
    stored: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for booking in found.rows(BOOKINGS):
        stored[booking["slot_id"]].append(booking)
    told: dict[str, set[str]] = defaultdict(set)
    for line in found.lines["confirm"]:
        told[line["nonce"]] |= {_plain(line["booking_id"])} if line["outcome"] == "completed" else set()
    for nonce in {*told, *stored}:
        is_known = nonce in told
        ids = {_plain(booking["public_id"]) for booking in stored[nonce]}
        charges = [booking["charges"] for booking in stored[nonce]]
        is_one = charges in ([], [1]) and (ids == told[nonce] or not told[nonce])
        yield is_one and is_known, f"{nonce}: told {told[nonce]}, stored {ids}, charges {charges}"


@invariant("I17", "a confirmation that is repeated is answered")
def confirmations_are_answered(found: Evidence) -> Cases:
    """I17. That the venue fails too often is an answer, too."""
    for line in found.lines["confirmed"]:
        ok = line["outcome"] == "completed" or line["text"] == OPEN_BREAKER
        tried = f"{line['nonce']} ({line['fault']}, {line['attempts']} attempts)"
        yield ok, f"{tried}: {line['outcome']} {line['text']}"


@invariant("I17", "an order that a venue got is a booking, or is cancelled at the venue, and not both")
def orders_are_booked_or_cancelled(found: Evidence) -> Cases:
    """I17. The envelope with the cancellation may be due later than the end of the run."""
    booked = {_plain(booking["public_id"]) for booking in found.rows(BOOKINGS)}
    owed = {_plain(row["public_id"]) for row in found.rows(CANCELLATIONS)}
    cancelled = {_plain(line["booking_id"]) for line in found.lines["cancel"]} | owed
    for line in found.lines["order"]:
        booking_id = _plain(line["booking_id"])
        ways = [name for name, ids in (("booked", booked), ("cancelled", cancelled)) if booking_id in ids]
        yield len(ways) == 1, f"{booking_id}, slot {line['nonce']}: {ways}"


@invariant("I18", "a message that the hub has stored for an agent that is away arrives")
def stored_messages_arrive(found: Evidence) -> Cases:
    """I18: each message that was confirmed as stored."""
    received = {line["nonce"] for line in found.lines["received"]}
    for line in found.lines["letter"]:
        if line["outcome"] == "stored":
            yield line["nonce"] in received, f"{line['nonce']} ({line['owner']}, {line['began_in']})"


@invariant("I18", "a message comes once to one connection of its agent")
def messages_come_once(found: Evidence) -> Cases:
    """I18. After a crash or a lost connection the hub may deliver a message again, to another connection."""
    came = Counter((line["nonce"], line["owner"], line["socket"]) for line in found.lines["received"])
    for (nonce, owner, socket), times in came.items():
        yield times == 1, f"{nonce} came {times} times to connection {socket} of {owner}"


@invariant("I18", "no request for an inbox hangs")
def inboxes_answer(found: Evidence) -> Cases:
    """I18: each request ends, with the connection at the latest, unless its process was paused meanwhile."""
    for line in found.lines["letter"]:
        if line["is_put"]:
            ok = line["outcome"] != "late" or found.met_pause(line)
            yield ok, f"{line['nonce']} ({line['owner']}, {line['began_in']})"


def _plain(booking_id: object) -> str:
    """An id of a booking as envelopes, PostgreSQL and SQLite write it."""
    return UUID(str(booking_id)).hex
