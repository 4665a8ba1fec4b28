"""`python -m lab.bench.relay`: how long a chunk takes from an agent to its followers, with many streams open."""

import argparse
import asyncio
import json
import os
import re
import time
from statistics import median

import uvloop

from lab.bench import targets
from lab.bench.cores import LOAD_CORE
from lab.bench.report import goal, table
from lab.bench.targets import Caller, Target

STREAMS = 500
SECONDS = 10
GOAL_P95_MS = 10.0
LEFT = re.compile(rb"<(\d+)>")
TASK_ID = re.compile(rb'"id":"(task-[0-9a-f]+)"')
BEGUN_WITHIN_S = 30
SETTLING_NS = 1_000_000_000
MAX_BODY_BYTES = 8 * 1024 * 1024

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


def main() -> None:
    """Measure each home; print a table and the goal."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench.relay", description=main.__doc__)
    parser.add_argument("--homes", default=",".join(targets.HOMES))
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"length of one run (default {SECONDS})")
    parser.add_argument("--streams", type=int, default=STREAMS, help=f"subscriptions (default {STREAMS})")
    options = parser.parse_args()
    os.sched_setaffinity(0, {LOAD_CORE})
    measured: dict[str, list[float]] = {}
    with targets.temporary_folder() as folder:
        for home in options.homes.split(","):
            with targets.hub(f"{home} 1.0", folder) as target:
                measured[home] = uvloop.run(relay(target, options.streams, options.seconds))
    print(f"SubscribeToTask, {options.streams} streams open, a chunk a second each\n")
    print(text(measured))


async def relay(target: Target, streams: int, seconds: float) -> list[float]:
    """Follow as many tasks; how long each chunk took from its agent, in ms."""
    took_ms: list[float] = []
    begun = asyncio.Semaphore(16)
    ready = asyncio.Barrier(streams + 1)
    callers = target.callers

    async def follow(number: int) -> None:
        async with begun:
            stream, connection = await _subscribe(target.port, callers[number % len(callers)], number)
        await ready.wait()
        counts_from = time.perf_counter_ns() + SETTLING_NS  # what lay in the socket meanwhile is old
        until = time.perf_counter() + seconds
        while time.perf_counter() < until:
            data = await asyncio.wait_for(stream.read(65536), BEGUN_WITHIN_S)
            now = time.perf_counter_ns()
            if not data:
                raise ConnectionError("the hub ended a stream")
            left = [int(one) for one in LEFT.findall(data)]
            took_ms.extend((now - one) / 1e6 for one in left if one > counts_from)
        connection.close()

    following = [asyncio.create_task(follow(number)) for number in range(streams)]
    async with asyncio.timeout(BEGUN_WITHIN_S * 4):
        await ready.wait()
    await asyncio.gather(*following)
    return took_ms


def text(measured: dict[str, list[float]]) -> str:
    """The figures, and whether the goal is met."""
    rows = [
        [home, str(len(took)), f"{median(took):.2f}", f"{_p95(took):.2f}", f"{max(took):.1f}"]
        for home, took in measured.items()
    ]
    goals = [
        goal(f"{home}: p95 of a chunk, ms", "at most", GOAL_P95_MS, _p95(took)) for home, took in measured.items()
    ]
    figures = table(["home", "chunks", "p50 ms", "p95 ms", "max ms"], rows)
    return figures + "\n\nGoals\n" + table(["goal", "wanted", "measured", ""], goals)


async def _subscribe(port: int, caller: Caller, number: int) -> Streams:
    """Begin a task that ticks, and follow it over another connection."""
    message = {"messageId": f"tick-{number}", "role": "ROLE_USER", "parts": [{"text": f"tick {number}"}]}
    params = {"message": message, "configuration": {"returnImmediately": True}}
    reader, writer = await post(port, caller, "SendMessage", params)
    head = await reader.readuntil(b"\r\n\r\n")
    length = re.search(rb"content-length: (\d+)", head.lower())
    body = await reader.readexactly(int(length[1]) if length else 0)
    writer.close()
    found = TASK_ID.search(body)
    if not found or b"TASK_STATE_FAILED" in body:
        raise RuntimeError(body.decode())
    reader, writer = await post(port, caller, "SubscribeToTask", {"id": found[1].decode()})
    head = await reader.readuntil(b"\r\n\r\n")
    if b"text/event-stream" not in head:
        raise RuntimeError(head.decode())
    return reader, writer


async def post(port: int, caller: Caller, method: str, params: object) -> Streams:
    """Call a method over a connection of its own."""
    body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=MAX_BODY_BYTES)
    writer.write(
        f"POST {caller.path} HTTP/1.1\r\nHost: 127.0.0.1\r\n{caller.headers}Content-Type: application/json\r\n"
        f"Content-Length: {len(body)}\r\n\r\n".encode()
        + body
    )
    return reader, writer


def _p95(took: list[float]) -> float:
    return sorted(took)[len(took) * 95 // 100]


if __name__ == "__main__":
    main()
