"""`python -m lab.bench.scale_growth`: what an ask costs as agents and turns grow (docs/howto/bench.md)."""

import argparse
import json
import os
import subprocess
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from lab import ROOT
from lab.bench import scale, targets
from lab.bench.scale import Result, say
from lab.bench.scale_hubs import Hubs, homes, hubs
from lab.bench.scale_processes import PINNED, Run, measure
from lab.hub_storage import hub_env
from lab.processes import python, run

ASKED = 10
SIZES = ((10, 10_000), (10_000, 10_000), (10, 1_000_000), (10_000, 1_000_000))
FLAT_GOAL = 1.2
CONNECTIONS = 32
BATCHES = 200
SIZE = "SELECT pg_database_size(current_database())"


class Ledger:
    """A process that does batches of asks in a hub's database, when told."""

    def __init__(self, hub: Hubs) -> None:
        env = {**os.environ, **hub.env}
        command = python("-m", "lab.bench.scale_plans")
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=ROOT, env=env
        )
        self.plans: list[dict[str, Any]] = self._ask(json.dumps(hub.users))

    def batch(self) -> dict[str, float]:
        """Do one; its milliseconds."""
        told: dict[str, float] = self._ask("again")
        return told

    def close(self) -> None:
        """End it."""
        self._process.communicate()

    def _ask(self, line: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"bench.scale_plans ended with {self._process.wait()}")
        return json.loads(answer)


@dataclass(frozen=True)
class Grown:
    """A hub with a past: agents and turns in its database."""

    agents: int
    turns: int
    hub: Hubs
    ledger: Ledger

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
        return float(row[0]) / 2**20 if row else 0.0


@dataclass(frozen=True)
class Loaded:
    """One hub in one round: one asker, then many."""

    alone: Run
    many: Run

    @property
    def cpu_ms(self) -> float:
        """Processor time of the web process and PostgreSQL an ask, among many."""
        used = self.many.used
        return (used.web_s + used.postgres_s) / self.many.asks * 1000 if self.many.asks else float("nan")


@dataclass
class Findings:
    """By hub: the ledger's batches, one of each hub in turn; whole asks, in rounds too; plans and sizes."""

    batches: dict[str, list[dict[str, float]]] = field(default_factory=dict)
    loaded: dict[str, list[Loaded]] = field(default_factory=dict)
    plans: dict[str, list[dict[str, Any]]] = field(default_factory=dict)
    mib: dict[str, float] = field(default_factory=dict)


def main() -> None:
    """Fill databases of several sizes, then measure all of them in turns: the ledger's statements, whole asks."""
    options = _options()
    with ExitStack() as stack:
        folder = stack.enter_context(scale.folder())
        new_home = stack.enter_context(homes(options.home, folder))
        grown = [_start(new_home(), size, folder, stack) for size in options.sizes]
        found = Findings(plans={one.name: one.ledger.plans for one in grown})
        say(f"{options.batches} batches in the ledger of each")
        for _ in range(options.batches):
            for one in grown:
                found.batches.setdefault(one.name, []).append(one.ledger.batch())
        for number in range(options.rounds):
            for one in grown:
                found.loaded.setdefault(one.name, []).append(_load(one, number, options.seconds))
        found.mib = {one.name: one.mib() for one in grown}
    scale.publish(report(found), options.results)


def report(found: Findings) -> Result:
    """Medians; each size beside the first, each round of batches or load for itself."""
    result = Result(
        "scale-growth", f"Asks to {ASKED} agents of hubs with a past, batches of {ASKED} in the ledger"
    )
    first, *others = found.batches
    result.tables.append(("Medians", HEAD, [_row(found, name) for name in found.batches]))
    for name in others:
        for what in ("admit_ms", "settle_ms"):
            pairs = zip(found.batches[name], found.batches[first], strict=True)
            ratio = median(one[what] / other[what] for one, other in pairs)
            result.goal(f"{what[:-3]} in the ledger: {name} / {first}", "at most", FLAT_GOAL, ratio)
        ratio = median(
            one.cpu_ms / other.cpu_ms for one, other in zip(found.loaded[name], found.loaded[first], strict=True)
        )
        result.goal(f"cpu an ask, web and database: {name} / {first}", "at most", FLAT_GOAL, ratio)
    scans = [(name, plan) for name, plans in found.plans.items() for plan in plans if plan["scans"]]
    count = sum(map(len, found.plans.values()))
    result.goal(f"whole reads of tables over 5,000 rows, in {count} plans", "at most", 0.5, len(scans))
    result.notes += [
        f"{name} reads all of {', '.join(one['scans'])}: {one['statement'][:100]}" for name, one in scans
    ]
    result.note_others([one.many.used.others for runs in found.loaded.values() for one in runs])
    result.runs = [asdict(found)]
    return result


HEAD = ("hub", "MiB", "admit ms", "settle ms", "cpu ms", "p50 ms at 1", "asks/s at 32", "web ms/ask", "pg ms/ask")


def _row(found: Findings, name: str) -> list[str]:
    batches, runs = found.batches[name], found.loaded[name]
    return [
        name,
        f"{found.mib[name]:.0f}",
        *(f"{median(one[what] for one in batches):.2f}" for what in ("admit_ms", "settle_ms", "cpu_ms")),
        f"{median(one.alone.p50_ms for one in runs):.2f}",
        f"{median(one.many.asks_per_s for one in runs):.0f}",
        f"{median(one.many.web_ms for one in runs):.3f}",
        f"{median(one.cpu_ms - one.many.web_ms for one in runs):.3f}",
    ]


def _load(one: Grown, number: int, seconds: int) -> Loaded:
    alone = measure(one.hub, number, "any", 1, seconds, PINNED)
    many = measure(one.hub, number, "any", CONNECTIONS, seconds, PINNED)
    say(f"round {number + 1}: {one.name}: {many.asks_per_s:.0f} asks/s, {many.web_ms:.3f} ms of web cpu an ask")
    return Loaded(alone, many)


def _start(env: Mapping[str, str], size: tuple[int, int], folder: Path, stack: ExitStack) -> Grown:
    agents, turns = size
    say(f"filling a database with {agents:,} agents and {turns:,} turns")
    told = run(python("-m", "lab.bench.scale_seed", *map(str, (ASKED, agents, turns))), hub_env(env))
    hub = stack.enter_context(hubs(1, env, folder, json.loads(told)))
    ledger = Ledger(hub)
    stack.callback(ledger.close)
    return Grown(agents, turns, hub, ledger)


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
    parser.add_argument("--batches", type=int, default=BATCHES, help=f"in each ledger (default {BATCHES})")
    return parser.parse_args()


if __name__ == "__main__":
    main()
