"""A client and a venue in JavaScript, written from the protocol's description, with a hub between them."""

import asyncio
import json
import os
import shutil
from asyncio.subprocess import PIPE
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lab.callers import bearer, web
from lab.frames import Json
from lab.processes import Program, free_port
from lab.waiting import eventually
from tests.agnt import venues
from tests.agnt.venues import Keeper, secret_of
from tests.agnt.wire import add_venue, count, stamp
from tests.channel.agents import sql

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="node is not installed")
PROGRAMS = Path(__file__).parent / "foreign"
WITHIN_S = 60
keeper = venues.private_keeper


@dataclass(frozen=True)
class Place:
    """A venue that listens itself, in Node, and all that came to it."""

    slug: str
    program: Program

    @property
    def asked(self) -> list[Json]:
        """The envelopes that came, and whether their signatures were right."""
        return [json.loads(line) for line in self.program.output.splitlines()[1:]]


@contextmanager
def place(keeper: Keeper, folder: Path, slug: str = "la-brisa") -> Iterator[Place]:
    """A running venue of a network."""
    port = free_port()
    venue_id = add_venue(keeper.hub, keeper.login, slug, url=f"http://127.0.0.1:{port}/a2a/v1", agent_name=slug)
    secret = secret_of(keeper.hub, venue_id).hex()
    env = {"PATH": os.environ["PATH"], "PORT": str(port), "AGNT_SECRET": secret}
    command = ["node", str(PROGRAMS / "venue.mjs")]
    with Program(
        command, folder / f"{slug}.log", env=env, is_ready=lambda one: bool(one.output.strip())
    ) as program:
        yield Place(slug, program)


async def ask(keeper: Keeper, *envelopes: Json) -> list[Json]:
    """The answers to these envelopes of the client, one after the other; none breaks a rule of the protocol."""
    env = {
        "PATH": os.environ["PATH"],
        "AGNT_URL": f"{keeper.hub.url}/a2a/v1",
        "AGNT_KEY": keeper.key.token,
        "AGNT_SECRET": keeper.key.secret,
    }
    program = await asyncio.create_subprocess_exec(
        *("node", str(PROGRAMS / "client.mjs")), env=env, stdin=PIPE, stdout=PIPE, stderr=PIPE
    )
    lines = "".join(f"{json.dumps(one)}\n" for one in envelopes)
    async with asyncio.timeout(WITHIN_S):
        printed, errors = await program.communicate(lines.encode())
    assert program.returncode == 0, errors.decode()
    answers: list[Json] = [json.loads(line) for line in printed.splitlines()]
    broken = {number: one["broken"] for number, one in enumerate(answers) if one["broken"]}
    assert not broken
    assert len(answers) == len(envelopes)
    return answers


def order(note: str = "is free", **fields: object) -> Json:
    payload = {"venue_id": "la-brisa", "time": "19:30", "party_size": 2, "user_note": note}
    return {"intent": "booking.confirm", "payload": payload, **fields}


async def test_a_booking_from_the_first_ping_to_the_replay(keeper: Keeper, tmp_path: Path) -> None:
    at = stamp()
    with place(keeper, tmp_path) as venue:
        pong, listed, found, booked, again, other, forged, unknown = await ask(
            keeper,
            {"intent": "network.ping"},
            {"intent": "venue.list", "payload": {"location": "canggu"}},
            {"intent": "booking.search", "payload": {"query": "brisa"}},
            order(timestamp=at),
            order(timestamp=at),
            order("is full", timestamp=at),
            order(tampered={"party_size": 20}),
            {"intent": "booking.dance"},
        )
    assert (pong["payload"]["active_venues"], pong["payload"]["tier"]) == (1, "pro")
    assert [one["slug"] for one in listed["payload"]["venues"]] == ["la-brisa"]
    assert [one["slug"] for one in found["payload"]["results"]] == ["la-brisa"]
    made = booked["payload"]
    assert (made["status"], made["slot_time"]) == ("pending", "20:00")
    assert (made["party_size"], made["note"]) == (2, "upstairs")
    assert (again["isReplay"], again["payload"]["booking_id"]) == (True, made["booking_id"])
    refusals = [(one["status"], one["error"]) for one in (other, forged, unknown)]
    assert refusals == [(409, "idempotency_conflict"), (401, "invalid_signature"), (400, "unknown_intent")]
    [asked] = venue.asked
    assert asked["isSigned"]
    assert (asked["envelope"]["intent"], asked["envelope"]["to"]) == ("booking.confirm", "la-brisa")
    assert keeper.bookings() == (1, 1)


