"""`python -m lab.bench.calls`: what an ask costs the hub in calls, whatever the speed of the machine."""

import argparse
import asyncio
import json
import os
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from lab.bench import report, targets
from lab.bench.round_trips import RoundTrips, counted
from lab.bench.soak_asks import LENGTH
from lab.bench.streams import FIRST_CHUNK, LAST
from lab.bench.targets import USERS, Target
from lab.hub_storage import manage
from lab.servers import running_servers
from lab.waiting import until

DIALECTS = {"hub": "", "1.0": "1.0", "0.3": "0.3"}
KINDS = {"unary": ("SendMessage", "say"), "stream": ("SendStreamingMessage", "stream")}
CONNECTIONS = (1, 32)
ASKS = {1: 200}
ASKS_A_CONNECTION = 20
WARM_UP = 5
WITHIN_S = 60.0
THREADS = {"MainThread": "loop", "ledger": "ledger"}
LEDGER = "agents/core/ledger/"
HANDS_OVER = "SimpleQueue.put"
SQLITE = {f"{kind}.{name}" for kind in ("Connection", "Cursor") for name in ("execute", "executemany", "commit")}


class Row(NamedTuple):
    """A line of what `lab.bench.calls_server` counted."""

    thread: str
    file: str
    function: str
    c_function: str
    times: int


@dataclass(frozen=True)
class Asked:
    """What was asked, and how often."""

    home: str
    dialect: str
    kind: str
    connections: int
    asks: int


@dataclass(frozen=True)
class Cost:
    """What one ask took. `threads`: calls of Python and of C functions in the loop's thread, the ledger's, others.

    `calls`: of the loop and the ledger. Other threads do what the clock asks for, so theirs say little of an ask.
    `modules`, `functions`: of ours that ran at least in every second ask. `ledger_trips`: how often the loop gave
    the ledger something to do. `database_trips`: of the ledger; statements on SQLite, round trips on PostgreSQL.
    `top`: the functions that are called most, with their calls an ask.
    """

    asked: Asked
    calls: float
    threads: Mapping[str, tuple[float, float]]
    modules: int
    functions: int
    ledger_trips: float
    database_trips: float
    top: Sequence[tuple[float, str]] = field(default=())


@dataclass(frozen=True)
class Counting:
    """A running hub that counts. `round_trips`: of its way to PostgreSQL."""

    target: Target
    users: Sequence[dict[str, str]]
    counts: Path
    round_trips: RoundTrips | None = None

    def cost(self, dialect: str, kind: str, connections: int, asks: int) -> Cost:
        """Ask so often in all, each connection an agent of its own, one ask after the other."""
        callers = tuple(targets.caller_of(user, DIALECTS[dialect]) for user in self.users[:connections])
        target = Target(self.target.name, self.target.port, self.target.server, callers)
        method, word = KINDS[kind]
        each = asks // connections
        asyncio.run(_ask(target, method, word, WARM_UP))
        self._signal()
        before = self.round_trips.counts() if self.round_trips else []
        asyncio.run(_ask(target, method, word, each))
        after = self.round_trips.counts() if self.round_trips else []
        rows = [Row._make(row) for row in self._signal()]
        asked = Asked(self.target.name, dialect, kind, connections, each * connections)
        trips = [count - then for count, then in zip(after, before, strict=False)]  # the busiest is the ledger's
        return cost_of(rows, asked, round_trips=max(trips) if self.round_trips else None)

    def _signal(self) -> list[list[Any]]:
        """Have it begin or end to count; what it then says."""
        before = len(self._lines())
        os.kill(self.target.server.pid, signal.SIGUSR1)
        until(lambda: len(self._lines()) > before, "the hub counted its calls", within_s=WITHIN_S)
        said: list[list[Any]] = json.loads(self._lines()[-1])
        return said

    def _lines(self) -> list[str]:
        text = self.counts.read_text() if self.counts.exists() else ""
        return text[: text.rfind("\n") + 1].splitlines()


def cost_of(rows: Sequence[Row], asked: Asked, *, round_trips: int | None = None) -> Cost:
    """The cost of each of these asks, of what was counted meanwhile."""
    asks = asked.asks
    threads: dict[str, list[int]] = {name: [0, 0] for name in (*THREADS.values(), "others")}
    functions: Counter[str] = Counter()
    often: set[tuple[str, str]] = set()
    for row in rows:
        threads[THREADS.get(row.thread, "others")][bool(row.c_function)] += row.times
        functions[f"C {row.c_function}" if row.c_function else f"{row.file}:{row.function}"] += row.times
        if not row.c_function and row.times * 2 >= asks and not row.file.startswith(("/", "<")):
            often.add((row.file, row.function))
    handed = _times(rows, lambda row: row.c_function == HANDS_OVER and row.file.startswith(LEDGER))
    statements = _times(rows, lambda row: row.c_function in SQLITE and row.thread == "ledger")
    return Cost(
        asked=asked,
        calls=sum(sum(threads[name]) for name in THREADS.values()) / asks,
        threads={name: (of_python / asks, of_c / asks) for name, (of_python, of_c) in threads.items()},
        modules=len({file for file, _ in often}),
        functions=len(often),
        ledger_trips=handed / asks,
        database_trips=(statements if round_trips is None else round_trips) / asks,
        top=[(times / asks, name) for name, times in functions.most_common()],
    )


