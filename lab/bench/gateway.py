"""`python -m lab.bench.gateway`: what the gateway of agent teams does in a second, and what a seat takes.

Told messages with audit; the same between connected agents without storing them; a broadcast to a thousand seats;
a message that is answered beside an ask over A2A of the same agent; the memory of an idle seat.

The hub has one core, its clients, in this process, the other one; their frames are made beforehand. Each wait has
a deadline: the bench ends by itself.
"""

import argparse
import asyncio
import itertools
import json
import os
import re
import resource
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from statistics import median
from typing import Any

import httpx
import uvloop

from lab.bench import targets
from lab.bench.cores import LOAD_CORE
from lab.bench.report import goal, table
from lab.bench.sockets import RawSocket
from lab.bench.targets import QUESTION, Target

SENDERS = 60
TOLD_A_SECOND, RELAYED_A_SECOND = 25, 90  # of each sender: below the rate of one client
ASKS_A_SECOND = 90  # of the one seat that answers them, for the same reason
SECONDS = 5
SEATS = 1_000
BROADCASTS = 20
ROUNDS = 5
ASKS = 100
AT_ONCE = 8
TRIES = 5
WARM_UP = 20
TICK_S = 0.005
IDLE, IDLE_FOR_S = 0.1, 0.5
CONNECTED_WITHIN_S, ARRIVED_WITHIN_S, SETTLED_WITHIN_S, WITHIN_S = 240.0, 60.0, 60.0, 30.0
TOLD_GOAL, RELAYED_GOAL = 1_000.0, 5_000.0
FAN_OUT_GOAL_MS, SEAT_GOAL_KIB, ANSWERED_GOAL = 200.0, 30.0, 1.3
SENT_AT = b'"sent":'
STAMP_DIGITS, ID_DIGITS = 19, 9
STAMP_BASE = 10**18  # so that each time has as many digits

_numbers = itertools.count(1)
_began = time.monotonic()


class BenchError(Exception):
    """Something was not done in time."""


def say(text: str) -> None:
    """Print progress, with the seconds since the start."""
    print(f"  {time.monotonic() - _began:6.1f} s  {text}", flush=True)


@asynccontextmanager
async def deadline(within_s: float, what: str) -> AsyncIterator[None]:
    """End the bench if something takes longer."""
    try:
        async with asyncio.timeout(within_s):
            yield
    except TimeoutError:
        raise BenchError(f"not within {within_s:g} s: {what}") from None


class Seat(RawSocket):
    """A client of the gateway; with a name it is an agent. `took_ms`: how long each message was on its way."""

    def __init__(self, token: str, name: str = "") -> None:
        asked = f"?agentId={name}" if name else ""
        super().__init__(
            f"/gateway{asked}", f"Authorization: Bearer {token}\r\nSec-WebSocket-Protocol: a2a-v1\r\n"
        )
        self.took_ms: list[float] = []
        self.refused = 0
        self.welcomed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.answered: asyncio.Future[None] | None = None
        self._told: tuple[bytes, bytes, bytes] = (b"", b"", b"")

    def begin(self) -> None:
        self.send("handshake", {"action": "advertise", "capabilities": {"version": "1.0.0"}})

    def take(self, payload: bytes) -> None:
        now = stamp()
        if (start := payload.find(SENT_AT)) >= 0:  # most of them by far: not read as JSON
            start += len(SENT_AT)
            self.took_ms.append((now - int(payload[start : start + STAMP_DIGITS])) / 1e6)
            return
        frame = json.loads(payload)
        match frame["type"]:
            case "message" if frame["metadata"].get("requiresResponse"):
                about = {"correlationId": frame["metadata"]["correlationId"]}
                self.send("message", {"role": "agent", "content": "echo"}, agent=frame["from"], metadata=about)
            case "message" if self.answered is not None and not self.answered.done():
                self.answered.set_result(None)
            case "handshake":
                self.welcomed.set_result(None)
            case "error" if self.answered is not None and not self.answered.done():
                self.answered.set_exception(BenchError(f"an ask was refused: {frame}"))
            case "error":
                self.refused += 1

    def fail(self, why: object) -> None:
        if self.welcomed.done():
            say(f"a seat is lost: {why!r}")
        else:
            self.welcomed.set_exception(ConnectionError(str(why)))

    def send(self, type_name: str, content: dict[str, Any], **fields: Any) -> None:
        """Send a frame."""
        frame = {"type": type_name, "id": f"bench-{next(_numbers)}", "content": content, **fields}
        self.send_text(json.dumps(frame).encode())

    def prepare(self, agent: str) -> None:
        """Make the message for `tell` but for its id and time."""
        content = {"role": "agent", "content": {"sent": "TIME"}}
        frame = {"type": "message", "id": "bench-NUMBER", "agent": agent, "content": content}
        head, _, rest = json.dumps(frame, separators=(",", ":")).encode().partition(b"NUMBER")
        middle, _, tail = rest.partition(b'"TIME"')
        self._told = head, middle, tail

    def tell(self) -> None:
        """Send a message that wants no response."""
        head, middle, tail = self._told
        self.send_text(b"%b%0*d%b%d%b" % (head, ID_DIGITS, next(_numbers), middle, stamp(), tail))

    async def ask(self, agent: str, text: str) -> None:
        """Send a message and wait for its response."""
        self.answered = asyncio.get_running_loop().create_future()
        about = {"requiresResponse": True, "correlationId": f"bench-{next(_numbers)}"}
        self.send("message", {"role": "user", "content": text}, agent=agent, metadata=about)
        await self.answered


