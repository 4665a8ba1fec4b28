"""`python -m lab.bench.scale_crowded`: thousands of idle agents and open streams on one machine."""

import argparse
import itertools
import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median

from lab.bench import memory, scale, targets
from lab.bench.memory import STREAMS_A_CALLER
from lab.bench.scale import Result, percentile, say
from lab.bench.scale_hubs import Hubs, homes, hubs
from lab.bench.scale_meter import Meter, Used
from lab.bench.streams import count_alive, first_chunks_ms, open_streams
from lab.bench.targets import Target
from lab.processes import Program

AGENTS = 5_000
STREAMS = 1_000
SECONDS = 60
SOCKET_GOAL_KIB = 32.0
STREAM_GOAL_KIB = 16.0
CPU_GOAL = 0.25
ALIVE_WITHIN_S = 10.0
TIMES = 200
SETTLE_S = 2.0
SETTINGS = {"REPLY_WAIT_S": "3600"}
AT_ONCE = 500
AGENTS_AN_OWNER = 20
Users = Sequence[dict[str, str]]


@dataclass(frozen=True)
class Crowd:
    """What was held, what of it was still there in the end, and what it cost the web process."""

    agents: int
    agents_left: int
    streams: int
    streams_left: int
    came_in_s: float
    rest_kib: int
    agents_kib: int
    streams_kib: int
    idle: Used
    quiet_ms: Sequence[float]
    crowded_ms: Sequence[float]


def main() -> None:
    """Connect many agents and open many streams, leave them alone for a while, and count who stayed."""
    options = _options()
    agents = memory.room_for(options.agents + options.streams) - options.streams
    with ExitStack() as stack:
        folder = stack.enter_context(scale.folder())
        env = stack.enter_context(homes(options.home, folder))() | SETTINGS
        online = -(-options.streams // STREAMS_A_CALLER) + 2
        users = targets.seed(env, max(online, agents // AGENTS_AN_OWNER))
        crowd = crowded(stack.enter_context(hubs(1, env, folder, users[:online])), users, agents, folder, options)
    scale.publish(report(crowd, options.home), options.results)


def crowded(target: Hubs, owners: Users, count: int, folder: Path, options: argparse.Namespace) -> Crowd:
    """Fill the first process of a hub with agents of these owners.

    Whom its last user asks may be away: the last but one asks, the others hold streams.
    """
    process = target.asked("any")[0]
    asker, holders = (
        replace(process, callers=process.callers[-2:-1]),
        replace(process, callers=process.callers[:-2]),
    )
    quiet = first_chunks_ms(asker, options.times)
    rest = _settled_kib(process)
    with ExitStack() as stack:
        say(f"connecting {count} agents")
        began = time.monotonic()
        connected = [stack.enter_context(each) for each in _idle(process, owners, count, folder)]
        came_in_s = time.monotonic() - began
        with_agents = _settled_kib(process)
        say(f"opening {options.streams} streams")
        held = stack.enter_context(open_streams(holders, options.streams, streams_a_caller=STREAMS_A_CALLER))
        with_streams = _settled_kib(process)
        say(f"leaving them alone for {options.seconds} s")
        meter = Meter(target.web, [*target.agents, *connected])
        time.sleep(options.seconds)
        idle = meter.used()
        crowd_ms = first_chunks_ms(asker, options.times)
        lost = sum(line.startswith("agent:") for one in connected for line in one.lines)
        return Crowd(
            agents=count,
            agents_left=count - lost,
            streams=options.streams,
            streams_left=count_alive(held, ALIVE_WITHIN_S),
            came_in_s=came_in_s,
            rest_kib=rest,
            agents_kib=with_agents - rest,
            streams_kib=with_streams - with_agents,
            idle=idle,
            quiet_ms=quiet,
            crowded_ms=crowd_ms,
        )


def report(crowd: Crowd, home: str) -> Result:
    """Who stayed, what each takes, and what holding all of them costs while nothing happens."""
    title = f"{crowd.agents:,} idle agents and {crowd.streams:,} open streams on one web process, {home}"
    result = Result("scale-crowded", title)
    socket_kib = crowd.agents_kib / max(1, crowd.agents)
    stream_kib = crowd.streams_kib / max(1, crowd.streams)
    cpu = crowd.idle.web_s / crowd.idle.took_s
    rows = [
        ["agents that stayed", f"{crowd.agents_left} of {crowd.agents}"],
        ["streams that stayed", f"{crowd.streams_left} of {crowd.streams}"],
        ["agents that came a second, one process", f"{crowd.agents / crowd.came_in_s:.0f}"],
        ["web process at rest, MiB", f"{crowd.rest_kib / 1024:.0f}"],
        ["with all of them, MiB", f"{(crowd.rest_kib + crowd.agents_kib + crowd.streams_kib) / 1024:.0f}"],
        ["an agent's socket, KiB", f"{socket_kib:.1f}"],
        ["an open stream, KiB", f"{stream_kib:.1f}"],
        ["web process, pings and keep-alives alone, share of a core", f"{cpu:.1%}"],
        ["PostgreSQL meanwhile, share of a core", f"{crowd.idle.postgres_s / crowd.idle.took_s:.1%}"],
        ["a streamed ask's first chunk before, p50 and p99 ms", _two(crowd.quiet_ms)],
        ["the same among the crowd", _two(crowd.crowded_ms)],
    ]
    result.tables.append((f"Left alone for {crowd.idle.took_s:.0f} s", ["", ""], rows))
    result.goal("agents lost", "at most", 0.5, crowd.agents - crowd.agents_left)
    result.goal("streams lost", "at most", 0.5, crowd.streams - crowd.streams_left)
    result.goal("KiB of an agent's socket", "at most", SOCKET_GOAL_KIB, socket_kib)
    result.goal("KiB of an open stream", "at most", STREAM_GOAL_KIB, stream_kib)
    result.goal("share of a core while nothing happens", "at most", CPU_GOAL, cpu)
    result.note_others([crowd.idle.others])
    result.runs = [asdict(crowd)]
    return result


def _two(took: Sequence[float]) -> str:
    return f"{median(took):.1f}, {percentile(took, 0.99):.1f}"


def _settled_kib(process: Target) -> int:
    time.sleep(SETTLE_S)
    return process.server.rss_kib()


def _idle(process: Target, owners: Users, count: int, folder: Path) -> Iterator[AbstractContextManager[Program]]:
    """Programs with some hundred agents each, which only answer pings."""
    tokens = itertools.cycle(owner["channel_token"] for owner in owners)
    for first in range(0, count, AT_ONCE):
        some = [{"channel_token": next(tokens), "session_id": ""} for _ in range(min(AT_ONCE, count - first))]
        yield targets.agents(process.port, some, folder / f"idle-{first}.log")


def _options() -> argparse.Namespace:
    parser = scale.parser("scale_crowded", main.__doc__)
    parser.add_argument("--home", choices=targets.HOMES, default="postgres")
    parser.add_argument("--agents", type=int, default=AGENTS, help=f"default {AGENTS}")
    parser.add_argument("--streams", type=int, default=STREAMS, help=f"default {STREAMS}")
    parser.add_argument(
        "--seconds", type=int, default=SECONDS, help=f"left alone for that long (default {SECONDS})"
    )
    parser.add_argument(
        "--times", type=int, default=TIMES, help=f"streamed asks before and among (default {TIMES})"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
