"""`python -m lab.bench`: speed and memory of the hub beside an echo server of the SDK (docs/howto/bench.md)."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict
from functools import partial
from math import isnan
from pathlib import Path

import uvloop

from lab.bench import command, hubs, load, profile, streams
from lab.bench.command import Option, Options, bench, flag, odd_lines, show_progress
from lab.bench.hubs import SDK, BenchTarget, Start
from lab.bench.load import SATURATED, LoadRun, cells
from lab.bench.meter import LOAD_CORE, SERVER_CORES
from lab.bench.streams import Memory
from lab.figures import BenchResult, spread

CONNECTIONS = (1, 32, 128)
STREAM_CONNECTIONS = 32
FIRST_CHUNKS_A_ROUND = 200
SOCKETS = 1000
STREAMS = 500
WARM_UP_S = 1
DISTURBED = 0.1
SPEED_GOALS = [("embedded", 32, 5.0), ("embedded", 1, 1.2), ("postgres", 32, 3.0)]
STREAM_GOALS = [("embedded 1.0", 32, 4.0)]
SOCKET_GOAL_KIB, STREAM_GOAL_KIB = 32.0, 16.0
COLUMNS = ("p50 ms", "p99 ms", "errors", "server cpu", "stolen", "load's core")
Rounds = Sequence[Sequence[LoadRun]]  # ratios are computed within a round


def measure(options: Options, folder: Path) -> BenchResult:
    """Measure the hub beside an SDK echo server."""
    rounds = options.rounds or (1 if options.quick else 3)
    seconds = options.seconds or (2 if options.quick else 4)
    result = BenchResult("speed", f"The hub beside an echo server of the SDK, medians of {rounds} rounds")
    if len(SERVER_CORES) == 1 and SERVER_CORES[0] == LOAD_CORE:
        result.notes.append("one core: servers and load share it, so only the ratios mean something")
    sockets = streams.room_for(SOCKETS)
    starts: dict[str, Start] = {SDK: partial(hubs.sdk, short=options.short_sdk)}
    starts |= {home: partial(hubs.hub, home) for home in options.homes}
    found: list[Memory] = []
    asks: list[list[LoadRun]] = []
    streamed: list[list[LoadRun]] = []
    first_chunks: dict[str, list[float]] = {}
    try:
        with ExitStack() as stack:
            running = [stack.enter_context(start(folder)) for start in starts.values()]
            for target in running:
                load.measure(target, max(CONNECTIONS), WARM_UP_S)
            for number in range(rounds):
                show_progress(f"round {number + 1} of {rounds}")
                asks.append([load.measure(one, count, seconds) for count in CONNECTIONS for one in running])
                streamed.append([_stream(one, seconds) for one in running])
                for one in running:
                    times = uvloop.run(streams.first_chunks_ms(one, FIRST_CHUNKS_A_ROUND))
                    first_chunks.setdefault(one.name, []).extend(times)
            if options.profile:
                _profile(running)
            result.notes += [note for one in running for note in odd_lines(one.server.lines)]
        if not (options.no_memory or options.quick):
            for name, start in starts.items():
                show_progress(f"memory of {name}")
                found.append(streams.measure_memory(start, folder, sockets=sockets, streams=STREAMS))
    except KeyboardInterrupt:
        result.notes.append("stopped before its end")
    _report_speed(result, "SendMessage", asks)
    _report_speed(result, "SendStreamingMessage", streamed)
    rows = [[name, *spread(times, 0.5, 0.99, digits=2), str(len(times))] for name, times in first_chunks.items()]
    title = "SendStreamingMessage, time to the first chunk at 1 connection"
    result.table(title, ["target", "p50 ms", "p99 ms", "streams"], rows)
    _report_goals(result, asks, streamed)
    _report_memory(result, found)
    result.runs = [asdict(run) for runs in (*asks, *streamed) for run in runs]
    return result


def _stream(target: BenchTarget, seconds: float) -> LoadRun:
    return load.measure(target, STREAM_CONNECTIONS, seconds, method="SendStreamingMessage", kind="stream")


def _profile(running: Sequence[BenchTarget]) -> None:
    if not profile.is_there():
        show_progress("no py-spy on the PATH: pip install py-spy")
        return
    for target in running:
        for connections in (1, 32):
            show_progress(f"profile in {profile.profile(target, connections, command.RESULTS)}")


def sdk_ratio(rounds: Rounds, target: str, connections: int) -> float:
    """The median over the rounds of asks per second divided by the SDK's; NaN if either was not measured."""
    named = [{run.target: run for run in runs if run.connections == connections} for runs in rounds]
    both = [runs for runs in named if {SDK, target} <= runs.keys()]
    return load.speed_ratio([runs[target] for runs in both], [runs[SDK] for runs in both])


