"""`python -m lab.bench.soak`: does the hub grow under mixed asks? Everything is counted (docs/howto/bench.md)."""

import argparse
import asyncio
import random
import time
from collections import Counter
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import uvloop

from lab.bench import scale, targets
from lab.bench.agents import EchoAgent
from lab.bench.scale import Result, say
from lab.bench.scale_hubs import Hubs, homes, hubs
from lab.bench.soak_asks import visit
from lab.bench.soak_samples import COUNTED, Sample, Watched, grown, sample
from lab.bench.soak_server import counts_file
from lab.bench.targets import USERS, Caller

WARM_MINUTES = 10.0
GROWTH_GOAL = 1.05
SLACK = 3  # a count moves by a few with what is under way
STAYS_S = (1.0, 20.0)
SETTINGS = {"REPLY_WAIT_S": "20"}
AT_ONCE = 200


@dataclass
class Soaked:
    """What happened: a look every so often, and how each kind of visit ended."""

    samples: list[Sample] = field(default_factory=list)
    ends: Counter[tuple[str, str]] = field(default_factory=Counter)
    returns: int = 0
    last: list[dict[str, dict[str, Any]]] = field(default_factory=list)


def main() -> None:
    """Load a hub lightly with everything that callers and agents do, and see what grows."""
    options = _options()
    with ExitStack() as stack:
        folder = stack.enter_context(scale.folder())
        command = ["-m", "lab.bench.soak_server", str(folder), *(["trace"] if options.trace else [])]
        env = stack.enter_context(homes(options.home, folder))() | SETTINGS
        running = stack.enter_context(
            hubs(
                options.processes, env, folder, targets.seed(env), online=USERS - options.flapping, command=command
            )
        )
        soaked = uvloop.run(soak(running, folder, options))
        odd = [line for web in running.web for line in web.lines if not line.startswith("ready ")]
    result = report(soaked, options)
    result.notes += [f"the hub printed: {line}" for line in odd[:10]]
    scale.publish(result, options.results)


async def soak(target: Hubs, folder: Path, options: argparse.Namespace) -> Soaked:
    """Visit at random moments, `rate` a second in all, while agents come and go; look every so often."""
    soaked, began = Soaked(), time.monotonic()
    watched = [Watched(web, counts_file(folder, web.pid)) for web in target.web]
    users = target.users[USERS - options.flapping :]
    async with asyncio.TaskGroup() as tasks:
        going = [tasks.create_task(_come_and_go(user, target, soaked)) for user in users]
        going.append(tasks.create_task(_visit_on(target, options.rate, soaked)))
        while (at_s := time.monotonic() - began) < options.minutes * 60:
            soaked.samples.append(await asyncio.to_thread(sample, at_s, watched, target.env))
            say(_line(soaked))
            await asyncio.sleep(options.every)
        for task in going:
            task.cancel()
    soaked.last = [{"as it was": one.look(), "garbage collected": one.look(collect=True)} for one in watched]
    return soaked


async def _visit_on(target: Hubs, rate: float, soaked: Soaked) -> None:
    """Visits begin at random moments; one that finds `AT_ONCE` under way waits for one to end."""
    ports = [one.port for one in target.processes]
    callers = [targets.caller_of(user, "1.0") for user in target.users]
    room, number = asyncio.Semaphore(AT_ONCE), 0

    async def come(number: int, caller: Caller) -> None:
        async with room:
            soaked.ends[await visit(random.choice(ports), caller, number)] += 1

    async with asyncio.TaskGroup() as tasks:
        while True:
            await asyncio.sleep(random.expovariate(rate))
            async with room:
                tasks.create_task(come(number := number + 1, random.choice(callers)))


async def _come_and_go(user: dict[str, str], target: Hubs, soaked: Soaked) -> None:
    """An agent that is killed every few seconds and comes back, to any process."""
    loop = asyncio.get_running_loop()
    while True:
        port = random.choice(target.processes).port
        _, agent = await loop.create_connection(
            lambda: EchoAgent(user["channel_token"], user["session_id"]), "127.0.0.1", port
        )
        await agent.welcomed
        await asyncio.sleep(random.uniform(*STAYS_S))
        agent.leave()
        soaked.returns += 1


def report(soaked: Soaked, options: argparse.Namespace) -> Result:
    """What grew after the warm-up, and how the visits ended."""
    warm_minutes = min(WARM_MINUTES, options.minutes / 3)
    title = f"{options.minutes:g} minutes of mixed asks on {options.home}, {options.rate:g} a second"
    result, rows = Result("soak", title), []
    for what in COUNTED:
        first, last = grown(soaked.samples, what, warm_minutes * 60)
        rows.append([what, f"{first:.0f}", f"{last:.0f}", f"{last / first - 1 if first else 0:+.1%}"])
        wanted = first * GROWTH_GOAL + (0 if what == "rss_kib" else SLACK)
        result.goal(f"{what}, beside {first:.0f} after {warm_minutes:g} minutes", "at most", wanted, last)
    result.tables.append((f"Before and after, medians; web processes together: {options.processes}", HEAD, rows))
    kinds = sorted({kind for kind, _ in soaked.ends})
    ends = [[kind, ", ".join(f"{end} {count}" for end, count in _ends(soaked, kind))] for kind in kinds]
    result.tables.append((f"Visits; agents came back {soaked.returns} times", ["kind", "ends"], ends))
    result.runs = [asdict(one) for one in soaked.samples]
    result.runs.append({"last": soaked.last})
    left = [[one[when]["objects"] for when in ("as it was", "garbage collected")] for one in soaked.last]
    result.notes += [f"of {every:,} objects of a process at the end {held:,} were held" for every, held in left]
    return result


HEAD = ["", "first", "last", "growth"]


def _ends(soaked: Soaked, kind: str) -> list[tuple[str, int]]:
    return [(end, count) for (one, end), count in soaked.ends.most_common() if one == kind]


def _line(soaked: Soaked) -> str:
    now = soaked.samples[-1]
    counts = ", ".join(f"{what} {getattr(now, what)}" for what in COUNTED)
    return f"{now.at_s / 60:5.1f} min: {soaked.ends.total()} visits, {counts}"


def _options() -> argparse.Namespace:
    parser = scale.parser("soak", main.__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=10.0, help="visits a second (default 10)")
    parser.add_argument("--every", type=float, default=10.0, help="seconds between two looks (default 10)")
    parser.add_argument("--home", choices=targets.HOMES, default="postgres")
    parser.add_argument("--processes", type=int, default=2, help="web processes (default 2; embedded: 1)")
    parser.add_argument("--flapping", type=int, default=4, help="agents that come and go (default 4)")
    parser.add_argument("--trace", action="store_true", help="also say where memory was allocated; slow")
    options = parser.parse_args()
    if options.home == "embedded":
        options.processes = 1
    return options


if __name__ == "__main__":
    main()
