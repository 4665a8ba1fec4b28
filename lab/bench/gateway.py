"""`python -m lab.bench.gateway`: what the gateway of agent teams does in a second, and what a seat takes.

Told messages with audit; the same between connected agents without storing them; a broadcast to a thousand seats;
a message that is answered beside an ask over A2A of the same agent; the memory of an idle seat.

The hub has one core, its clients, in this process, the other one; their frames are made beforehand. Each wait has
a deadline: the bench ends by itself.
"""

import asyncio
import itertools
import json
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import uvloop

from lab.bench import command, hubs, streams
from lab.bench.agents import RawSocket, dial
from lab.bench.client import QUESTION, connected, fetch_json, question_template
from lab.bench.command import Option, Options, bench, show_progress
from lab.bench.hubs import AGENTS_PATH, BenchTarget
from lab.figures import BenchResult, median_ratio, percentile

SENDERS = 60
TOLD_A_SECOND, RELAYED_A_SECOND = 25, 90  # messages of each sender: below the rate limit of one client
ASKS_A_SECOND = 90  # of the one seat that answers them, for the same reason
SEATS = 1_000
BROADCASTS = 20
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
TOLD_HEAD = ("told messages", "way p95 ms", "share of the hub's core", "carried by a second of it")
STAMP_BASE = 10**18  # so that all times have the same number of digits

_numbers = itertools.count(1)


class BenchError(Exception):
    """A step of the bench was not done in time."""


@asynccontextmanager
async def deadline(within_s: float, what: str) -> AsyncIterator[None]:
    """Raise BenchError if the block takes longer."""
    try:
        async with asyncio.timeout(within_s):
            yield
    except TimeoutError:
        raise BenchError(f"not within {within_s:g} s: {what}") from None


class SeatSocket(RawSocket):
    """A client of the gateway; with a name it is an agent. `took_ms`: how long each message was on its way."""

    def __init__(self, token: str, name: str = "") -> None:
        asked = f"?agentId={name}" if name else ""
        super().__init__(
            f"/gateway{asked}", f"Authorization: Bearer {token}\r\nSec-WebSocket-Protocol: a2a-v1\r\n"
        )
        self.took_ms: list[float] = []
        self.refused = 0
        self.answered: asyncio.Future[None] | None = None
        self._told: tuple[bytes, bytes, bytes] = (b"", b"", b"")

    def begin(self) -> None:
        self.send("handshake", {"action": "advertise", "capabilities": {"version": "1.0.0"}})

    def take(self, payload: bytes) -> None:
        now = stamp()
        # By far the most frequent frames: not parsed as JSON, to save time.
        if (start := payload.find(SENT_AT)) >= 0:
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

    def lost(self, why: object) -> None:
        show_progress(f"a seat is lost: {why!r}")

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


async def connect(port: int, token: str, names: Sequence[str]) -> list[SeatSocket]:
    """Seats of these names; without a name a client. A seat that the hub closes connects again, as programs do."""
    room, done, again = asyncio.Semaphore(AT_ONCE), itertools.count(1), itertools.count()

    async def one(name: str) -> SeatSocket:
        async with room:
            for left in reversed(range(TRIES)):
                try:
                    seat = await dial(lambda: SeatSocket(token, name), port)
                    break
                except ConnectionError:
                    if not left:
                        raise
                    next(again)
                    await asyncio.sleep(1)
            if not (count := next(done)) % 100:
                show_progress(f"{count} of {len(names)} seats are connected")
            return seat

    async with deadline(CONNECTED_WITHIN_S, f"{len(names)} seats are connected"):
        seats = await asyncio.gather(*map(one, names))
    if tried := next(again):
        show_progress(f"{tried} connections were sent away and came back")
    return seats


@dataclass(frozen=True)
class ToldRun:
    """A run of told messages. `cpu`: the share of its core that the hub's process had; `carried`: messages that
    a second of its processor time carried.
    """

    a_second: float
    p95_ms: float
    cpu: float
    carried: float


async def measure_told(target: BenchTarget, token: str, seconds: int, rate: int) -> ToldRun:
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
    show_progress(f"sent {sent} in {took_s:.1f} s, {arrived} have arrived")
    async with deadline(ARRIVED_WITHIN_S, "all messages arrived or were refused"):
        while arrived + sum(one.refused for one in senders) < sent:
            await asyncio.sleep(TICK_S)
            if (now := count()) > arrived:
                arrived, took_s = now, time.perf_counter() - began
    await settle(target)  # waits also for the records of the audit
    cpu_s = target.server.cpu_s() - cpu_s
    refused = sum(one.refused for one in senders)
    show_progress(f"{arrived} arrived in {took_s:.1f} s, {refused} refused; the hub worked {cpu_s:.1f} s for them")
    took_ms = [took for one in recipients for took in one.took_ms]
    await leave(target, [*senders, *recipients])
    return ToldRun(arrived / took_s, percentile(took_ms, 0.95), cpu_s / took_s, arrived / cpu_s)


async def measure_fan_out(target: BenchTarget, token: str, seats: int) -> tuple[float, float]:
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
    show_progress(f"{BROADCASTS} broadcasts arrived at {len(everyone)} seats")
    await leave(target, [*everyone, sender])
    return percentile([took for one in everyone for took in one.took_ms], 0.95), seat_kib


