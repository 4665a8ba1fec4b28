"""`python -m lab.bench.scale_latency`: how long an ask takes at half load, and streams beside the SDK's."""

import argparse
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from statistics import median

import uvloop

from lab.bench import load, scale, targets
from lab.bench.load import Run
from lab.bench.scale import Result, percentile, say
from lab.bench.scale_meter import Meter, Used
from lab.bench.scale_pace import Paced, pace
from lab.bench.targets import SDK, Target

CONNECTIONS = 32
LINES = 64
HALF = 0.5
P99_GOAL_MS = 25.0
STREAMS_GOAL = 4.0


@dataclass(frozen=True)
class Round:
    """One target in one round: streams and asks as many as go, then half as many asks a second."""

    streams: Run
    asks: Run
    half: Paced | None
    used: Used | None


def main() -> None:
    """Load the SDK's server and the hub in turns with streams and asks, then the hub at half of what it can do."""
    options = _options()
    rounds: list[list[Round]] = []
    with ExitStack() as stack:
        folder = stack.enter_context(scale.folder())
        running = [stack.enter_context(targets.sdk(folder))]
        running += [stack.enter_context(targets.hub(home, folder)) for home in options.homes.split(",")]
        for number in range(options.rounds):
            say(f"round {number + 1} of {options.rounds}")
            rounds.append([_measure(target, options) for target in running])
    scale.publish(report(rounds), options.results)


def report(rounds: Sequence[Sequence[Round]]) -> Result:
    """Streams beside the SDK's of the same round; asks at half load by all rounds together."""
    result = Result("scale-latency", f"Medians of {len(rounds)} rounds, {CONNECTIONS} connections")
    of: dict[str, list[Round]] = {}
    for one in (one for runs in rounds for one in runs):
        of.setdefault(one.streams.target, []).append(one)
    result.tables.append(("As many as go", HEAD, [_row(name, runs, rounds) for name, runs in of.items()]))
    hubs = {name: runs for name, runs in of.items() if name != SDK}
    result.tables.append(("Asks at half of that", HALF_HEAD, [_half_row(*each) for each in hubs.items()]))
    for name, runs in hubs.items():
        result.goal(f"{name}: times the SDK's streams/s", "at least", STREAMS_GOAL, _ratio(rounds, name))
        result.goal(f"{name}: p99 ms at half load", "at most", P99_GOAL_MS, _p99(runs))
    result.note_others([one.used.others for runs in rounds for one in runs if one.used])
    errors = {run.first_error for runs in rounds for one in runs for run in (one.streams, one.asks)}
    result.notes += [f"an error: {error}" for error in sorted(errors) if error]
    result.runs = [asdict(one) for runs in rounds for one in runs]
    return result


HEAD = (
    "target",
    "streams/s",
    "x SDK",
    "cpu ms/stream",
    "SDK's / it",
    "p50 ms",
    "p99 ms",
    "asks/s",
    "errors",
    "server cpu",
    "stolen",
)
HALF_HEAD = ("target", "asks/s", "p50 ms", "p95 ms", "p99 ms", "max ms", "errors", "others")


def _row(name: str, runs: Sequence[Round], rounds: Sequence[Sequence[Round]]) -> list[str]:
    return [
        name,
        f"{median(one.streams.asks_per_s for one in runs):.0f}",
        f"{_ratio(rounds, name):.2f}",
        f"{median(map(_cpu_ms, runs)):.2f}",
        f"{1 / median(_cpu_ratios(rounds, name)):.2f}",
        f"{median(one.streams.p50_ms for one in runs):.1f}",
        f"{median(one.streams.p99_ms for one in runs):.1f}",
        f"{median(one.asks.asks_per_s for one in runs):.0f}",
        str(sum(one.streams.errors + one.asks.errors for one in runs)),
        f"{median(one.streams.server_cpu for one in runs):.0%}",
        f"{median(one.streams.stolen for one in runs):.0%}",
    ]


def _half_row(name: str, runs: Sequence[Round]) -> list[str]:
    halves = [one.half for one in runs if one.half]
    took = [ms for half in halves for ms in half.took_ms]
    return [
        name,
        f"{median(half.rate for half in halves):.0f}",
        *(f"{percentile(took, share):.1f}" for share in (0.5, 0.95, 0.99, 1.0)),
        str(sum(half.errors for half in halves)),
        f"{median(one.used.others for one in runs if one.used):.0%}",
    ]


def _p99(runs: Sequence[Round]) -> float:
    """The median round's: one stall of the machine spoils one round, not all."""
    return median(percentile(one.half.took_ms, 0.99) for one in runs if one.half)


def _ratio(rounds: Sequence[Sequence[Round]], name: str) -> float:
    speeds = [{one.streams.target: one.streams.asks_per_s for one in runs} for runs in rounds]
    return median(speed[name] / speed[SDK] for speed in speeds)


def _cpu_ratios(rounds: Sequence[Sequence[Round]], name: str) -> list[float]:
    """Processor time of a stream beside the SDK's: it holds better where others take the processors."""
    costs = [{one.streams.target: _cpu_ms(one) for one in runs} for runs in rounds]
    return [cost[name] / cost[SDK] for cost in costs]


def _cpu_ms(one: Round) -> float:
    return one.streams.server_cpu / one.streams.asks_per_s * 1000 if one.streams.asks_per_s else float("nan")


def _measure(target: Target, options: argparse.Namespace) -> Round:
    streams = load.measure(target, CONNECTIONS, options.seconds, method="SendStreamingMessage", kind="stream")
    asks = load.measure(target, CONNECTIONS, options.seconds)
    if target.name == SDK:
        return Round(streams, asks, None, None)
    meter = Meter([target.server], [target.agents] if target.agents else [])
    rate = max(1.0, asks.asks_per_s * HALF)
    half = uvloop.run(pace(target.templates("SendMessage"), target.port, LINES, rate, options.seconds))
    say(f"{target.name}: {rate:.0f} asks/s, p99 {percentile(half.took_ms, 0.99):.1f} ms")
    return Round(streams, asks, half, meter.used())


def _options() -> argparse.Namespace:
    parser = scale.parser("scale_latency", main.__doc__)
    parser.add_argument("--homes", default=",".join(targets.HOMES), help="default embedded,postgres")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4, help="length of one run (default 4)")
    return parser.parse_args()


if __name__ == "__main__":
    main()