def stamp() -> int:
    """The time in nanoseconds, in STAMP_DIGITS digits."""
    return time.perf_counter_ns() + STAMP_BASE


async def connect(port: int, token: str, names: Sequence[str]) -> list[Seat]:
    """Seats of these names; without a name a client. One that the hub sends away comes back, as programs do."""
    room, done, again = asyncio.Semaphore(AT_ONCE), itertools.count(1), itertools.count()
    loop = asyncio.get_running_loop()

    async def one(name: str) -> Seat:
        async with room:
            for left in reversed(range(TRIES)):
                try:
                    _, seat = await loop.create_connection(lambda: Seat(token, name), "127.0.0.1", port)
                    await seat.welcomed
                    break
                except ConnectionError:
                    if not left:
                        raise
                    next(again)
                    await asyncio.sleep(1)
            if not (count := next(done)) % 100:
                say(f"{count} of {len(names)} seats are connected")
            return seat

    async with deadline(CONNECTED_WITHIN_S, f"{len(names)} seats are connected"):
        seats = await asyncio.gather(*map(one, names))
    if tried := next(again):
        say(f"{tried} connections were sent away and came back")
    return seats


@dataclass(frozen=True)
class Told:
    """One run of told messages. `cpu`: the share of its core that the hub's process had; `carried`: messages that
    a second of its processor time carried.
    """

    a_second: float
    p95_ms: float
    cpu: float
    carried: float


async def measure_told(target: Target, token: str, seconds: int, rate: int) -> Told:
    """Messages that arrived in a second. Each sender has its own recipient, and sends `rate` in a second."""
    senders = await connect(target.port, token, [f"sender-{number}" for number in range(SENDERS)])
    recipients = await connect(target.port, token, [f"recipient-{number}" for number in range(SENDERS)])
    for number, one in enumerate(senders):
        one.prepare(f"recipient-{number}")
    await settle(target)
    wanted = SENDERS * rate * seconds
    cpu_s, began = target.server.cpu_s(), time.perf_counter()
    sent = 0
    while sent < wanted:
        due = min(wanted, int((time.perf_counter() - began) * SENDERS * rate) + 1)
        for number in range(sent, due):
            senders[number % SENDERS].tell()
        sent = due
        await asyncio.sleep(TICK_S)

    def count() -> int:
        return sum(len(one.took_ms) for one in recipients)

    arrived, took_s = count(), time.perf_counter() - began
    say(f"sent {sent} in {took_s:.1f} s, {arrived} have arrived")
    async with deadline(ARRIVED_WITHIN_S, "all messages arrived or were refused"):
        while arrived + sum(one.refused for one in senders) < sent:
            await asyncio.sleep(TICK_S)
            if (now := count()) > arrived:
                arrived, took_s = now, time.perf_counter() - began
    await settle(target)  # the records of the audit, too
    cpu_s = target.server.cpu_s() - cpu_s
    refused = sum(one.refused for one in senders)
    say(f"{arrived} arrived in {took_s:.1f} s, {refused} refused; the hub worked {cpu_s:.1f} s for them")
    took_ms = [took for one in recipients for took in one.took_ms]
    await leave(target, [*senders, *recipients])
    return Told(arrived / took_s, p95(took_ms), cpu_s / took_s, arrived / cpu_s)


