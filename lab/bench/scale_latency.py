"""`python -m lab.bench.scale_latency`: how long an ask takes at half load, and streams beside the SDK's."""

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median

from lab.bench import command, hubs, load
from lab.bench.command import HOMES, Options, bench, show_progress
from lab.bench.hubs import SDK, BenchTarget
from lab.bench.load import LoadRun, cells, speed_ratio
from lab.figures import BenchResult, median_ratio

CONNECTIONS = 32
LINES = 64
HALF = 0.5
P99_GOAL_MS = 25.0
STREAMS_GOAL = 4.0
HEAD = ("target", "streams/s", "x SDK", "cpu ms/stream", "SDK's / it", "p50 ms", "p99 ms", "asks/s", "errors",
        "server cpu", "stolen")  # fmt: skip
HALF_COLUMNS = ("asks/s", "p50 ms", "p95 ms", "p99 ms", "max ms", "errors", "others")


@dataclass(frozen=True)
class Round:
    """The runs of one target in a round: as many streams and asks as possible; half the asks of a hub."""

    streams: LoadRun
    asks: LoadRun
    half: LoadRun | None


def measure(options: Options, folder: Path) -> BenchResult:
    """Load the SDK's server and hubs in turns with streams and asks, then each hub at half of what it can do."""
    rounds: list[list[Round]] = []
    with ExitStack() as stack:
        running = [stack.enter_context(hubs.sdk(folder))]
        running += [stack.enter_context(hubs.hub(home, folder)) for home in options.homes]
        for number in range(options.rounds):
            show_progress(f"round {number + 1} of {options.rounds}")
            rounds.append([_measure(target, options.seconds) for target in running])
    return report(rounds)


def _measure(target: BenchTarget, seconds: float) -> Round:
    streams = load.measure(target, CONNECTIONS, seconds, method="SendStreamingMessage", kind="stream")
    asks = load.measure(target, CONNECTIONS, seconds)
    if target.name == SDK:
        return Round(streams, asks, None)
    half = load.measure(target, LINES, seconds, rate=max(1.0, asks.asks_per_s * HALF))
    show_progress(f"{target.name}: {half.rate:.0f} asks/s, p99 {half.p99_ms:.1f} ms")
    return Round(streams, asks, half)


def report(rounds: Sequence[Sequence[Round]]) -> BenchResult:
    """Streams beside the SDK's of the same round; asks at half load by the median of the rounds."""
    result = BenchResult("scale-latency", f"Medians of {len(rounds)} rounds, {CONNECTIONS} connections")
    of: dict[str, list[Round]] = {}
    for one in (one for runs in rounds for one in runs):
        of.setdefault(one.streams.target, []).append(one)
    streams = {name: [one.streams for one in runs] for name, runs in of.items()}
    result.table("As many as go", HEAD, [_row(name, of[name], streams) for name in of])
    halves = {name: [one.half for one in runs if one.half] for name, runs in of.items() if name != SDK}
    rows = [[name, *cells(runs, *HALF_COLUMNS)] for name, runs in halves.items()]
    result.table("Asks at half of that", ["target", *HALF_COLUMNS], rows)
    for name, runs in halves.items():
        ratio = speed_ratio(streams[name], streams[SDK])
        result.goal(f"{name}: times the SDK's streams/s", "at least", STREAMS_GOAL, ratio)
        result.goal(f"{name}: p99 ms at half load", "at most", P99_GOAL_MS, median(one.p99_ms for one in runs))
    result.note_others([one.used.others for runs in halves.values() for one in runs])
    result.note_errors(run.first_error for runs in rounds for one in runs for run in (one.streams, one.asks))
    result.runs = [asdict(one) for runs in rounds for one in runs]
    return result


def _row(name: str, runs: Sequence[Round], streams: dict[str, list[LoadRun]]) -> list[str]:
    mine, asks = streams[name], [one.asks for one in runs]
    # Processor time holds better than streams a second where others take the processors.
    cheaper = median_ratio([run.web_ms for run in streams[SDK]], [run.web_ms for run in mine])
    return [
        name,
        *cells(mine, "asks/s"),
        f"{speed_ratio(mine, streams[SDK]):.2f}",
        f"{median(run.web_ms for run in mine):.2f}",
        f"{cheaper:.2f}",
        *cells(mine, "p50 ms", "p99 ms"),
        *cells(asks, "asks/s"),
        *cells([*mine, *asks], "errors"),
        *cells(mine, "server cpu", "stolen"),
    ]


if __name__ == "__main__":
    bench("scale_latency", measure, command.homes(*HOMES), command.rounds(), command.seconds(4))
