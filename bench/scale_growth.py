"""`python -m bench.scale_growth`: what an ask costs as agents and turns grow (docs/howto/bench.md)."""

import argparse
import json
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from bench import scale, targets
from bench.children import python
from bench.scale import Result, say
from bench.scale_hubs import Hubs, homes, hubs
from bench.scale_processes import PINNED, Run, measure

ASKED = 10
SIZES = ((10, 10_000), (10_000, 10_000), (10, 1_000_000), (10_000, 1_000_000))
FLAT_GOAL = 1.2
CONNECTIONS = 32
BATCHES = 100
SIZE = "SELECT pg_database_size(current_database())"


@dataclass(frozen=True)
class Grown:
    """A hub with a past: agents and turns in its database."""

    agents: int
    turns: int
    hub: Hubs

    @property
    def name(self) -> str:
        """How the tables call it."""
        return f"{self.agents:,} agents, {self.turns:,} turns"

    def mib(self) -> float:
        """Size of its database."""
        if not self.hub.env["DATABASE_URL"]:
            return sum(one.stat().st_size for one in Path(self.hub.env["DATA_DIR"]).glob("*.sqlite3*")) / 2**20
        with psycopg.connect(self.hub.env["DATABASE_URL"]) as connection:
            row = connection.execute(SIZE).fetchone()
        return int(row[0]) / 2**20 if row else 0.0


@dataclass(frozen=True)
class Round:
    """One hub in one round: the ledger's batches by themselves, in ms, and the whole way under load."""

    name: str
    admit_ms: float
    settle_ms: float
    cpu_ms: float
    alone: Run
    loaded: Run


def main() -> None:
    """Fill databases of several sizes, then measure all of them in turns: the ledger's statements, whole asks."""
    options = _options()
    with ExitStack() as stack:
        folder = stack.enter_context(scale.folder())
        new_home = stack.enter_context(homes(options.home, folder))
        grown = [_start(new_home(), size, folder, stack) for size in options.sizes]
        plans = {one.name: _ledger(one.hub, 1)["plans"] for one in grown}
        rounds = [[_measure(one, number, options) for one in grown] for number in range(options.rounds)]
        sizes = {one.name: one.mib() for one in grown}
    result = report(rounds, plans, sizes)
    scale.publish(result, options.results)


def report(rounds: Sequence[Sequence[Round]], plans: Mapping[str, Any], sizes: Mapping[str, float]) -> Result:
    """Medians over rounds; each size beside the first, within each round."""
    result = Result(
        "scale-growth", f"Asks to {ASKED} agents of hubs with a past, batches of {ASKED} in the ledger"
    )
    names = [one.name for one in rounds[0]]
    of = {name: [one for runs in rounds for one in runs if one.name == name] for name in names}
    result.tables.append(("Medians", HEAD, [_row(name, runs, sizes[name]) for name, runs in of.items()]))
    for name in names[1:]:
        for what in ("admit_ms", "settle_ms"):
            measured = _beside(rounds, name, what)
            result.goal(f"{what[:-3]} in the ledger, {name} beside {names[0]}", "at most", FLAT_GOAL, measured)
    scans = [
        (name, one["statement"], one["scans"]) for name, each in plans.items() for one in each if one["scans"]
    ]
    count = sum(map(len, plans.values()))
    result.goal(f"whole reads of tables over 5,000 rows, in {count} plans", "at most", 0.5, len(scans))
    result.notes += [f"{name} reads all of {', '.join(tables)}: {text[:100]}" for name, text, tables in scans]
    result.note_others([one.loaded.used.others for runs in rounds for one in runs])
    result.runs = [asdict(one) for runs in rounds for one in runs]
    result.runs.append({"plans": plans})
    return result


HEAD = ("hub", "MiB", "admit ms", "settle ms", "cpu ms", "p50 ms at 1", "asks/s at 32", "web ms/ask", "pg ms/ask")


def _row(name: str, runs: Sequence[Round], mib: float) -> list[str]:
    return [
        name,
        f"{mib:.0f}",
        f"{median(one.admit_ms for one in runs):.2f}",
        f"{median(one.settle_ms for one in runs):.2f}",
        f"{median(one.cpu_ms for one in runs):.2f}",
        f"{median(one.alone.p50_ms for one in runs):.2f}",
        f"{median(one.loaded.asks_per_s for one in runs):.0f}",
        f"{median(one.loaded.web_ms for one in runs):.3f}",
        f"{median(one.loaded.used.postgres_s / one.loaded.asks * 1000 for one in runs):.3f}",
    ]


def _beside(rounds: Sequence[Sequence[Round]], name: str, what: str) -> float:
    """A figure of one size beside the first size's, each round for itself; the median."""
    pairs = [(next(one for one in runs if one.name == name), runs[0]) for runs in rounds]
    return float(median(getattr(one, what) / getattr(first, what) for one, first in pairs))


def _measure(one: Grown, number: int, options: argparse.Namespace) -> Round:
    told = _ledger(one.hub, options.batches)
    alone = measure(one.hub, number, "any", 1, options.seconds, PINNED)
    loaded = measure(one.hub, number, "any", CONNECTIONS, options.seconds, PINNED)
    medians = {what: median(told[what]) for what in ("admit_ms", "settle_ms", "cpu_ms")}
    say(
        f"round {number + 1}: {one.name}: admit {medians['admit_ms']:.2f} ms, settle {medians['settle_ms']:.2f}"
        f" ms, {loaded.asks_per_s:.0f} asks/s, {loaded.web_ms:.3f} ms of web cpu an ask"
    )
    return Round(one.name, **medians, alone=alone, loaded=loaded)


def _ledger(hub: Hubs, batches: int) -> dict[str, Any]:
    command = python("-m", "bench.scale_plans", str(batches))
    told: dict[str, Any] = json.loads(targets.run(command, hub.env, json.dumps(hub.users)))
    return told


def _start(env: Mapping[str, str], size: tuple[int, int], folder: Path, stack: ExitStack) -> Grown:
    agents, turns = size
    say(f"filling a database with {agents:,} agents and {turns:,} turns")
    told = targets.run(python("-m", "bench.scale_seed", *map(str, (ASKED, agents, turns))), env)
    return Grown(agents, turns, stack.enter_context(hubs(1, env, folder, json.loads(told))))


def _size(text: str) -> tuple[int, int]:
    agents, _, turns = text.partition("x")
    return int(agents), int(turns)


def _options() -> argparse.Namespace:
    parser = scale.parser("scale_growth", main.__doc__)
    parser.add_argument("--home", choices=targets.HOMES, default="postgres")
    shown = " ".join(f"{agents}x{turns}" for agents, turns in SIZES)
    parser.add_argument(
        "--sizes", type=_size, nargs="+", default=SIZES, metavar="AGENTSxTURNS", help=f"default {shown}"
    )
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=int, default=4, help="length of one load (default 4)")
    parser.add_argument(
        "--batches", type=int, default=BATCHES, help=f"of the ledger in a round (default {BATCHES})"
    )
    return parser.parse_args()


if __name__ == "__main__":
    main()