# What the venue does, as the guest's note asks it; what the caller gets; whether the venue may hold a reservation.
CASES = [
    ("is full", 409, "slot_unavailable", False),
    ("takes no orders now", 429, "rate_limited", False),
    ("answers nonsense", 502, "venue_unreachable", True),
    ("hangs up", 502, "venue_unreachable", True),
    ("waits 3000", 504, "ttl_exceeded", True),
]
# Not one that is being sent: the end of its lease is in the same column.
DUE = "UPDATE agnt_cancellation SET next_attempt_at = ? WHERE state IN ('asking', 'owed') AND attempts = 0"


async def until_told(keeper: Keeper, venue: Place) -> None:
    """Return once the venue was told to cancel the one order, and its owner reads that it acknowledged it."""
    now = datetime.now(UTC)
    sql(keeper.hub, DUE, f"{now:%Y-%m-%d %H:%M:%S.%f}")
    token = keeper.hub.mint(keeper.login, "session")
    async with web(keeper.hub.url, headers=bearer(token)) as client:

        async def is_told() -> bool:
            items = (await client.get("/api/v1/network/cancellations")).json()["items"]
            return [one["state"] for one in items] == ["told"]

        await eventually(is_told, "the venue is told", within_s=WITHIN_S)
    order, cancel = [one["envelope"] for one in venue.asked]
    assert all(one["isSigned"] for one in venue.asked)
    assert cancel["intent"] == "booking.cancel"
    assert cancel["payload"]["booking_id"] == order["payload"]["booking_id"]


@pytest.mark.parametrize(("note", "status", "code", "is_told"), CASES, ids=[case[0] for case in CASES])
async def test_what_a_venue_that_does_not_confirm_makes_of_a_booking(
    keeper: Keeper, tmp_path: Path, note: str, status: int, code: str, *, is_told: bool
) -> None:
    with place(keeper, tmp_path) as venue:
        [answer] = await ask(keeper, order(note, ttl_ms=1500))
        assert (answer["status"], answer["error"]) == (status, code)
        assert len(venue.asked) == 1
        if is_told:
            await until_told(keeper, venue)
        else:
            assert count(keeper.hub, keeper.login, "agnt_cancellation") == 0
    assert keeper.bookings() == (0, 0)
    assert count(keeper.hub, keeper.login, "agnt_interaction", f"status = '{code}'") == 1


async def test_a_venue_that_is_not_there_is_told_nothing(keeper: Keeper) -> None:
    add_venue(keeper.hub, keeper.login, "la-brisa", url=f"http://127.0.0.1:{free_port()}/a2a/v1")
    [answer] = await ask(keeper, order())
    assert (answer["status"], answer["error"]) == (502, "venue_unreachable")
    assert keeper.bookings() == (0, 0)
    assert count(keeper.hub, keeper.login, "agnt_cancellation") == 0


async def test_a_venue_whose_hub_was_killed_while_it_was_asked_is_told_to_cancel(
    keeper: Keeper, tmp_path: Path
) -> None:
    with place(keeper, tmp_path) as venue:
        asking = asyncio.create_task(ask(keeper, order("waits 1500", ttl_ms=15_000)))

        async def is_asked() -> bool:
            return bool(venue.asked)

        await eventually(is_asked, "the venue is asked", within_s=WITHIN_S)
        keeper.hub.kill9()
        await asyncio.gather(asking, return_exceptions=True)
        await asyncio.to_thread(keeper.hub.serve, 0)
        await until_told(keeper, venue)
    assert keeper.bookings() == (0, 0)


async def test_a_caller_cancels_and_its_venue_is_told_by_the_venues_own_id(keeper: Keeper, tmp_path: Path) -> None:
    with place(keeper, tmp_path) as venue:
        [booked] = await ask(keeper, order())
        about = {"booking_id": booked["payload"]["booking_id"]}
        cancelled, now = await ask(
            keeper,
            {"intent": "booking.cancel", "payload": about},
            {"intent": "booking.status", "payload": about},
        )
        assert (cancelled["payload"]["status"], now["payload"]["status"]) == ("cancelled", "cancelled")
        await until_told(keeper, venue)
        assert venue.asked[1]["envelope"]["payload"]["venue_booking_id"] == "T-104"
    assert keeper.bookings() == (1, 1)
