"""`python -m lab.bench.threads`: how long the search of 100,000 questions takes, and opening a long thread."""

import time
from collections.abc import Mapping
from pathlib import Path

import uvloop

from lab import in_django
from lab.bench import command, hubs
from lab.bench.client import connected, request
from lab.bench.command import HOMES, Option, Options, bench
from lab.figures import BenchResult, percentile, spread

QUESTIONS = 100_000
CALLERS = 10
LONG_THREAD = 200
TIMES = 60
WARM_UP = 5
SEARCH_GOAL_MS, OPEN_GOAL_MS = 100.0, 500.0
LIST = "/api/v1/threads"
SEARCHES = {
    "the newest threads": LIST,
    "q=, all match": f"{LIST}?q=build",
    "q=, a tenth match": f"{LIST}?q=topic7",
    "q=, few match": f"{LIST}?q=question+number+4242",
    "q=, none match": f"{LIST}?q=unheard",
    "q=, the beginning of a word": f"{LIST}?q=numb+bui",
    "q=, page": "/questions?q=build",
}
OPENED = {"a thread of 200, page": "/questions/threads/{thread}", "a thread of 200, REST": LIST + "/{thread}"}


def measure(options: Options, folder: Path) -> BenchResult:
    """Search and open threads on a hub with many questions, one request after the other."""
    measured: dict[str, dict[str, list[float]]] = {}
    for home in options.homes:
        with hubs.storages(home, folder) as new_storage:
            storage = new_storage()
            seeded = in_django.call(
                storage.env, "lab.bench.thread_rows:seed_threads", options.questions, CALLERS, LONG_THREAD
            )
            with hubs.running(storage, TASK_STORE="journal") as hub:
                measured[home] = {
                    kind: uvloop.run(
                        _times_ms(hub.ports[0], path.format(**seeded), seeded["session_token"], options.times)
                    )
                    for kind, path in (SEARCHES | OPENED).items()
                }
    return report(measured, options)


async def _times_ms(port: int, path: str, token: str, times: int) -> list[float]:
    """Milliseconds of each request of one kind.

    Raises:
        RuntimeError: the hub refused a request.
    """
    taken = []
    asked = request("GET", path, f"Authorization: Bearer {token}\r\nCookie: cw_session={token}\r\n")
    async with connected(port) as connection:
        for _ in range(times + WARM_UP):
            began = time.perf_counter()
            await connection.ask_ok(asked)
            taken.append((time.perf_counter() - began) * 1000)
    return taken[WARM_UP:]


def report(measured: Mapping[str, Mapping[str, list[float]]], options: Options) -> BenchResult:
    """The figures; the goals are of the slowest search, and of the slowest thread."""
    title = f"{options.questions} questions of {CALLERS} callers, {options.times} requests of each kind"
    result = BenchResult("threads", title, runs=[measured])
    rows = [
        [f"{home}, {kind}", *spread(took, 0.5, 0.95, 1)]
        for home, kinds in measured.items()
        for kind, took in kinds.items()
    ]
    result.table("By request", ["request", "p50 ms", "p95 ms", "max ms"], rows)
    for home, kinds in measured.items():
        searched = max(percentile(kinds[kind], 0.95) for kind in SEARCHES)
        opened = max(percentile(kinds[kind], 0.95) for kind in OPENED)
        result.goal(f"{home}, search: p95 ms of the slowest", "under", SEARCH_GOAL_MS, searched)
        result.goal(f"{home}, a thread of {LONG_THREAD}: p95 ms", "under", OPEN_GOAL_MS, opened)
    return result


if __name__ == "__main__":
    bench(
        "threads",
        measure,
        command.homes(*HOMES),
        Option("--questions", QUESTIONS, "questions of all callers"),
        Option("--times", TIMES, "requests of each kind"),
    )
