"""`python -m lab.bench.soak`: does the hub grow under mixed asks? Everything is counted (docs/howto/bench.md)."""

import asyncio
import random
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psycopg
import redis
import uvloop

from lab.bench import command, hubs
from lab.bench.agents import RawEchoAgent, dial
from lab.bench.client import BenchCaller
from lab.bench.command import Option, Options, bench, flag, odd_lines, show_progress
from lab.bench.hubs import USERS, Hub, User
from lab.bench.probes import Probe, serve_command
from lab.bench.visits import Ends, Visit, cancel, cut, directory, look, send, stranger, stream, visit
from lab.figures import BenchResult
from lab.processes import Program

WARM_MINUTES = 10.0
GROWTH_GOAL = 1.05
SLACK = 3  # a count moves by a few with what is under way
STAYS_S = (1.0, 20.0)
AT_ONCE = 200
VISITS: Mapping[Visit, int] = {send: 40, stream: 20, cut: 5, cancel: 10, look: 10, stranger: 3, directory: 3}
COUNTED = ("rss_kib", "fds", "threads", "tasks", "db_connections", "redis_clients")
HEAD = ("", "first", "last", "growth")
CONNECTIONS = (
    "SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND pid <> pg_backend_pid()"
)


@dataclass(frozen=True)
class Sample:
    """The counts at one time. `at_s`: since the beginning. Counts of web processes are added up."""

    at_s: float
    rss_kib: int
    fds: int
    threads: int
    tasks: int
    db_connections: int
    redis_clients: int
    redis_kib: int


@dataclass
class Soaked:
    """The findings: regular samples, how visits ended, and how often agents came back."""

    samples: list[Sample] = field(default_factory=list)
    ends: Ends = field(default_factory=Counter)
    returns: int = 0
    last: list[dict[str, Any]] = field(default_factory=list)


def measure(options: Options, folder: Path) -> BenchResult:
    """Load a hub lightly with everything that callers and agents do, and see what grows."""
    processes = 1 if options.home == "embedded" else options.processes
    served = serve_command("traced-growth" if options.trace else "growth", folder)
    with hubs.storages(options.home, folder) as new_storage:
        storage = new_storage()
        users, online = hubs.seed(storage), USERS - options.flapping
        with hubs.running(
            storage, users, processes=processes, online=online, command=served, REPLY_WAIT_S="20"
        ) as hub:
            soaked = uvloop.run(soak(hub, folder, options))
            result = report(soaked, options, processes)
            result.notes += [note for web in hub.web for note in odd_lines(web.lines)]
    return result


async def soak(hub: Hub, folder: Path, options: Options) -> Soaked:
    """Visit at random moments, `rate` a second in all, while agents come and go; look every so often."""
    soaked, began = Soaked(), time.monotonic()
    probes = {web.pid: Probe(web.pid, folder) for web in hub.web}
    async with asyncio.TaskGroup() as tasks:
        flapping = hub.users[USERS - options.flapping :]
        going = [tasks.create_task(_come_and_go(user, hub, soaked)) for user in flapping]
        going.append(tasks.create_task(_visit_on(hub, options.rate, soaked)))
        while (at_s := time.monotonic() - began) < options.minutes * 60:
            soaked.samples.append(await asyncio.to_thread(_sample, at_s, hub, probes))
            counts = ", ".join(f"{what} {getattr(soaked.samples[-1], what)}" for what in COUNTED)
            show_progress(f"{soaked.ends.total()} visits, {counts}")
            await asyncio.sleep(options.every)
        for task in going:
            task.cancel()
    soaked.last = [
        {"as it was": one.read(), "garbage collected": one.read(collect=True)} for one in probes.values()
    ]
    return soaked


async def _visit_on(hub: Hub, rate: float, soaked: Soaked) -> None:
    """Visits begin at random moments; one that finds `AT_ONCE` under way waits for one to end."""
    callers = [hubs.caller_of(user, "1.0") for user in hub.users]
    room, number = asyncio.Semaphore(AT_ONCE), 0

    async def come(number: int, caller: BenchCaller) -> None:
        async with room:
            await visit(VISITS, random.choice(hub.ports), caller, number, soaked.ends)

    async with asyncio.TaskGroup() as tasks:
        while True:
            await asyncio.sleep(random.expovariate(rate))
            async with room:
                tasks.create_task(come(number := number + 1, random.choice(callers)))