async def measure_fan_out(target: Target, token: str, seats: int) -> tuple[float, float]:
    """The p95 of a broadcast's way to each seat in ms, and the KiB that an idle seat takes. For a fresh hub."""
    warm_up = await connect(target.port, token, [f"warm-{number}" for number in range(WARM_UP)])
    await settle(target)
    before_kib = target.server.rss_kib()
    agents = await connect(target.port, token, [f"agent-{number}" for number in range(seats - WARM_UP)])
    await settle(target)
    seat_kib = (target.server.rss_kib() - before_kib) / len(agents)
    everyone = [*warm_up, *agents]
    sender, everyone = everyone[0], everyone[1:]
    for number in range(BROADCASTS):
        sender.send("broadcast", {"message": {"sent": stamp()}})
        async with deadline(WITHIN_S, f"broadcast {number + 1} arrived everywhere"):
            while any(len(one.took_ms) <= number for one in everyone):
                await asyncio.sleep(TICK_S)
    say(f"{BROADCASTS} broadcasts arrived at {len(everyone)} seats")
    await leave(target, [*everyone, sender])
    return p95([took for one in everyone for took in one.took_ms]), seat_kib


async def measure_answered(target: Target, rounds: int, asks: int) -> float:
    """How many times an ask over A2A a message takes that the same seat answers; the median of the rounds."""
    session_token = token_of(target)
    (seat,) = await connect(target.port, target.channel_token, ["oracle"])
    caller = replace(
        target.callers[0], path=f"/api/a2a/v1/agents/{await publish(target, session_token, 'oracle')}"
    )
    (client,) = await connect(target.port, session_token, [""])
    template = replace(target, callers=(caller,)).templates("SendMessage")[0]

    async def over_gateway(number: int) -> None:
        await client.ask("oracle", f"say: {QUESTION}{number}")

    async def over_a2a(number: int) -> None:
        writer.write(template.fill(number))
        head = (await reader.readuntil(b"\r\n\r\n")).lower()
        length = re.search(rb"content-length: (\d+)", head)
        if template.answered not in (body := (await reader.readexactly(int(length[1]) if length else 0)).decode()):
            raise RuntimeError(body)

    async def times(ask: Callable[[int], Awaitable[None]]) -> float:
        took: list[float] = []
        async with deadline(WITHIN_S + asks, f"{asks} asks were answered"):
            for _ in range(asks):
                began = time.perf_counter()
                await ask(next(_numbers))
                took.append(time.perf_counter() - began)
                await asyncio.sleep(max(0.0, 1 / ASKS_A_SECOND - took[-1]))
        return median(took)

    ratios: list[float] = []
    for number in range(rounds):
        took_s = await times(over_gateway)
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)  # the hub closes idle ones
        a2a_s = await times(over_a2a)
        writer.close()
        ratios.append(took_s / a2a_s)
        say(f"round {number + 1} of {rounds}: p50 {1000 * took_s:.1f} ms, over A2A {1000 * a2a_s:.1f} ms")
    await leave(target, [client, seat])
    return median(ratios)


async def publish(target: Target, token: str, name: str) -> str:
    """Publish a seat; its handle."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{target.port}") as client:
        headers = {"Authorization": f"Bearer {token}"}
        listed = (await client.get("/api/v1/sessions", headers=headers)).json()["items"]
        session = next(str(one["id"]) for one in listed if one["routingName"] == f"@{name}")
        wanted = {"sessionId": session, "name": name, "status": "published", "dailyBudgetQueries": 100_000}
        made = await client.post("/api/v1/agents", json=wanted, headers=headers)
        made.raise_for_status()
        return str(made.json()["handle"]).removeprefix("@")


def token_of(target: Target) -> str:
    """The session token of the team's owner."""
    headers = dict(line.split(": ", 1) for line in target.callers[0].headers.splitlines())
    return headers["Authorization"].removeprefix("Bearer ")


