"""`python -m lab.bench.completions`: chat completions beside A2A 1.0, on the same hub in the same round."""

import argparse
import os
from dataclasses import replace
from statistics import median

from lab.bench import load, targets
from lab.bench.cores import LOAD_CORE
from lab.bench.load import Run
from lab.bench.report import goal, table
from lab.bench.targets import Target

CONNECTIONS = 32
ROUNDS = 3
SECONDS = 4
WARM_UP_S = 1
GOAL = 0.8
KINDS = {"unary": ("SendMessage", "say"), "stream": ("SendStreamingMessage", "stream")}
AGENTS_PATH = "/api/a2a/v1/agents/"
COMPLETIONS_PATH = "/v1/chat/completions"
Rounds = list[tuple[Run, Run]]


def main() -> None:
    """Measure each home; print a table and the goals."""
    parser = argparse.ArgumentParser(prog="python -m lab.bench.completions", description=main.__doc__)
    parser.add_argument("--homes", default=",".join(targets.HOMES))
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of A2A and chat (default {ROUNDS})")
    parser.add_argument("--seconds", type=int, default=SECONDS, help=f"length of one run (default {SECONDS})")
    options = parser.parse_args()
    os.sched_setaffinity(0, {LOAD_CORE})
    measured: dict[str, Rounds] = {}
    with targets.temporary_folder() as folder:
        for home in options.homes.split(","):
            with targets.hub(f"{home} 1.0", folder) as target:
                measured |= measure(home, target, options.rounds, options.seconds)
    print(f"Chat completions beside A2A 1.0, {CONNECTIONS} connections, medians of {options.rounds} rounds\n")
    print(text(measured))


def measure(home: str, target: Target, rounds: int, seconds: int) -> dict[str, Rounds]:
    """Runs of A2A and of chat completions, alternately, by home and kind."""
    chat, measured = as_models(target), {}
    for kind, (method, word) in KINDS.items():
        for one in (target, chat):
            load.measure(one, CONNECTIONS, WARM_UP_S, method=method, kind=word)
        measured[f"{home}, {kind}"] = [
            (
                load.measure(target, CONNECTIONS, seconds, method=method, kind=word),
                load.measure(chat, CONNECTIONS, seconds, method=method, kind=word),
            )
            for _ in range(rounds)
        ]
    return measured


def as_models(target: Target) -> Target:
    """The same hub and agents, asked for chat completions."""
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


def ratio(rounds: Rounds) -> float:
    """Asks per second of chat completions divided by those of A2A, each round for itself; the median."""
    return median(chat.asks_per_s / a2a.asks_per_s for a2a, chat in rounds)


def text(measured: dict[str, Rounds]) -> str:
    """The figures, and whether the goals are met."""
    rows = [
        [name, wire, *_figures(runs)]
        for name, rounds in measured.items()
        for wire, runs in (("A2A 1.0", [a2a for a2a, _ in rounds]), ("chat", [chat for _, chat in rounds]))
    ]
    head = ["home", "asked by", "asks/s", "p99 ms", "errors", "server cpu", "cpu ms/ask"]
    goals = [
        goal(f"{name}: times A2A's asks/s", "at least", GOAL, ratio(rounds)) for name, rounds in measured.items()
    ]
    errors = {
        run.first_error for rounds in measured.values() for pair in rounds for run in pair if run.first_error
    }
    shown = [table(head, rows), *(f"an error: {error}" for error in sorted(errors)[:5])]
    return "\n".join(shown) + "\n\nGoals\n" + table(["goal", "wanted", "measured", ""], goals)


def _figures(runs: list[Run]) -> list[str]:
    return [
        f"{median(run.asks_per_s for run in runs):.0f}",
        f"{median(run.p99_ms for run in runs):.1f}",
        str(sum(run.errors for run in runs)),
        f"{median(run.server_cpu for run in runs):.0%}",
        f"{median(1000 * run.server_cpu / (run.asks_per_s or 1) for run in runs):.3f}",
    ]


if __name__ == "__main__":
    main()
