"""`python -m lab.bench.gateway`: what the gateway of agent teams does in a second, and what a seat takes.

Told messages with audit; the same between connected agents without storing them; a broadcast to a thousand seats;
a message that is answered beside an ask over A2A of the same agent; the memory of an idle seat.
"""

import argparse
import asyncio
import itertools
import json
import os
import re
import resource
import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import replace
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
SECONDS = 5
SEATS = 1_000
BROADCASTS = 20
ROUNDS = 5
ASKS = 100
AT_ONCE = 16
SETTLE_S = 2.0
WITHIN_S = 60
TOLD_GOAL, RELAYED_GOAL = 1_000.0, 5_000.0
FAN_OUT_GOAL_MS, SEAT_GOAL_KIB, ANSWERED_GOAL = 200.0, 30.0, 1.3

_numbers = itertools.count(1)


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

    def begin(self) -> None:
        self.send("handshake", {"action": "advertise", "capabilities": {"version": "1.0.0"}})

    def take(self, payload: bytes) -> None:
        now = time.perf_counter_ns()
        frame = json.loads(payload)
        match frame["type"]:
            case "message" if frame["metadata"].get("requiresResponse"):
                about = {"correlationId": frame["metadata"]["correlationId"]}
                self.send("message", {"role": "agent", "content": "echo"}, agent=frame["from"], metadata=about)
            case "message" if self.answered is not None and not self.answered.done():
                self.answered.set_result(None)
            case "message" | "broadcast":
                said = frame["content"].get("content") or frame["content"].get("message")
                self.took_ms.append((now - said["sent"]) / 1e6)
            case "handshake":
                self.welcomed.set_result(None)
            case "error":
                self.refused += 1

    def fail(self, why: object) -> None:
        print(f"seat: {why!r}", flush=True)
        if not self.welcomed.done():
            self.welcomed.set_exception(ConnectionError(str(why)))

    def send(self, type_name: str, content: dict[str, Any], **fields: Any) -> None:
        """Send a frame."""
        frame = {"type": type_name, "id": f"bench-{next(_numbers)}", "content": content, **fields}
        self.send_text(json.dumps(frame).encode())

    def tell(self, agent: str) -> None:
        """Send a message that wants no response."""
        content = {"role": "agent", "content": {"sent": time.perf_counter_ns()}}
        self.send("message", content, agent=agent)

    async def ask(self, agent: str, text: str) -> None:
        """Send a message and wait for its response."""
        self.answered = asyncio.get_running_loop().create_future()
        about = {"requiresResponse": True, "correlationId": f"bench-{next(_numbers)}"}
        self.send("message", {"role": "user", "content": text}, agent=agent, metadata=about)
        async with asyncio.timeout(WITHIN_S):
            await self.answered


async def connect(port: int, token: str, names: Sequence[str]) -> list[Seat]:
    """Seats of these names; without a name a client."""
    room = asyncio.Semaphore(AT_ONCE)

    async def one(name: str) -> Seat:
        async with room:
            loop = asyncio.get_running_loop()
            _, seat = await loop.create_connection(lambda: Seat(token, name), "127.0.0.1", port)
            async with asyncio.timeout(WITHIN_S):
                await seat.welcomed
            return seat

    return await asyncio.gather(*map(one, names))