async def leave(target: Target, seats: Sequence[Seat]) -> None:
    """Close these sockets, and wait until the hub has noted it."""
    for seat in seats:
        seat.leave()
    await settle(target)


async def settle(target: Target) -> None:
    """Wait until the hub has little to do."""
    async with deadline(SETTLED_WITHIN_S, "the hub has little to do"):
        while True:
            before_s = target.server.cpu_s()
            await asyncio.sleep(IDLE_FOR_S)
            if target.server.cpu_s() - before_s < IDLE * IDLE_FOR_S:
                return


async def set_policy(target: Target, token: str, **policy: object) -> None:
    """Change the rules of the team."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{target.port}") as client:
        headers = {"Authorization": f"Bearer {token}"}
        (await client.patch("/api/v1/team/policy", json=policy, headers=headers)).raise_for_status()


async def measure(target: Target, options: argparse.Namespace) -> list[list[str]]:
    """Each figure beside its goal."""
    token = target.channel_token
    say("told messages, each a turn")
    told = await measure_told(target, token, options.seconds, TOLD_A_SECOND)
    await set_policy(target, token_of(target), storesTold=False)
    say("told messages, not stored")
    relayed = await measure_told(target, token, options.seconds, RELAYED_A_SECOND)
    say("answered messages")
    answered = await measure_answered(target, options.rounds, options.asks)
    for what, one in (("with a turn", told), ("not stored", relayed)):
        print(
            f"  told, {what}: way p95 {one.p95_ms:.1f} ms; the hub had {one.cpu:.0%} of its core,"
            f" and a second of it carries {one.carried:.0f}"
        )
    return [
        goal("told messages a second, each a turn", "at least", TOLD_GOAL, told.a_second),
        goal("told messages a second, not stored", "at least", RELAYED_GOAL, relayed.a_second),
        goal("answered message beside an A2A ask", "at most", ANSWERED_GOAL, answered),
    ]


async def measure_seats(target: Target, options: argparse.Namespace) -> list[list[str]]:
    """The figures of a fresh hub with many seats, each beside its goal."""
    say(f"a broadcast to {options.seats} seats")
    fan_out_ms, seat_kib = await measure_fan_out(target, target.channel_token, options.seats)
    return [
        goal(f"broadcast to {options.seats} seats: p95, ms", "under", FAN_OUT_GOAL_MS, fan_out_ms),
        goal("an idle seat, KiB", "under", SEAT_GOAL_KIB, seat_kib),
    ]


def p95(took: Sequence[float]) -> float:
    """The 95th percentile; 0 without any."""
    return sorted(took)[len(took) * 95 // 100] if took else 0.0


def main() -> None:
    """Measure each home; print a table of the goals."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench.gateway", description=main.__doc__)
    parser.add_argument("--homes", default="embedded")
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"of sending (default {SECONDS})")
    parser.add_argument("--seats", type=int, default=SEATS, help=f"for a broadcast (default {SEATS})")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of answered messages (default {ROUNDS})")
    parser.add_argument("--asks", type=int, default=ASKS, help=f"in a round (default {ASKS})")
    options = parser.parse_args()
    os.sched_setaffinity(0, {LOAD_CORE})
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
    with targets.temporary_folder() as folder:
        for home in options.homes.split(","):
            print(f"{home}, gateway", flush=True)
            rows: list[list[str]] = []
            for part in (measure, measure_seats):
                with targets.hub(f"{home} 1.0", folder, users=1, GATEWAY="1") as target:
                    try:
                        rows += uvloop.run(part(target, options))
                    except (BenchError, ConnectionError) as failure:
                        say(f"FAILED: {failure}\n{target.server.last_output()}")
            print(f"\n{table(['goal', 'wanted', 'measured', ''], rows)}\n", flush=True)


if __name__ == "__main__":
    main()
