"""`python -m lab.bench.relay`: how long a chunk takes from an agent to its followers, with many streams open."""

import asyncio
import re
import time
from collections.abc import Mapping
from pathlib import Path

import uvloop

from lab.bench import command, hubs
from lab.bench.client import begin_task, connect, message_params, rpc_request
from lab.bench.command import HOMES, Option, Options, bench
from lab.bench.hubs import BenchTarget
from lab.figures import BenchResult, percentile, spread

STREAMS = 500
GOAL_P95_MS = 10.0
SENT_AT = re.compile(rb"<(\d+)>")
AT_ONCE = 16
BEGUN_WITHIN_S = 30
SETTLING_NS = 1_000_000_000


def measure(options: Options, folder: Path) -> BenchResult:
    """Follow many tasks whose agents send a chunk a second each."""
    measured: dict[str, list[float]] = {}
    for home in options.homes:
        with hubs.hub(f"{home} 1.0", folder) as target:
            measured[home] = uvloop.run(relay(target, options.streams, options.seconds))
    return report(measured, options.streams)


async def relay(target: BenchTarget, streams: int, seconds: float) -> list[float]:
    """Follow so many tasks; returns the time from the agent to the follower of each chunk, in ms."""
    took_ms: list[float] = []
    room, ready = asyncio.Semaphore(AT_ONCE), asyncio.Barrier(streams + 1)

    async def follow(number: int) -> None:
        caller = target.callers[number % len(target.callers)]
        async with room:
            params = message_params(f"tick-{number}", [{"text": f"tick {number}"}])
            task_id = await begin_task(target.port, caller, params)
            connection = await connect(target.port)
            await connection.begin_stream(rpc_request(caller, "SubscribeToTask", {"id": task_id}))
        await ready.wait()
        # Chunks sent earlier waited in the socket: they do not count.
        counts_from = time.perf_counter_ns() + SETTLING_NS
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            data = await asyncio.wait_for(connection.reader.read(65536), BEGUN_WITHIN_S)
            now = time.perf_counter_ns()
            if not data:
                raise ConnectionError("the hub ended a stream")
            sent_at = [int(one) for one in SENT_AT.findall(data)]
            took_ms.extend((now - one) / 1e6 for one in sent_at if one > counts_from)
        connection.close()

    following = [asyncio.create_task(follow(number)) for number in range(streams)]
    async with asyncio.timeout(BEGUN_WITHIN_S * 4):
        await ready.wait()
    await asyncio.gather(*following)
    return took_ms


def report(measured: Mapping[str, list[float]], streams: int) -> BenchResult:
    """The figures, and whether the goal is met."""
    title = f"SubscribeToTask, {streams} streams open, a chunk a second each"
    result = BenchResult("relay", title, runs=[measured])
    rows = [[home, str(len(took)), *spread(took, 0.5, 0.95, 1, digits=2)] for home, took in measured.items()]
    result.table("From the agent to its follower", ["home", "chunks", "p50 ms", "p95 ms", "max ms"], rows)
    for home, took in measured.items():
        result.goal(f"{home}: p95 of a chunk, ms", "at most", GOAL_P95_MS, percentile(took, 0.95))
    return result


if __name__ == "__main__":
    streams = Option("--streams", STREAMS, "subscriptions")
    bench("relay", measure, command.homes(*HOMES), command.seconds(10.0), streams)
