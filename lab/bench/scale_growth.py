"""`python -m lab.bench.scale_growth`: what an ask costs as agents and turns grow (docs/howto/bench.md)."""

import json
import subprocess
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from typing import Any

import psycopg

from lab import ROOT, in_django
from lab.bench import command, hubs
from lab.bench.command import Option, Options, bench, show_progress
from lab.bench.hubs import Hub
from lab.bench.load import LoadRun, cells
from lab.bench.scale_processes import load_all
from lab.figures import NOT_A_NUMBER, BenchResult, median_ratio
from lab.hub_storage import HubStorage, hub_env

ASKED = 10
SIZES = ((10, 10_000), (10_000, 10_000), (10, 1_000_000), (10_000, 1_000_000))
FLAT_GOAL = 1.2
CONNECTIONS = 32
BATCHES = 200
SIZE = "SELECT pg_database_size(current_database())"
BATCH_TIMES = ("admit_ms", "settle_ms", "cpu_ms")
HEAD = ("hub", "MiB", "admit ms", "settle ms", "cpu ms", "p50 ms at 1", "asks/s at 32", "web ms/ask", "pg ms/ask")


class LedgerProcess:
    """A process that runs batches of asks in a hub's database, on request."""

    def __init__(self, hub: Hub) -> None:
        self._process = subprocess.Popen(
            in_django.command("lab.bench.scale_plans:answer_lines"),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=ROOT,
            env=hub_env(hub.env),
        )
        self.plans: list[dict[str, Any]] = self._ask(json.dumps([dict(user) for user in hub.users]))

    def batch(self) -> dict[str, float]:
        """Run one batch; return its milliseconds."""
        told: dict[str, float] = self._ask("again")
        return told

    def close(self) -> None:
        """End the process."""
        self._process.communicate()

    def _ask(self, line: str) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(line + "\n")
        self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"lab.bench.scale_plans ended with {self._process.wait()}")
        return json.loads(answer)


@dataclass
class GrownHub:
    """A hub whose database has many agents and old turns, with what was measured of it.

    `batches`: of the ledger, one of each hub in turn; `rounds`: whole asks, likewise.
    """

    name: str
    hub: Hub
    ledger: LedgerProcess
    batches: list[dict[str, float]] = field(default_factory=list)
    rounds: list["GrowthRound"] = field(default_factory=list)

    def mib(self) -> float:
        """The size of the hub's database in MiB."""
        url = self.hub.env.get("DATABASE_URL")
        if not url:
            return sum(one.stat().st_size for one in Path(self.hub.env["DATA_DIR"]).glob("*.sqlite3*")) / 2**20
        with psycopg.connect(url) as connection:
            row = connection.execute(SIZE).fetchone()
        return float(row[0]) / 2**20 if row else 0.0


@dataclass(frozen=True)
class GrowthRound:
    """The runs of one hub in one round: one asker, then many."""

    alone: LoadRun
    many: LoadRun

    @property
    def cpu_ms(self) -> float:
        """Processor time of the web process and PostgreSQL an ask, among many."""
        used = self.many.used
        return (used.web_s + used.postgres_s) / self.many.asks * 1000 if self.many.asks else NOT_A_NUMBER


def measure(options: Options, folder: Path) -> BenchResult:
    """Fill databases of several sizes, then measure all of them in turns: the ledger's statements, whole asks."""
    with ExitStack() as stack:
        new_storage = stack.enter_context(hubs.storages(options.home, folder))
        grown = [_start(new_storage(), size, stack) for size in options.sizes]
        show_progress(f"{options.batches} batches in the ledger of each")
        for _ in range(options.batches):
            for one in grown:
                one.batches.append(one.ledger.batch())
        for number in range(options.rounds):
            for one in grown:
                alone, many = (load_all(one.hub, "any", count, options.seconds) for count in (1, CONNECTIONS))
                one.rounds.append(GrowthRound(alone, many))
                show_progress(f"round {number + 1}: {one.name}: {many.asks_per_s:.0f} asks/s")
        return report(grown)


def _start(storage: HubStorage, size: tuple[int, int], stack: ExitStack) -> GrownHub:
    agents, turns = size
    name = f"{agents:,} agents, {turns:,} turns"
    show_progress(f"filling a database with {name}")
    users = in_django.call(storage.env, "lab.bench.seed:fill", ASKED, agents, turns)
    hub = stack.enter_context(hubs.running(storage, users))
    ledger = LedgerProcess(hub)
    stack.callback(ledger.close)
    return GrownHub(name, hub, ledger)


def report(grown: Sequence[GrownHub]) -> BenchResult:
    """Medians; each size beside the first, each round of batches or load for itself."""
    title = f"Asks to {ASKED} agents of hubs with a past, batches of {ASKED} in the ledger"
    result, first = BenchResult("scale-growth", title), grown[0]
    result.table("Medians", HEAD, map(_row, grown))
    for one in grown[1:]:
        beside = f"{one.name} / {first.name}"
        for what in ("admit_ms", "settle_ms"):
            ratio = median_ratio(*([batch[what] for batch in hub.batches] for hub in (one, first)))
            result.goal(f"{what[:-3]} in the ledger: {beside}", "at most", FLAT_GOAL, ratio)
        ratio = median_ratio(*([each.cpu_ms for each in hub.rounds] for hub in (one, first)))
        result.goal(f"cpu an ask, web and database: {beside}", "at most", FLAT_GOAL, ratio)
    plans = [(one.name, plan) for one in grown for plan in one.ledger.plans]
    scans = [(name, plan) for name, plan in plans if plan["scans"]]
    result.goal(f"whole reads of tables over 5,000 rows, in {len(plans)} plans", "at most", 0.5, len(scans))
    result.notes += [
        f"{name} reads all of {', '.join(plan['scans'])}: {plan['statement'][:100]}" for name, plan in scans
    ]
    result.note_others([each.many.used.others for one in grown for each in one.rounds])
    by_name: dict[str, Callable[[GrownHub], object]] = {
        "batches": lambda one: one.batches,
        "loaded": lambda one: [asdict(each) for each in one.rounds],
        "plans": lambda one: one.ledger.plans,
        "mib": GrownHub.mib,
    }
    result.runs = [{what: {one.name: read(one) for one in grown} for what, read in by_name.items()}]
    return result


def _row(grown: GrownHub) -> list[str]:
    alone, many = ([getattr(each, which) for each in grown.rounds] for which in ("alone", "many"))
    return [
        grown.name,
        f"{grown.mib():.0f}",
        *(f"{median(one[what] for one in grown.batches):.2f}" for what in BATCH_TIMES),
        *cells(alone, "p50 ms"),
        *cells(many, "asks/s", "web ms/ask", "pg ms/ask"),
    ]


def _size(text: str) -> tuple[int, int]:
    agents, _, turns = text.partition("x")
    return int(agents), int(turns)


if __name__ == "__main__":
    sizes = Option("--sizes", SIZES, "agents and turns of each hub",
                   {"type": _size, "nargs": "+", "metavar": "AGENTSxTURNS"})  # fmt: skip
    batches = Option("--batches", BATCHES, "batches in each ledger")
    bench("scale_growth", measure, command.home(), sizes, command.rounds(), command.seconds(4), batches)