async def measure_answered(target: BenchTarget, rounds: int, asks: int) -> float:
    """The time of a message in times of an ask over A2A to the same seat; the median of the rounds."""
    session_token = target.callers[0].token
    (seat,) = await connect(target.port, target.channel_token, ["oracle"])
    handle = await publish(target, session_token, "oracle")
    (client,) = await connect(target.port, session_token, [""])
    template = question_template(replace(target.callers[0], path=f"{AGENTS_PATH}{handle}"), "SendMessage")

    async def times(ask: Callable[[int], Awaitable[None]]) -> float:
        took: list[float] = []
        async with deadline(WITHIN_S + asks, f"{asks} asks were answered"):
            for _ in range(asks):
                began = time.perf_counter()
                await ask(next(_numbers))
                took.append(time.perf_counter() - began)
                await asyncio.sleep(max(0.0, 1 / ASKS_A_SECOND - took[-1]))
        return median(took)

    async def over_gateway(number: int) -> None:
        await client.ask("oracle", f"say: {QUESTION}{number}")

    async def over_a2a(number: int) -> None:
        await a2a.ask_ok(template.fill(number), part=template.answered.encode())

    pairs: list[tuple[float, float]] = []
    for number in range(rounds):
        took_s = await times(over_gateway)
        async with connected(target.port) as a2a:  # a new one, because the hub closes idle ones
            pairs.append((took_s, await times(over_a2a)))
        took_ms, a2a_ms = (1000 * one for one in pairs[-1])
        show_progress(f"round {number + 1} of {rounds}: p50 {took_ms:.1f} ms, over A2A {a2a_ms:.1f} ms")
    await leave(target, [client, seat])
    return median_ratio([mine for mine, _ in pairs], [base for _, base in pairs])


async def publish(target: BenchTarget, token: str, name: str) -> str:
    """Publish a seat; its handle."""
    listed = (await fetch_json(target.port, "GET", "/api/v1/sessions", token))["items"]
    session = next(str(one["id"]) for one in listed if one["routingName"] == f"@{name}")
    wanted = {"sessionId": session, "name": name, "status": "published", "dailyBudgetQueries": 100_000}
    made = await fetch_json(target.port, "POST", "/api/v1/agents", token, wanted)
    return str(made["handle"]).removeprefix("@")


async def leave(target: BenchTarget, seats: Sequence[SeatSocket]) -> None:
    """Close these sockets, and wait until the hub has recorded the disconnects."""
    for seat in seats:
        seat.leave()
    await settle(target)


async def settle(target: BenchTarget) -> None:
    """Wait until the hub has little to do."""
    async with deadline(SETTLED_WITHIN_S, "the hub has little to do"):
        while True:
            before_s = target.server.cpu_s()
            await asyncio.sleep(IDLE_FOR_S)
            if target.server.cpu_s() - before_s < IDLE * IDLE_FOR_S:
                return


async def _measure_messages(target: BenchTarget, options: Options, result: BenchResult) -> None:
    """Told messages with a turn each, the same without, and answered messages."""
    rates = {"each a turn": (TOLD_A_SECOND, TOLD_GOAL), "not stored": (RELAYED_A_SECOND, RELAYED_GOAL)}
    rows = []
    for what, (rate, wanted) in rates.items():
        show_progress(f"told messages, {what}")
        told = await measure_told(target, target.channel_token, options.seconds, rate)
        rows.append([what, f"{told.p95_ms:.1f}", f"{told.cpu:.0%}", f"{told.carried:.0f}"])
        result.goal(f"told messages a second, {what}", "at least", wanted, told.a_second)
        policy = {"storesTold": False}
        await fetch_json(target.port, "PATCH", "/api/v1/team/policy", target.callers[0].token, policy)
    result.table(f"{target.name}: told messages", TOLD_HEAD, rows)
    show_progress("answered messages")
    ratio = await measure_answered(target, options.rounds, options.asks)
    result.goal("answered message beside an A2A ask", "at most", ANSWERED_GOAL, ratio)


async def _measure_seats(target: BenchTarget, options: Options, result: BenchResult) -> None:
    """The figures of a fresh hub with many seats."""
    show_progress(f"a broadcast to {options.seats} seats")
    fan_out_ms, seat_kib = await measure_fan_out(target, target.channel_token, options.seats)
    result.goal(f"broadcast to {options.seats} seats: p95, ms", "under", FAN_OUT_GOAL_MS, fan_out_ms)
    result.goal("an idle seat, KiB", "under", SEAT_GOAL_KIB, seat_kib)


def measure(options: Options, folder: Path) -> BenchResult:
    """Send messages between the agents of a team, over one process of each kind of hub."""
    streams.room_for(options.seats)
    result = BenchResult("gateway", f"The gateway of agent teams, {', '.join(options.homes)}")
    for home in options.homes:
        for part in (_measure_messages, _measure_seats):
            with hubs.hub(f"{home} 1.0", folder, users=1, GATEWAY="1") as target:
                try:
                    uvloop.run(part(target, options, result))
                except (BenchError, ConnectionError) as failure:
                    result.notes.append(f"FAILED: {failure}\n{target.server.last_output()}")
    return result


if __name__ == "__main__":
    bench(
        "gateway",
        measure,
        command.homes(*command.HOMES, default="embedded"),
        command.seconds(5, "length of the sending"),
        command.rounds(5),
        Option("--seats", SEATS, "seats for a broadcast"),
        Option("--asks", ASKS, "answered messages in a round"),
    )
