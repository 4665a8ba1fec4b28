"""`python -m lab.bench.scale_processes`: what 1, 2 and 4 web processes do, and what an ask costs them."""

import argparse
import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median

from lab.bench import load, scale, targets
from lab.bench.cores import CPUS, LOAD_CORE
from lab.bench.scale import Result, say
from lab.bench.scale_hubs import SERVER_CORES, Hubs, Way, homes, hubs
from lab.bench.scale_meter import Meter, Used, kin, place

COUNTS = (1, 2, 4)
CONNECTIONS = (32, 64, 128)
SECOND_PROCESS_GOAL = 1.15
CROSSING_GOAL = 2.0
WARM_UP_S = 1
PINNED, FREE = "own core", "all cores"
Load = tuple[int, Way, int]  # processes, way, connections


@dataclass(frozen=True)
class Run:
    """One run. `cores`: those of the web processes, beside the load's, or all for all processes.

    Times are milliseconds: `p50_ms` the mean of the processes', `p99_ms` that of the slowest.
    """

    round: int
    cores: str
    processes: int
    way: Way
    connections: int
    asks_per_s: float
    p50_ms: float
    p99_ms: float
    errors: int
    first_error: str
    used: Used

    @property
    def asks(self) -> float:
        """How many were answered."""
        return self.asks_per_s * self.used.took_s

    @property
    def web_ms(self) -> float:
        """Processor time of web processes an ask."""
        return self.used.web_s / self.asks * 1000 if self.asks else float("nan")


def main() -> None:
    """Load hubs of 1, 2 and 4 web processes on one PostgreSQL and Redis in turns; see what an ask costs them."""
    options = _options()
    runs: list[Run] = []
    with ExitStack() as stack:
        folder = stack.enter_context(scale.folder())
        running = _start(options.processes, folder, stack)
        for one in running:
            measure(one, 0, "any", max(options.connections), WARM_UP_S, PINNED)
        for cores in (PINNED, FREE):
            _place(running, cores)
            for number in range(options.rounds):
                runs += [_said(run) for run in _round(running, number, cores, options)]
    scale.publish(report(runs), options.results)


