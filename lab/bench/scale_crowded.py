"""`python -m lab.bench.scale_crowded`: thousands of idle agents and open streams on one machine."""

import asyncio
import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, replace
from pathlib import Path

import uvloop

from lab.bench import command, hubs, streams
from lab.bench.command import Option, Options, bench, show_progress
from lab.bench.hubs import BenchTarget, Hub, User
from lab.bench.meter import Meter
from lab.bench.streams import STREAMS_A_CALLER, count_alive, first_chunks_ms, open_streams, settled_kib
from lab.figures import BenchResult, spread
from lab.processes import Program

AGENTS = 5_000
STREAMS = 1_000
SOCKET_GOAL_KIB = 32.0
STREAM_GOAL_KIB = 16.0
CPU_GOAL = 0.25
ALIVE_WITHIN_S = 10.0
TIMES = 200
AT_ONCE = 500
AGENTS_AN_OWNER = 20


def measure(options: Options, folder: Path) -> BenchResult:
    """Connect many agents and open many streams, leave them alone for a while, and count those that stayed."""
    agents = streams.room_for(options.agents + options.streams) - options.streams
    online = -(-options.streams // STREAMS_A_CALLER) + 2
    with hubs.storages(options.home, folder) as new_storage:
        storage = new_storage()
        users = hubs.seed(storage, max(online, agents // AGENTS_AN_OWNER))
        with hubs.running(storage, users[:online], REPLY_WAIT_S="3600") as hub:
            return uvloop.run(crowded(hub, users, agents, folder, options))


async def crowded(hub: Hub, owners: Sequence[User], count: int, folder: Path, options: Options) -> BenchResult:
    """Fill a hub with agents of these owners: what stays, what each takes, and what holding them costs.

    The agent that the last user asks may not be connected: the last user but one asks, the others hold streams.
    """
    process = hub.asked()[0]
    asker = replace(process, callers=process.callers[-2:-1])
    holders = replace(process, callers=process.callers[:-2])
    quiet_ms = await first_chunks_ms(asker, options.times)
    rest_kib = await settled_kib(process)
    with ExitStack() as stack:
        show_progress(f"connecting {count} agents")
        began = time.monotonic()
        connected = [stack.enter_context(each) for each in _idle(process, owners, count, folder)]
        came_in_s = time.monotonic() - began
        with_agents_kib = await settled_kib(process)
        show_progress(f"opening {options.streams} streams")
        async with open_streams(holders, options.streams, streams_a_caller=STREAMS_A_CALLER) as held:
            with_streams_kib = await settled_kib(process)
            show_progress(f"leaving them alone for {options.seconds} s")
            meter = Meter(hub.web, [*hub.agents, *connected])
            await asyncio.sleep(options.seconds)
            idle = meter.used()
            crowded_ms = await first_chunks_ms(asker, options.times)
            agents_left = count - sum(line.startswith("agent:") for one in connected for line in one.lines)
            streams_left = await count_alive(held, ALIVE_WITHIN_S)
    title = f"{count:,} idle agents and {options.streams:,} open streams on one web process, {options.home}"
    result = BenchResult("scale-crowded", title)
    socket_kib = (with_agents_kib - rest_kib) / max(1, count)
    stream_kib = (with_streams_kib - with_agents_kib) / max(1, options.streams)
    cpu = idle.web_s / idle.took_s
    rows = [
        ["agents that stayed", f"{agents_left} of {count}"],
        ["streams that stayed", f"{streams_left} of {options.streams}"],
        ["agents that came a second, one process", f"{count / came_in_s:.0f}"],
        ["web process at rest, MiB", f"{rest_kib / 1024:.0f}"],
        ["with all of them, MiB", f"{with_streams_kib / 1024:.0f}"],
        ["an agent's socket, KiB", f"{socket_kib:.1f}"],
        ["an open stream, KiB", f"{stream_kib:.1f}"],
        ["web process, pings and keep-alives alone, share of a core", f"{cpu:.1%}"],
        ["PostgreSQL meanwhile, share of a core", f"{idle.postgres_s / idle.took_s:.1%}"],
        ["a streamed ask's first chunk before, p50 and p99 ms", ", ".join(spread(quiet_ms, 0.5, 0.99))],
        ["the same among the crowd", ", ".join(spread(crowded_ms, 0.5, 0.99))],
    ]
    result.table(f"Left alone for {idle.took_s:.0f} s", ["", ""], rows)
    result.goal("agents lost", "at most", 0.5, count - agents_left)
    result.goal("streams lost", "at most", 0.5, options.streams - streams_left)
    result.goal("KiB of an agent's socket", "at most", SOCKET_GOAL_KIB, socket_kib)
    result.goal("KiB of an open stream", "at most", STREAM_GOAL_KIB, stream_kib)
    result.goal("share of a core while nothing happens", "at most", CPU_GOAL, cpu)
    result.note_others([idle.others])
    left = {"agents_left": agents_left, "streams_left": streams_left, "came_in_s": came_in_s}
    kib = {
        "rest_kib": rest_kib,
        "agents_kib": with_agents_kib - rest_kib,
        "streams_kib": with_streams_kib - with_agents_kib,
    }
    result.runs = [left | kib | {"idle": asdict(idle), "quiet_ms": quiet_ms, "crowded_ms": crowded_ms}]
    return result


def _idle(
    process: BenchTarget, owners: Sequence[User], count: int, folder: Path
) -> Iterator[AbstractContextManager[Program]]:
    """Programs with some hundred agents each, which only answer pings."""
    tokens = itertools.cycle(owner["channel_token"] for owner in owners)
    for first in range(0, count, AT_ONCE):
        some = list(itertools.islice(tokens, min(AT_ONCE, count - first)))
        yield hubs.idle_agents(process, some, folder)


if __name__ == "__main__":
    bench(
        "scale_crowded",
        measure,
        command.home(),
        Option("--agents", AGENTS, "idle agents"),
        Option("--streams", STREAMS, "open streams"),
        command.seconds(60, "how long they are left alone"),
        Option("--times", TIMES, "streamed asks before and among them"),
    )
