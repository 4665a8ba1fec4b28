"""`python -m lab.bench.directory`: how long `GET /agents` takes with 10,000 agents (docs/howto/bench.md)."""

import argparse
import http.client
import json
import os
import time
from pathlib import Path
from statistics import median

from lab.bench import targets
from lab.bench.cores import LOAD_CORE
from lab.bench.report import goal, table
from lab.hub_storage import hub_env
from lab.processes import python, run

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


def main() -> None:
    """Measure each home; print a table and the goal."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench.directory", description=main.__doc__)
    parser.add_argument("--homes", default=",".join(targets.HOMES))
    parser.add_argument("--agents", type=int, default=AGENTS)
    parser.add_argument("--times", type=int, default=TIMES, help=f"requests of each kind (default {TIMES})")
    options = parser.parse_args()
    os.sched_setaffinity(0, {LOAD_CORE})
    measured: dict[str, dict[str, list[float]]] = {}
    with targets.temporary_folder() as folder:
        for home in options.homes.split(","):
            measured[home] = measure(home, folder, options.agents, options.times)
    print(f"GET /agents of {options.agents} agents, one caller, {options.times} times each\n")
    print(text(measured))


def measure(home: str, folder: Path, count: int, times: int) -> dict[str, list[float]]:
    """Milliseconds of every request of a fresh hub, by kind."""
    with targets.serving(home, folder) as (_, env):
        seeded = json.loads(run(python("-m", "lab.bench.crowd", str(count)), hub_env(env)))
        connection = http.client.HTTPConnection("127.0.0.1", int(env["PORT"]), timeout=60)
        headers = {"Authorization": f"Bearer {seeded['session_token']}"}
        taken = {kind: _times_ms(connection, query, headers, times + WARM_UP) for kind, query in QUERIES.items()}
        connection.close()
    return {kind: took[WARM_UP:] for kind, took in taken.items()}


def text(measured: dict[str, dict[str, list[float]]]) -> str:
    """The figures, and whether the goal is met by the slowest kind."""
    rows, goals = [], []
    for home, kinds in measured.items():
        for kind, took in kinds.items():
            rows.append([f"{home}, {kind}", f"{median(took):.1f}", f"{_p95(took):.1f}", f"{max(took):.1f}"])
        slowest = max(map(_p95, kinds.values()))
        goals.append(goal(f"{home}, GET /agents: p95 ms of the slowest query", "under", P95_GOAL_MS, slowest))
    figures = table(["query", "p50 ms", "p95 ms", "max ms"], rows)
    return figures + "\n\nGoals\n" + table(["goal", "wanted", "measured", ""], goals)


def _times_ms(
    connection: http.client.HTTPConnection, query: str, headers: dict[str, str], times: int
) -> list[float]:
    taken = []
    for _ in range(times):
        began = time.perf_counter()
        connection.request("GET", f"/api/v1/agents?{query}", headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        taken.append((time.perf_counter() - began) * 1000)
        if answer.status != 200:
            raise RuntimeError(f"{query!r}: {answer.status} {body[:200]!r}")
    return taken


def _p95(took: list[float]) -> float:
    return sorted(took)[len(took) * 95 // 100]


if __name__ == "__main__":
    main()