def measure(target: Hubs, number: int, way: Way, connections: int, seconds: int, cores: str) -> Run:
    """Load all processes of one hub at once, the connections spread evenly over them."""
    asked = target.asked(way)
    each = max(1, connections // len(asked))
    templates = [one.templates("SendMessage") for one in asked]
    ports = [one.port for one in asked]
    with ThreadPoolExecutor(len(asked)) as pool:
        meter = Meter(target.web, target.agents)
        said = list(
            pool.map(lambda one: load.generate(one[0], one[1], each, seconds), zip(templates, ports, strict=True))
        )
        used = meter.used()
    return Run(
        round=number,
        cores=cores,
        processes=len(asked),
        way=way,
        connections=each * len(asked),
        asks_per_s=sum(one["asks_per_s"] for one in said),
        p50_ms=fmean(one["p50_ms"] for one in said),
        p99_ms=max(one["p99_ms"] for one in said),
        errors=sum(one["errors"] for one in said),
        first_error=next((one["first_error"] for one in said if one["first_error"]), ""),
        used=used,
    )


def report(runs: Sequence[Run]) -> Result:
    """Medians over rounds; what is compared, is compared within each round."""
    result = Result("scale-processes", "SendMessage to hubs of several web processes, PostgreSQL and Redis")
    groups: dict[tuple[str, int, int, Way], list[Run]] = {}
    for run in runs:
        groups.setdefault((run.cores, run.connections, run.processes, run.way), []).append(run)
    for cores in (PINNED, FREE):
        rows = [_row(group) for key, group in groups.items() if key[0] == cores]
        where = (
            f"on {len(SERVER_CORES)} core(s) beside the load's" if cores == PINNED else f"all on {len(CPUS)} cores"
        )
        result.tables.append((f"Web processes {where}", HEAD, rows))
    for connections in sorted({run.connections for run in runs}):
        _hold_against_goals(result, [run for run in runs if run.cores == PINNED], connections)
    result.note_others([run.used.others for run in runs])
    result.notes += [
        f"an error: {error}" for error in sorted({run.first_error for run in runs if run.first_error})
    ]
    result.runs = [asdict(run) for run in runs]
    return result


HEAD = ("processes", "asked", "conns", "asks/s", "p50 ms", "p99 ms", "errors", "web ms/ask", "pg ms/ask",
        "redis ms/ask", "others")  # fmt: skip


def _hold_against_goals(result: Result, runs: Sequence[Run], connections: int) -> None:
    """`connections` in all, and once as many for each of the two."""
    alone: Load = (1, "any", connections)
    compared: list[tuple[str, Load, Load, float]] = [
        ("2 processes / 1, asked for their own agents", (2, "stay", connections), alone, SECOND_PROCESS_GOAL),
        ("the same, each as loaded as the 1", (2, "stay", 2 * connections), alone, SECOND_PROCESS_GOAL),
        ("2 processes / 1, asked as a proxy spreads", (2, "any", connections), alone, SECOND_PROCESS_GOAL),
        ("the same, each as loaded as the 1", (2, "any", 2 * connections), alone, SECOND_PROCESS_GOAL),
        ("crosses / stays", (2, "cross", connections), (2, "stay", connections), CROSSING_GOAL),
    ]
    for what, one, other, wanted in compared:
        if (ratio := _ratio(runs, one, other)) is not None:
            result.goal(f"web cpu an ask, {connections} conns: {what}", "at most", wanted, ratio)


def _ratio(runs: Sequence[Run], one: Load, other: Load) -> float | None:
    """Processor time an ask of one kind beside the other's, each round for itself; the median."""
    cost = {(run.round, run.processes, run.way, run.connections): run.web_ms for run in runs}
    rounds = {run.round for run in runs}
    ratios = [cost[n, *one] / cost[n, *other] for n in rounds if (n, *one) in cost and (n, *other) in cost]
    return median(ratios) if ratios else None


def _row(group: Sequence[Run]) -> list[str]:
    first = group[0]
    asks = sum(run.asks for run in group) or float("nan")
    return [
        str(first.processes), first.way, str(first.connections),
        f"{median(run.asks_per_s for run in group):.0f}",
        f"{median(run.p50_ms for run in group):.1f}",
        f"{median(run.p99_ms for run in group):.1f}",
        str(sum(run.errors for run in group)),
        f"{median(run.web_ms for run in group):.3f}",
        f"{sum(run.used.postgres_s for run in group) / asks * 1000:.3f}",
        f"{sum(run.used.redis_s for run in group) / asks * 1000:.3f}",
        f"{median(run.used.others for run in group):.0%}",
    ]  # fmt: skip


def _round(running: Sequence[Hubs], number: int, cores: str, options: argparse.Namespace) -> list[Run]:
    ways: dict[int, tuple[Way, ...]] = {1: ("any",), 2: ("stay", "cross", "any")}
    return [
        measure(one, number, way, connections, options.seconds, cores)
        for connections in options.connections
        for one in running
        for way in (("any",) if cores == FREE else ways.get(len(one.processes), ("stay", "any")))
    ]


def _said(run: Run) -> Run:
    say(
        f"round {run.round + 1}, {run.cores}: {run.processes} x {run.way}, {run.connections} connections:"
        f" {run.asks_per_s:.0f} asks/s, {run.web_ms:.3f} ms of web cpu an ask, others {run.used.others:.0%}"
    )
    return run


def _start(counts: Sequence[int], folder: Path, stack: ExitStack) -> list[Hubs]:
    new_home = stack.enter_context(homes("postgres", folder))
    running = []
    for count in counts:
        say(f"starting a hub of {count} web processes")
        env = new_home()
        running.append(stack.enter_context(hubs(count, env, folder, targets.seed(env))))
    return running


def _place(running: Sequence[Hubs], cores: str) -> None:
    """Give each process its core again, or all processes all cores."""
    if cores == FREE:
        place([os.getpid(), *(one.pid for one in kin(os.getpid()))], CPUS)
        return
    os.sched_setaffinity(0, {LOAD_CORE})
    for one in running:
        for index, web in enumerate(one.web):
            place([web.pid], {SERVER_CORES[index % len(SERVER_CORES)]})


def _options() -> argparse.Namespace:
    parser = scale.parser("scale_processes", main.__doc__)
    parser.add_argument("--processes", type=int, nargs="+", default=COUNTS, help="of each hub (default 1 2 4)")
    parser.add_argument("--connections", type=int, nargs="+", default=CONNECTIONS, help="default 32 64 128")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4, help="length of one run (default 4)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
