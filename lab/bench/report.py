"""The tables at the end: ratios within one round, medians over rounds, goals met or not."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from statistics import median

from lab.bench.cores import LOAD_CORE, SERVER_CORE
from lab.bench.load import Run
from lab.bench.memory import Memory
from lab.bench.targets import SDK

SATURATED = 0.95
DISTURBED = 0.1

SPEED_GOALS = [("embedded", 32, 5.0), ("embedded", 1, 1.2), ("postgres", 32, 3.0)]
STREAM_GOALS = [("embedded 1.0", 32, 4.0)]
SOCKET_GOAL_KIB = 32.0
STREAM_GOAL_KIB = 16.0


@dataclass
class Findings:
    """Everything one bench measured.

    `rounds`: the SendMessage runs of each round, `stream_rounds`: those of SendStreamingMessage; a ratio never
    crosses rounds.
    """

    generator: str
    rounds: list[list[Run]] = field(default_factory=list)
    stream_rounds: list[list[Run]] = field(default_factory=list)
    first_chunks_ms: dict[str, list[float]] = field(default_factory=dict)
    memory: list[Memory] = field(default_factory=list)


def speed_ratio(rounds: Sequence[Sequence[Run]], target: str, connections: int) -> float | None:
    """Asks per second divided by the SDK's, each round for itself; the median."""
    ratios = []
    for runs in rounds:
        speed = {run.target: run.asks_per_s for run in runs if run.connections == connections}
        if speed.get(SDK) and target in speed:
            ratios.append(speed[target] / speed[SDK])
    return median(ratios) if ratios else None


def text(found: Findings) -> str:
    """All tables."""
    by = f"load by {found.generator}, medians of {len(found.rounds)} rounds"
    parts = [
        _speed(f"SendMessage, {by}", found.rounds),
        _speed(f"SendStreamingMessage, {by}", found.stream_rounds),
        _first_chunks(found),
        _memory(found),
        _goals(found),
    ]
    return "\n\n".join(part for part in parts if part)


def _speed(title: str, rounds: Sequence[Sequence[Run]]) -> str:
    if not rounds:
        return ""
    groups: dict[tuple[int, str], list[Run]] = {}
    for run in (run for runs in rounds for run in runs):
        groups.setdefault((run.connections, run.target), []).append(run)
    rows = []
    for (connections, target), runs in groups.items():
        ratio = speed_ratio(rounds, target, connections)
        load_core = median(run.load_core for run in runs)
        rows.append([
            target, str(connections),
            f"{median(run.asks_per_s for run in runs):.0f}",
            f"{ratio:.2f}" if ratio else "-",
            f"{median(run.p50_ms for run in runs):.2f}",
            f"{median(run.p99_ms for run in runs):.1f}",
            str(sum(run.errors for run in runs)),
            f"{median(run.server_cpu for run in runs):.0%}",
            f"{median(run.stolen for run in runs):.0%}",
            f"{load_core:.0%}" + (" full" if load_core > SATURATED else ""),
        ])  # fmt: skip
    head = [
        "target",
        "conns",
        "asks/s",
        "x SDK",
        "p50 ms",
        "p99 ms",
        "errors",
        "server cpu",
        "stolen",
        "load's core",
    ]
    errors = {run.first_error for runs in rounds for run in runs if run.first_error}
    notes = [title]
    if any(run.generator_cpu > SATURATED for runs in rounds for run in runs):
        notes.append(
            "the load generator used up its core: it is the bottleneck, and the servers are faster than this"
        )
    if any(run.stolen > DISTURBED for runs in rounds for run in runs) and SERVER_CORE != LOAD_CORE:
        notes.append(
            "others worked on the servers' core meanwhile: these figures are low and uneven, run it again"
        )
    return "\n".join([*notes, table(head, rows), *(f"an error: {error}" for error in sorted(errors)[:5])])


def _first_chunks(found: Findings) -> str:
    rows = []
    for target, times in found.first_chunks_ms.items():
        ordered = sorted(times)
        rows.append(
            [target, f"{median(ordered):.2f}", f"{ordered[len(ordered) * 99 // 100]:.1f}", str(len(ordered))]
        )
    head = ["target", "p50 ms", "p99 ms", "streams"]
    return "SendStreamingMessage, time to the first chunk at 1 connection\n" + table(head, rows) if rows else ""


def _memory(found: Findings) -> str:
    if not found.memory:
        return ""
    sdk = next((memory.stream_kib for memory in found.memory if memory.target == SDK), None)
    rows = [
        [
            one.target, f"{one.rest_kib / 1024:.0f}",
            "-" if one.socket_kib is None else f"{one.socket_kib:.1f}", str(one.sockets or "-"),
            f"{one.stream_kib:.1f}", str(one.streams),
            f"{one.stream_kib / sdk:.2f}" if sdk else "-",
        ]
        for one in found.memory
    ]  # fmt: skip
    head = ["target", "rest MiB", "KiB/socket", "sockets", "KiB/stream", "streams", "x SDK"]
    return "Memory of a fresh server\n" + table(head, rows)


def _goals(found: Findings) -> str:
    rows = [
        goal(f"{target}, {connections} connections: times the SDK's asks/s", "at least", floor, ratio)
        for target, connections, floor in SPEED_GOALS
        if (ratio := speed_ratio(found.rounds, target, connections)) is not None
    ]
    rows += [
        goal(f"{target}, {connections} connections: times the SDK's streams/s", "at least", floor, ratio)
        for target, connections, floor in STREAM_GOALS
        if (ratio := speed_ratio(found.stream_rounds, target, connections)) is not None
    ]
    for one in found.memory:
        if one.socket_kib is not None:
            rows.append(goal(f"{one.target}, an idle agent socket: KiB", "under", SOCKET_GOAL_KIB, one.socket_kib))
            rows.append(goal(f"{one.target}, an open stream: KiB", "under", STREAM_GOAL_KIB, one.stream_kib))
    return "Goals\n" + table(["goal", "wanted", "measured", ""], rows) if rows else ""


def goal(what: str, relation: str, wanted: float, measured: float) -> list[str]:
    is_met = measured >= wanted if relation == "at least" else measured < wanted
    return [what, f"{relation} {wanted:g}", f"{measured:.2f}", "met" if is_met else "NOT MET"]


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    return "\n".join(
        "  ".join(
            [
                line[0].ljust(widths[0]),
                *(cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)),
            ]
        )
        for line in lines
    )
