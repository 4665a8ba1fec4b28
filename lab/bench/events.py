"""`python -m lab.bench.events`: how many hook events a second one process keeps (docs/howto/bench.md)."""

import asyncio
import time
from collections.abc import Mapping
from pathlib import Path

import uvloop

from lab.bench import command, hubs
from lab.bench.client import connect, request
from lab.bench.command import HOMES, Option, Options, bench
from lab.bench.hubs import User
from lab.figures import BenchResult, spread

SESSIONS = 32
CONNECTIONS = 16
GOAL_PER_S = 500.0
PAYLOAD = {"tool_name": "Bash", "tool_input": {"command": "make test"}, "tool_response": {"stdout": "ok\n" * 300}}
TURN = ("UserPromptSubmit", *("PreToolUse", "PostToolUse") * 8, "Stop")
KINDS = {"a connection for each event": True, "connections kept": False}


def measure(options: Options, folder: Path) -> BenchResult:
    """Send events of agents that are online, from many hooks at once, to a fresh hub for each kind."""
    measured: dict[str, list[float]] = {}
    for home in options.homes:
        for kind, is_fresh in KINDS.items():
            with hubs.storages(home, folder) as new_storage:
                storage = new_storage()
                users = hubs.seed(storage, SESSIONS)
                with hubs.running(storage, users) as hub:
                    work = _load(hub.ports[0], users, options.connections, options.seconds, is_fresh=is_fresh)
                    measured[f"{home}, {kind}"] = uvloop.run(work)
    return report(measured, options)


async def _load(port: int, users: list[User], connections: int, seconds: float, *, is_fresh: bool) -> list[float]:
    """The seconds of each event, from the opening of its connection, or its request, to its answer."""
    until, taken = time.monotonic() + seconds, list[float]()

    async def send_hooks(user: User) -> None:
        """The hooks of one agent, one after another, turn after turn."""
        requests, kept = [hook_request(user, name) for name in TURN], None if is_fresh else await connect(port)
        number = 0
        while time.monotonic() < until:
            began = time.perf_counter()
            connection = kept or await connect(port)
            await connection.ask_ok(requests[number % len(requests)], status=202)
            taken.append((time.perf_counter() - began) * 1000)
            number += 1
            if is_fresh:
                connection.close()

    await asyncio.gather(*(send_hooks(users[number % len(users)]) for number in range(connections)))
    return taken


def hook_request(user: User, name: str) -> bytes:
    """The request of one hook of a user's agent."""
    headers = f"Authorization: Bearer {user['channel_token']}\r\n"
    body = {"sessionId": user["session_id"], "kind": "tail", "type": name, "payload": PAYLOAD}
    return request("POST", "/api/channel/event", headers, body)


def report(measured: Mapping[str, list[float]], options: Options) -> BenchResult:
    """Events a second that were answered, each durable, and their times."""
    title = f"POST /api/channel/event, {options.connections} hooks at once, for {options.seconds:g} s"
    result, rows = BenchResult("events", title, runs=[measured]), []
    for name, took in measured.items():
        per_s = len(took) / options.seconds
        rows.append([name, f"{per_s:.0f}", *spread(took, 0.5, 0.95, 1)])
        result.goal(f"{name}: events a second", "at least", GOAL_PER_S, per_s)
    result.table("By kind of connection", ["hooks", "events/s", "p50 ms", "p95 ms", "max ms"], rows)
    return result


if __name__ == "__main__":
    bench(
        "events",
        measure,
        command.homes(*HOMES),
        command.seconds(5.0),
        Option("--connections", CONNECTIONS, "hooks at once"),
    )
