"""`python -m lab.bench.completions`: chat completions beside A2A 1.0, on the same hub in the same round."""

from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path

from lab.bench import command, hubs, load
from lab.bench.command import HOMES, Options, bench
from lab.bench.hubs import AGENTS_PATH, BenchTarget
from lab.bench.load import LoadRun, cells, speed_ratio
from lab.figures import BenchResult

CONNECTIONS = 32
WARM_UP_S = 1
GOAL = 0.8
KINDS = {"unary": ("SendMessage", "say"), "stream": ("SendStreamingMessage", "stream")}
COMPLETIONS_PATH = "/v1/chat/completions"
COLUMNS = ("asks/s", "p99 ms", "errors", "server cpu", "web ms/ask")
Rounds = list[tuple[LoadRun, LoadRun]]


def measure(options: Options, folder: Path) -> BenchResult:
    """Ask each hub over A2A and for chat completions, alternately."""
    measured: dict[str, Rounds] = {}
    for home in options.homes:
        with hubs.hub(f"{home} 1.0", folder) as target:
            both = (target, as_models(target))
            for kind, (method, word) in KINDS.items():
                for one in both:
                    load.measure(one, CONNECTIONS, WARM_UP_S, method=method, kind=word)
                for _ in range(options.rounds):
                    a2a, chat = (
                        load.measure(one, CONNECTIONS, options.seconds, method=method, kind=word) for one in both
                    )
                    measured.setdefault(f"{home}, {kind}", []).append((a2a, chat))
    return report(measured, options.rounds)


def as_models(target: BenchTarget) -> BenchTarget:
    """The target, asked for chat completions."""
    callers = [
        replace(
            caller,
            path=COMPLETIONS_PATH,
            headers=caller.headers.replace(f"A2A-Version: {caller.version}\r\n", ""),
            version="",
            model=f"agent/{caller.path.removeprefix(AGENTS_PATH)}",
        )
        for caller in target.callers
    ]
    return replace(target, name="chat", callers=tuple(callers))


def report(measured: Mapping[str, Rounds], rounds: int) -> BenchResult:
    """The figures, and chat completions divided by asks over A2A, each round for itself."""
    title = f"Chat completions beside A2A 1.0, {CONNECTIONS} connections, medians of {rounds} rounds"
    result, rows = BenchResult("completions", title), []
    for name, pairs in measured.items():
        a2a, chat = ([pair[index] for pair in pairs] for index in (0, 1))
        rows += [[name, "A2A 1.0", *cells(a2a, *COLUMNS)], [name, "chat", *cells(chat, *COLUMNS)]]
        result.goal(f"{name}: times A2A's asks/s", "at least", GOAL, speed_ratio(chat, a2a))
    result.table("In turns", ["home", "asked by", *COLUMNS], rows)
    runs = [run for pairs in measured.values() for pair in pairs for run in pair]
    result.note_errors(run.first_error for run in runs)
    result.runs = [asdict(run) for run in runs]
    return result


if __name__ == "__main__":
    bench("completions", measure, command.homes(*HOMES), command.rounds(), command.seconds(4))
