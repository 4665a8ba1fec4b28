"""`python -m lab.bench.events`: how many hook events a second one process keeps (docs/howto/bench.md)."""

import argparse
import asyncio
import json
import os
import time
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from lab.bench import targets
from lab.bench.cores import LOAD_CORE
from lab.bench.report import goal, table

SESSIONS = 32
CONNECTIONS = 16
SECONDS = 5
GOAL_PER_S = 500.0
PAYLOAD = {"tool_name": "Bash", "tool_input": {"command": "make test"}, "tool_response": {"stdout": "ok\n" * 300}}
TURN = ("UserPromptSubmit", *("PreToolUse", "PostToolUse") * 8, "Stop")


@dataclass
class Kept:
    """What a run measured. `took_ms`: from the connection's opening, or the request, to the answer."""

    seconds: float
    took_ms: list[float] = field(default_factory=list)

    @property
    def per_s(self) -> float:
        """Events a second that were answered, each durable."""
        return len(self.took_ms) / self.seconds

    @property
    def p95_ms(self) -> float:
        """All but a twentieth took less."""
        return sorted(self.took_ms)[len(self.took_ms) * 95 // 100]


def main() -> None:
    """Measure each home; print a table and the goal."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench.events", description=main.__doc__)
    parser.add_argument("--homes", default=",".join(targets.HOMES))
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"length of one run (default {SECONDS})")
    parser.add_argument("--connections", type=int, default=CONNECTIONS)
    options = parser.parse_args()
    os.sched_setaffinity(0, {LOAD_CORE})
    measured: dict[str, Kept] = {}
    with targets.temporary_folder() as folder:
        for home in options.homes.split(","):
            for kind, fresh in [("a connection for each event", True), ("connections kept", False)]:
                kept = measure(home, folder, options.connections, options.seconds, fresh=fresh)
                measured[f"{home}, {kind}"] = kept
    print(f"POST /api/channel/event, {options.connections} hooks at once, {len(_body('', 'Stop'))} bytes each\n")
    print(text(measured))


def measure(home: str, folder: Path, connections: int, seconds: float, *, fresh: bool) -> Kept:
    """Load a fresh hub whose agents are all online."""
    with targets.serving(home, folder) as (_, env):
        seeded = targets.seed(env, SESSIONS)
        with targets.agents(int(env["PORT"]), seeded, folder / f"{home}-agents.log"):
            return asyncio.run(_load(int(env["PORT"]), seeded, connections, seconds, fresh=fresh))


def text(measured: dict[str, Kept]) -> str:
    """The figures, and whether the goal is met."""
    rows = [
        [
            name,
            f"{kept.per_s:.0f}",
            f"{median(kept.took_ms):.1f}",
            f"{kept.p95_ms:.1f}",
            f"{max(kept.took_ms):.1f}",
        ]
        for name, kept in measured.items()
    ]
    goals = [
        goal(f"{name}: events a second", "at least", GOAL_PER_S, kept.per_s) for name, kept in measured.items()
    ]
    figures = table(["hooks", "events/s", "p50 ms", "p95 ms", "max ms"], rows)
    return figures + "\n\nGoals\n" + table(["goal", "wanted", "measured", ""], goals)


async def _load(port: int, seeded: list[dict[str, str]], connections: int, seconds: float, *, fresh: bool) -> Kept:
    kept = Kept(seconds)
    until = time.monotonic() + seconds
    await asyncio.gather(
        *(_hooks(port, seeded[number % len(seeded)], until, kept, fresh=fresh) for number in range(connections))
    )
    return kept


async def _hooks(port: int, user: dict[str, str], until: float, kept: Kept, *, fresh: bool) -> None:
    """The hooks of one agent, one after another, turn after turn."""
    requests = [_request(user, name) for name in TURN]
    streams = None if fresh else await asyncio.open_connection("127.0.0.1", port)
    number = 0
    while time.monotonic() < until:
        began = time.perf_counter()
        reader, writer = streams or await asyncio.open_connection("127.0.0.1", port)
        writer.write(requests[number % len(requests)])
        head = await reader.readuntil(b"\r\n\r\n")
        if not head.startswith(b"HTTP/1.1 202 "):
            raise RuntimeError(head.decode())
        await reader.readexactly(len(b'{"ok":true}'))
        kept.took_ms.append((time.perf_counter() - began) * 1000)
        number += 1
        if fresh:
            writer.close()


def _request(user: dict[str, str], name: str) -> bytes:
    body = _body(user["session_id"], name)
    head = (
        "POST /api/channel/event HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {user['channel_token']}\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def _body(session_id: str, name: str) -> bytes:
    return json.dumps({"sessionId": session_id, "kind": "tail", "type": name, "payload": PAYLOAD}).encode()


if __name__ == "__main__":
    main()
