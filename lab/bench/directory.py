"""`python -m lab.bench.directory`: how long `GET /agents` takes with 10,000 agents (docs/howto/bench.md)."""

import time
from collections.abc import Mapping
from pathlib import Path

import uvloop

from lab import in_django
from lab.bench import command, hubs
from lab.bench.client import connected, request
from lab.bench.command import HOMES, Option, Options, bench
from lab.figures import BenchResult, percentile, spread

AGENTS = 10_000
TIMES = 100
WARM_UP = 5
P95_GOAL_MS = 200.0
QUERIES = {
    "the first 200": "",
    "the last ones": "offset=8000",
    "q=, all match": "q=build",
    "q=, few match": "q=agent-77",
    "q=, none match": "q=no+match",
    "owner=": "owner=OWNER-3",
    "mine=": "mine=true",
    "mine= and q=": "mine=true&q=owner-0%2F",
}


def measure(options: Options, folder: Path) -> BenchResult:
    """Read pages of the directory of a hub with many agents, one after the other."""
    measured: dict[str, dict[str, list[float]]] = {}
    for home in options.homes:
        with hubs.storages(home, folder) as new_storage:
            storage = new_storage()
            token = in_django.call(storage.env, "lab.bench.seed:seed_crowd", options.agents)["session_token"]
            with hubs.running(storage) as hub:
                measured[home] = {
                    kind: uvloop.run(_times_ms(hub.ports[0], query, token, options.times))
                    for kind, query in QUERIES.items()
                }
    return report(measured, options)


async def _times_ms(port: int, query: str, token: str, times: int) -> list[float]:
    """Milliseconds of each request of one kind.

    Raises:
        RuntimeError: the hub refused a request.
    """
    taken, asked = [], request("GET", f"/api/v1/agents?{query}", f"Authorization: Bearer {token}\r\n")
    async with connected(port) as connection:
        for _ in range(times + WARM_UP):
            began = time.perf_counter()
            await connection.ask_ok(asked)
            taken.append((time.perf_counter() - began) * 1000)
    return taken[WARM_UP:]


def report(measured: Mapping[str, Mapping[str, list[float]]], options: Options) -> BenchResult:
    """The figures; the goal is of the slowest kind of request."""
    title = f"GET /agents of {options.agents} agents, one caller, {options.times} times each"
    result = BenchResult("directory", title, runs=[measured])
    rows = [
        [f"{home}, {kind}", *spread(took, 0.5, 0.95, 1)]
        for home, kinds in measured.items()
        for kind, took in kinds.items()
    ]
    result.table("By query", ["query", "p50 ms", "p95 ms", "max ms"], rows)
    for home, kinds in measured.items():
        slowest = max(percentile(took, 0.95) for took in kinds.values())
        result.goal(f"{home}, GET /agents: p95 ms of the slowest query", "under", P95_GOAL_MS, slowest)
    return result


if __name__ == "__main__":
    bench(
        "directory",
        measure,
        command.homes(*HOMES),
        Option("--agents", AGENTS, "agents of the hub"),
        Option("--times", TIMES, "requests of each kind"),
    )
