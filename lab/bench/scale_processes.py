"""`python -m lab.bench.scale_processes`: what 1, 2 and 4 web processes do, and what an ask costs them."""

import os
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

from lab.bench import command, hubs, load
from lab.bench.command import Option, Options, bench, show_progress
from lab.bench.hubs import Hub, Way
from lab.bench.load import AskedServer, LoadRun, cells
from lab.bench.meter import CPUS, LOAD_CORE, SERVER_CORES, kin, place
from lab.figures import BenchResult, median_ratio

COUNTS = (1, 2, 4)
CONNECTIONS = (32, 64, 128)
SECOND_PROCESS_GOAL = 1.15
CROSSING_GOAL = 2.0
WARM_UP_S = 1
PINNED, FREE = "own core", "all cores"
WAYS: dict[int, tuple[Way, ...]] = {1: ("any",), 2: ("stay", "cross", "any")}
COLUMNS = ("asks/s", "p50 ms", "p99 ms", "errors", "web ms/ask", "pg ms/ask", "redis ms/ask", "others")
LoadKey = tuple[int, Way, int]  # processes, way, connections


@dataclass(frozen=True)
class ProcessesRun:
    """A run. `cores`: those of the web processes, beside the load's, or all for all processes."""

    round: int
    cores: str
    processes: int
    way: Way
    run: LoadRun

    @property
    def load(self) -> LoadKey:
        """The kind of load, by which runs are compared."""
        return self.processes, self.way, self.run.connections


def measure(options: Options, folder: Path) -> BenchResult:
    """Load hubs of 1, 2 and 4 web processes on one PostgreSQL and Redis in turns."""
    runs: list[ProcessesRun] = []
    with ExitStack() as stack:
        new_storage = stack.enter_context(hubs.storages("postgres", folder))
        running = []
        for count in options.processes:
            show_progress(f"starting a hub of {count} web processes")
            storage = new_storage()
            hub = hubs.running(storage, hubs.seed(storage), processes=count)
            running.append(stack.enter_context(hub))
        for one in running:
            load_all(one, "any", max(options.connections), WARM_UP_S)
        for cores in (PINNED, FREE):
            _place(running, cores)
            for number in range(options.rounds):
                runs += _round(running, number, cores, options)
    return report(runs)


def load_all(hub: Hub, way: Way, connections: int, seconds: float) -> LoadRun:
    """Load all processes of one hub at once, the connections spread evenly over them."""
    targets = hub.asked(way)
    asked = [AskedServer(one.port, one.templates("SendMessage")) for one in targets]
    each = max(1, connections // len(targets))
    return load.measure_servers(way, hub.web, asked, each, seconds, agents=hub.agents)


def _round(running: Sequence[Hub], number: int, cores: str, options: Options) -> list[ProcessesRun]:
    found = []
    for connections in options.connections:
        for hub in running:
            count = len(hub.web)
            for way in ("any",) if cores == FREE else WAYS.get(count, ("stay", "any")):
                run = load_all(hub, way, connections, options.seconds)
                found.append(ProcessesRun(number, cores, count, way, run))
                show_progress(
                    f"round {number + 1}, {cores}: {count} x {way}, {run.connections} connections:"
                    f" {run.asks_per_s:.0f} asks/s, {run.web_ms:.3f} ms of web cpu an ask,"
                    f" others {run.used.others:.0%}"
                )
    return found


def report(runs: Sequence[ProcessesRun]) -> BenchResult:
    """Medians over rounds; what is compared, is compared within each round."""
    result = BenchResult("scale-processes", "SendMessage to hubs of several web processes, PostgreSQL and Redis")
    for cores in (PINNED, FREE):
        groups: dict[LoadKey, list[LoadRun]] = {}
        for one in runs:
            if one.cores == cores:
                groups.setdefault(one.load, []).append(one.run)
        where = (
            f"on {len(SERVER_CORES)} core(s) beside the load's" if cores == PINNED else f"all on {len(CPUS)} cores"
        )
        rows = [[str(count), way, str(conns), *cells(of, *COLUMNS)] for (count, way, conns), of in groups.items()]
        result.table(f"Web processes {where}", ["processes", "asked", "conns", *COLUMNS], rows)
    pinned = [one for one in runs if one.cores == PINNED]
    for connections in sorted({one.run.connections for one in runs}):
        _hold_against_goals(result, pinned, connections)
    result.note_others([one.run.used.others for one in runs])
    result.note_errors(one.run.first_error for one in runs)
    result.runs = [asdict(one) for one in runs]
    return result


def _hold_against_goals(result: BenchResult, runs: Sequence[ProcessesRun], connections: int) -> None:
    """`connections` in all, and once as many for each of the two."""
    alone: LoadKey = (1, "any", connections)
    compared: list[tuple[str, LoadKey, LoadKey, float]] = [
        ("2 processes / 1, asked for their own agents", (2, "stay", connections), alone, SECOND_PROCESS_GOAL),
        ("the same, each as loaded as the 1", (2, "stay", 2 * connections), alone, SECOND_PROCESS_GOAL),
        ("2 processes / 1, asked as a proxy spreads", (2, "any", connections), alone, SECOND_PROCESS_GOAL),
        ("the same, each as loaded as the 1", (2, "any", 2 * connections), alone, SECOND_PROCESS_GOAL),
        ("crosses / stays", (2, "cross", connections), (2, "stay", connections), CROSSING_GOAL),
    ]
    cost = {(one.round, one.load): one.run.web_ms for one in runs}
    for what, one, other, wanted in compared:
        rounds = {number for number, kind in cost if kind == one and (number, other) in cost}
        if rounds:
            ratio = median_ratio([cost[n, one] for n in rounds], [cost[n, other] for n in rounds])
            result.goal(f"web cpu an ask, {connections} conns: {what}", "at most", wanted, ratio)


def _place(running: Sequence[Hub], cores: str) -> None:
    """Give each process its core again, or all processes all cores."""
    if cores == FREE:
        place([os.getpid(), *(one.pid for one in kin(os.getpid()))], CPUS)
        return
    os.sched_setaffinity(0, {LOAD_CORE})
    for hub in running:
        for web in hub.web:
            place([web.pid], {web.core} if web.core is not None else SERVER_CORES)


if __name__ == "__main__":
    many = {"nargs": "+", "type": int}
    bench(
        "scale_processes",
        measure,
        Option("--processes", COUNTS, "web processes of each hub", many),
        Option("--connections", CONNECTIONS, "in all", many),
        command.rounds(),
        command.seconds(4),
    )