async def _come_and_go(user: User, hub: Hub, soaked: Soaked) -> None:
    """Kill an agent every few seconds and connect it again, to any process."""
    while True:
        agent = await dial(
            lambda: RawEchoAgent(user["channel_token"], user["session_id"]), random.choice(hub.ports)
        )
        await asyncio.sleep(random.uniform(*STAYS_S))
        agent.leave()
        soaked.returns += 1


def _sample(at_s: float, hub: Hub, probes: Mapping[int, Probe]) -> Sample:
    """Count everything now; blocks for a moment."""
    tasks = sum(one.read()["tasks"] for one in probes.values())
    connections, clients, redis_kib = _databases(hub.env) if "DATABASE_URL" in hub.env else (0, 0, 0)
    return Sample(
        at_s=at_s,
        rss_kib=sum(web.rss_kib() for web in hub.web),
        fds=sum(_count(web, "fd") for web in hub.web),
        threads=sum(_count(web, "task") for web in hub.web),
        tasks=tasks,
        db_connections=connections,
        redis_clients=clients,
        redis_kib=redis_kib,
    )


def _count(web: Program, what: str) -> int:
    """Descriptors (`fd`) or threads (`task`) of a process."""
    return len(list(Path(f"/proc/{web.pid}/{what}").iterdir()))


def _databases(env: Mapping[str, str]) -> tuple[int, int, int]:
    with psycopg.connect(env["DATABASE_URL"]) as connection:
        row = connection.execute(CONNECTIONS).fetchone()
    with redis.Redis.from_url(env["REDIS_URL"]) as client:
        told = {**client.info("clients"), **client.info("memory")}
    return int(row[0] if row else 0), int(told["connected_clients"]) - 1, int(told["used_memory"]) // 1024


def grown(samples: Sequence[Sample], what: str, warm_s: float) -> tuple[float, float]:
    """The median of the first tenth after the warm-up, and of the last tenth."""
    values = [float(getattr(one, what)) for one in samples if one.at_s >= warm_s]
    if not values:
        raise ValueError("no sample after the warm-up")
    tenth = max(1, len(values) // 10)
    return median(values[:tenth]), median(values[-tenth:])


def report(soaked: Soaked, options: Options, processes: int) -> BenchResult:
    """The growth after the warm-up, and how the visits ended."""
    warm_minutes = min(WARM_MINUTES, options.minutes / 3)
    title = f"{options.minutes:g} minutes of mixed asks on {options.home}, {options.rate:g} a second"
    result, rows = BenchResult("soak", title), []
    for what in COUNTED:
        first, last = grown(soaked.samples, what, warm_minutes * 60)
        rows.append([what, f"{first:.0f}", f"{last:.0f}", f"{last / first - 1 if first else 0:+.1%}"])
        wanted = first * GROWTH_GOAL + (0 if what == "rss_kib" else SLACK)
        result.goal(f"{what}, beside {first:.0f} after {warm_minutes:g} minutes", "at most", wanted, last)
    result.table(f"Before and after, medians; web processes together: {processes}", HEAD, rows)
    kinds = sorted({kind for kind, _ in soaked.ends})
    ends = [[kind, ", ".join(f"{end} {count}" for end, count in _ends(soaked, kind))] for kind in kinds]
    result.table(f"Visits; agents came back {soaked.returns} times", ["kind", "ends"], ends)
    result.runs = [asdict(one) for one in soaked.samples]
    result.runs.append({"last": soaked.last})
    left = [[one[when]["objects"] for when in ("as it was", "garbage collected")] for one in soaked.last]
    result.notes += [f"of {every:,} objects of a process at the end {held:,} were held" for every, held in left]
    return result


def _ends(soaked: Soaked, kind: str) -> list[tuple[str, int]]:
    return [(end, count) for (one, end), count in soaked.ends.most_common() if one == kind]


if __name__ == "__main__":
    bench(
        "soak",
        measure,
        Option("--minutes", 30.0, "how long"),
        Option("--rate", 10.0, "visits a second"),
        Option("--every", 10.0, "seconds between two looks"),
        command.home(),
        Option("--processes", 2, "web processes; of an embedded hub 1"),
        Option("--flapping", 4, "agents that come and go"),
        flag("--trace", "also say where memory was allocated; slow"),
    )