def _report_speed(result: BenchResult, method: str, rounds: Rounds) -> None:
    groups: dict[tuple[int, str], list[LoadRun]] = {}
    for run in (run for runs in rounds for run in runs):
        groups.setdefault((run.connections, run.target), []).append(run)
    rows = [
        [target, str(connections), cells(runs, "asks/s")[0], f"{sdk_ratio(rounds, target, connections):.2f}",
         *cells(runs, *COLUMNS)]
        for (connections, target), runs in groups.items()
    ]  # fmt: skip
    result.table(method, ["target", "conns", "asks/s", "x SDK", *COLUMNS], rows)
    runs = [run for runs in rounds for run in runs]
    if any(run.generator_cpu > SATURATED for run in runs):
        result.notes.append(
            f"{method}: the load used up its core: it is the bottleneck, and the servers are faster than this"
        )
    if any(run.used.stolen > DISTURBED for run in runs) and SERVER_CORES[0] != LOAD_CORE:
        result.notes.append(
            f"{method}: others worked on the servers' core meanwhile: the figures are low and uneven, run it again"
        )
    result.note_errors(run.first_error for run in runs)


def _report_goals(result: BenchResult, asks: Rounds, streamed: Rounds) -> None:
    for goals, rounds, what in ((SPEED_GOALS, asks, "asks/s"), (STREAM_GOALS, streamed, "streams/s")):
        for target, connections, floor in goals:
            if not isnan(ratio := sdk_ratio(rounds, target, connections)):
                name = f"{target}, {connections} connections: times the SDK's {what}"
                result.goal(name, "at least", floor, ratio)


def _report_memory(result: BenchResult, found: Sequence[Memory]) -> None:
    by_target: Mapping[str, Memory] = {one.target: one for one in found}
    sdk_kib = by_target[SDK].stream_kib if SDK in by_target else 0.0
    rows = [
        [
            one.target, f"{one.rest_kib / 1024:.0f}",
            "-" if one.socket_kib is None else f"{one.socket_kib:.1f}", str(one.sockets or "-"),
            f"{one.stream_kib:.1f}", str(one.streams),
            f"{one.stream_kib / sdk_kib:.2f}" if sdk_kib else "-",
        ]
        for one in found
    ]  # fmt: skip
    head = ["target", "rest MiB", "KiB/socket", "sockets", "KiB/stream", "streams", "x SDK"]
    result.table("Memory of a fresh server", head, rows)
    for one in found:
        if one.socket_kib is not None:
            result.goal(f"{one.target}, an idle agent socket: KiB", "under", SOCKET_GOAL_KIB, one.socket_kib)
            result.goal(f"{one.target}, an open stream: KiB", "under", STREAM_GOAL_KIB, one.stream_kib)


if __name__ == "__main__":
    bench(
        "",
        measure,
        flag("--quick", "one round of 2 s each, and no memory"),
        command.homes(*hubs.DIALECTS),
        Option("--rounds", None, "rounds over all targets; 3, quick 1", {"type": int}),
        Option("--seconds", None, "length of one run; 4, quick 2", {"type": int}),
        flag("--short-sdk", "the SDK answers in one event, its quickest, not in the usual four"),
        flag("--no-memory", "leave memory out"),
        flag("--profile", "profile each server with py-spy, into lab/bench/results/"),
    )