def _times(rows: Sequence[Row], is_meant: Callable[[Row], bool]) -> int:
    return sum(row.times for row in rows if is_meant(row))


@contextmanager
def counting(home: str, env: Mapping[str, str], folder: Path, *, users: int = USERS) -> Iterator[Counting]:
    """A hub that counts, and agents of so many users connected to it.

    `env`: of the hub; its database has all tables. A PostgreSQL is reached by a way that counts, too.
    """
    with ExitStack() as stack:
        round_trips, own = None, dict(env)
        if url := env["DATABASE_URL"]:
            address, _, name = url.rpartition("/")
            host, _, port = address.rpartition(":")
            round_trips = stack.enter_context(counted(int(port)))
            own["DATABASE_URL"] = f"{host}:{round_trips.port}/{name}"
        seeded = targets.seed(env, users)
        counts = folder / "counts"
        command = ("-m", "lab.bench.calls_server", str(counts))
        server = stack.enter_context(targets.process(home, folder, own, command=command))
        agents = stack.enter_context(targets.agents(int(env["PORT"]), seeded, folder / "agents.log"))
        target = Target(home, int(env["PORT"]), server, (), agents)
        yield Counting(target, seeded, counts, round_trips)


async def _ask(target: Target, method: str, word: str, times: int) -> None:
    """Ask over one connection for each caller."""
    async with asyncio.TaskGroup() as tasks:
        for template in target.templates(method, word):
            tasks.create_task(_ask_over_one(target.port, template, times))


async def _ask_over_one(port: int, template: targets.Template, times: int) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        async with asyncio.timeout(WITHIN_S):
            for number in range(times):
                writer.write(template.fill(number))
                head = await reader.readuntil(b"\r\n\r\n")
                length = LENGTH.search(head.lower())
                answer = await (reader.readexactly(int(length[1])) if length else reader.readuntil(LAST))
                if FIRST_CHUNK not in answer:
                    raise RuntimeError(f"not answered: {answer[-300:]!r}")
    finally:
        writer.close()


def main() -> None:
    """Count every combination that is wanted, and print a table."""
    options = _options()
    costs: list[Cost] = []
    with targets.temporary_folder() as above:
        for home in options.homes:
            (folder := above / home).mkdir(mode=0o755)
            costs += _costs(home, folder, options)
    print(text(costs, options.top))
    if options.json:
        options.json.write_text(json.dumps([asdict(cost) for cost in costs], indent=1))


def _costs(home: str, folder: Path, options: argparse.Namespace) -> Iterator[Cost]:
    with ExitStack() as stack:
        urls = stack.enter_context(running_servers(folder)).env() if home == "postgres" else {}
        env = targets.environment(folder) | urls
        manage(env, "migrate", "--verbosity", "0")
        hub = stack.enter_context(counting(home, env, folder, users=max(2, *options.connections)))
        for connections in options.connections:
            asks = options.asks or ASKS.get(connections, ASKS_A_CONNECTION * connections)
            for dialect in options.dialects:
                for kind in options.kinds:
                    print(f"{home}, {dialect}, {kind}, {connections} connections", file=sys.stderr, flush=True)
                    yield hub.cost(dialect, kind, connections, asks)


def text(costs: Sequence[Cost], top: int = 0) -> str:
    """The table, and `top` functions of each line of it."""
    head = ["hub", "dialect", "kind", "conns", "calls", "loop Py+C", "ledger Py+C", "others Py+C"]
    head += ["modules", "functions", "ledger trips", "database trips"]
    rows, lists = [], []
    for cost in costs:
        asked = cost.asked
        threads = [f"{of_python:.0f}+{of_c:.0f}" for of_python, of_c in cost.threads.values()]
        what = [asked.home, asked.dialect, asked.kind, str(asked.connections)]
        trips = [f"{cost.ledger_trips:.2f}", f"{cost.database_trips:.2f}"]
        rows.append([*what, f"{cost.calls:.0f}", *threads, str(cost.modules), str(cost.functions), *trips])
        if top:
            lists += ["", ", ".join(what), *(f"  {times:7.2f}  {name}" for times, name in cost.top[:top])]
    return "\n".join(["Calls an ask costs the hub", report.table(head, rows), *lists])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.bench.calls", description=main.__doc__)
    for name, known in (("homes", targets.HOMES), ("dialects", tuple(DIALECTS)), ("kinds", tuple(KINDS))):
        parser.add_argument(f"--{name}", nargs="+", choices=known, default=known, help="default: all")
    parser.add_argument("--connections", nargs="+", type=int, default=CONNECTIONS, help="default: 1 32")
    parser.add_argument("--asks", type=int, help="in all; default 200 over one connection, else 20 over each")
    parser.add_argument("--top", type=int, default=0, metavar="N", help="also list the N functions called most")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write all counts there")
    return parser.parse_args()


if __name__ == "__main__":
    main()