async def measure_told(port: int, token: str, seconds: int, rate: int) -> tuple[float, float]:
    """Messages that arrived in a second, and the p95 of their way in ms. Each sender has its own recipient.

    `rate`: how many each sender sends in a second.
    """
    senders = await connect(port, token, [f"sender-{number}" for number in range(SENDERS)])
    recipients = await connect(port, token, [f"recipient-{number}" for number in range(SENDERS)])
    pause_s = 1 / rate

    async def send(number: int) -> None:
        await asyncio.sleep(pause_s * number / SENDERS)
        due = time.perf_counter()
        until = due + seconds
        while due < until:
            senders[number].tell(f"recipient-{number}")
            due += pause_s
            await asyncio.sleep(max(0.0, due - time.perf_counter()))

    began = time.perf_counter()
    await asyncio.gather(*map(send, range(SENDERS)))
    arrived = sum(len(one.took_ms) for one in recipients)
    took_s = time.perf_counter() - began
    took_ms = [took for one in recipients for took in one.took_ms]
    refused = sum(one.refused for one in senders)
    print(f"  sent {SENDERS * rate * seconds}, arrived {arrived}, refused {refused}", flush=True)
    await asyncio.sleep(SETTLE_S)
    await leave([*senders, *recipients])
    return arrived / took_s, p95(took_ms)


async def measure_fan_out(target: Target, token: str, seats: int) -> tuple[float, float]:
    """The p95 of a broadcast's way to each seat in ms, and the KiB that an idle seat takes."""
    before_kib = target.server.rss_kib()
    agents = await connect(target.port, token, [f"agent-{number}" for number in range(seats)])
    await asyncio.sleep(SETTLE_S)
    seat_kib = (target.server.rss_kib() - before_kib) / seats
    (sender,) = await connect(target.port, token, ["steward"])
    for number in range(BROADCASTS):
        sender.send("broadcast", {"message": {"sent": time.perf_counter_ns()}})
        async with asyncio.timeout(WITHIN_S):
            while any(len(one.took_ms) <= number for one in agents):
                await asyncio.sleep(0.005)
    await leave([*agents, sender])
    return p95([took for one in agents for took in one.took_ms]), seat_kib


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
        for _ in range(asks):
            began = time.perf_counter()
            await ask(next(_numbers))
            took.append(time.perf_counter() - began)
        return median(took)

    ratios: list[float] = []
    for _ in range(rounds):
        took_s = await times(over_gateway)
        reader, writer = await asyncio.open_connection("127.0.0.1", target.port)  # the hub closes idle ones
        ratios.append(took_s / await times(over_a2a))
        writer.close()
    await leave([client, seat])
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


async def leave(seats: Sequence[Seat]) -> None:
    """Close these sockets."""
    for seat in seats:
        seat.leave()
    await asyncio.sleep(SETTLE_S)


async def set_policy(target: Target, token: str, **policy: object) -> None:
    """Change the rules of the team."""
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{target.port}") as client:
        headers = {"Authorization": f"Bearer {token}"}
        (await client.patch("/api/v1/team/policy", json=policy, headers=headers)).raise_for_status()


async def measure(target: Target, options: argparse.Namespace) -> list[list[str]]:
    """Each figure beside its goal."""
    token = target.channel_token
    told, told_ms = await measure_told(target.port, token, options.seconds, TOLD_A_SECOND)
    await set_policy(target, token_of(target), storesTold=False)
    relayed, relayed_ms = await measure_told(target.port, token, options.seconds, RELAYED_A_SECOND)
    fan_out_ms, seat_kib = await measure_fan_out(target, token, options.seats)
    answered = await measure_answered(target, options.rounds, options.asks)
    print(f"  way of a told message, p95: {told_ms:.1f} ms with a turn, {relayed_ms:.1f} ms without\n")
    return [
        goal("told messages a second, each a turn", "at least", TOLD_GOAL, told),
        goal("told messages a second, not stored", "at least", RELAYED_GOAL, relayed),
        goal(f"broadcast to {options.seats} seats: p95, ms", "under", FAN_OUT_GOAL_MS, fan_out_ms),
        goal("an idle seat, KiB", "under", SEAT_GOAL_KIB, seat_kib),
        goal("answered message beside an A2A ask", "at most", ANSWERED_GOAL, answered),
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
            print(f"{home}, gateway\n")
            with targets.hub(f"{home} 1.0", folder, users=1, GATEWAY="1") as target:
                print(table(["goal", "wanted", "measured", ""], uvloop.run(measure(target, options))))


if __name__ == "__main__":
    main()
