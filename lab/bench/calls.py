"""`python -m lab.bench.calls`: what an ask costs the hub in calls, whatever the speed of the machine."""

import asyncio
import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

from lab.bench import hubs
from lab.bench.client import BenchCaller, connected, question_template
from lab.bench.command import HOMES, Option, Options, bench, show_progress
from lab.bench.hubs import BenchTarget, Hub
from lab.bench.probes import Probe, serve_command
from lab.bench.streams import FIRST_CHUNK
from lab.figures import BenchResult
from lab.hub_storage import HubStorage
from lab.proxy import Proxy, proxied

DIALECTS = {"hub": "", "1.0": "1.0", "0.3": "0.3"}
KINDS = {"unary": ("SendMessage", "say"), "stream": ("SendStreamingMessage", "stream")}
CONNECTIONS = (1, 32)
ASKS = {1: 200}
ASKS_A_CONNECTION = 20
WARM_UP = 5
WITHIN_S = 60.0
IDLE_S = 3.0
THREADS = {"MainThread": "loop", "ledger": "ledger"}
LEDGER = "agents/core/ledger/"
HANDS_OVER = "SimpleQueue.put"
SQLITE = {f"{kind}.{name}" for kind in ("Connection", "Cursor") for name in ("execute", "executemany", "commit")}
HEAD = ("hub", "dialect", "kind", "conns", "calls", "loop Py+C", "ledger Py+C", "others Py+C", "modules",
        "functions", "ledger trips", "database trips")  # fmt: skip


class CallCount(NamedTuple):
    """A count of `lab.bench.probes`. `times`: a whole number, unless what an idle hub does was taken away."""

    thread: str
    file: str
    function: str
    c_function: str
    times: float


@dataclass(frozen=True)
class CountedAsks:
    """The asks that were counted."""

    home: str
    dialect: str
    kind: str
    connections: int
    asks: int


@dataclass(frozen=True)
class RunCode:
    """The modules and functions of ours that ran at least for every second request."""

    modules: Sequence[str]
    functions: Sequence[str]


@dataclass(frozen=True)
class Cost:
    """The cost of an ask. `threads`: calls of Python and C functions in the loop's thread, the ledger's, others.

    `calls`: of the loop and the ledger. Other threads do periodic work, so theirs say little of an ask.
    `modules`, `functions`: see `RunCode`. `ledger_trips`: how often the loop gave the ledger something to do.
    `database_trips`: of the ledger; statements on SQLite, round trips on PostgreSQL. `top`: the functions that are
    called most, with their calls an ask.
    """

    asked: CountedAsks
    calls: float
    threads: Mapping[str, tuple[float, float]]
    modules: int
    functions: int
    ledger_trips: float
    database_trips: float
    top: Sequence[tuple[float, str]] = field(default=())


@dataclass(frozen=True)
class Counting:
    """A running hub that counts its calls. `proxy`: before its PostgreSQL."""

    name: str
    hub: Hub
    probe: Probe
    proxy: Proxy | None = None

    @property
    def target(self) -> BenchTarget:
        """The hub's process, asked by its users in the hub's dialect."""
        return self.hub.asked()[0]

    def cost(self, dialect: str, kind: str, connections: int, asks: int) -> Cost:
        """Ask so often in all, each connection an agent of its own, one ask after the other."""
        callers = [hubs.caller_of(user, DIALECTS[dialect]) for user in self.hub.users[:connections]]
        each = asks // connections

        async def ask(times: int) -> None:
            async with asyncio.TaskGroup() as tasks:
                for caller in callers:
                    tasks.create_task(ask_over_one(self.target.port, caller, kind, times))

        asyncio.run(ask(WARM_UP))
        before = self._trips()
        rows = asyncio.run(self.count_apart(ask(each)))
        trips = [count - then for count, then in zip(self._trips(), before, strict=False)]
        asked = CountedAsks(self.name, dialect, kind, connections, each * connections)
        # The connection with the most round trips is the ledger's.
        return cost_of(rows, asked, round_trips=max(trips) if self.proxy else None)

    async def count(self, work: Awaitable[None]) -> list[CallCount]:
        """The calls that the hub makes while `work` runs."""
        self.probe.read()
        await work
        return [CallCount._make(row) for row in self.probe.read()]

    async def count_apart(self, work: Awaitable[None]) -> list[CallCount]:
        """The calls of some work, without those that an idle hub makes in the same time."""
        idle = {row[:-1]: row.times for row in await self.count(asyncio.sleep(IDLE_S))}
        began_s = time.monotonic()
        ran = await self.count(work)
        share = (time.monotonic() - began_s) / IDLE_S
        return [row._replace(times=max(0.0, row.times - share * idle.get(row[:-1], 0))) for row in ran]

    def _trips(self) -> list[int]:
        return [one.count for one in self.proxy.connections] if self.proxy else []


def calls_of_ours(rows: Sequence[CallCount]) -> Mapping[tuple[str, str], float]:
    """The number of calls of each of our functions, by its file, in all threads."""
    times: defaultdict[tuple[str, str], float] = defaultdict(float)
    for row in rows:
        if not row.c_function and not row.file.startswith(("/", "<")):
            times[row.file, row.function] += row.times
    return times


def code_of(times: Mapping[tuple[str, str], float], requests: int) -> RunCode:
    """The code of ours that ran for so many requests. `times`: the calls of each function."""
    often = [one for one, count in times.items() if count * 2 >= requests]
    return RunCode(sorted({file for file, _ in often}), sorted(f"{file}:{function}" for file, function in often))


def cost_of(rows: Sequence[CallCount], asked: CountedAsks, *, round_trips: int | None = None) -> Cost:
    """The cost of each of these asks, computed from the counts of the time of all asks."""
    # Other threads work by the clock: on a slow machine their functions run for every second ask, too.
    asks, code = asked.asks, code_of(calls_of_ours([row for row in rows if row.thread in THREADS]), asked.asks)
    threads: dict[str, list[float]] = {name: [0, 0] for name in (*THREADS.values(), "others")}
    functions: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        threads[THREADS.get(row.thread, "others")][bool(row.c_function)] += row.times
        functions[f"C {row.c_function}" if row.c_function else f"{row.file}:{row.function}"] += row.times
    handed = _times(rows, lambda row: row.c_function == HANDS_OVER and row.file.startswith(LEDGER))
    statements = _times(rows, lambda row: row.c_function in SQLITE and row.thread == "ledger")
    return Cost(
        asked=asked,
        calls=sum(sum(threads[name]) for name in THREADS.values()) / asks,
        threads={name: (of_python / asks, of_c / asks) for name, (of_python, of_c) in threads.items()},
        modules=len(code.modules),
        functions=len(code.functions),
        ledger_trips=handed / asks,
        database_trips=(statements if round_trips is None else round_trips) / asks,
        top=sorted(((times / asks, name) for name, times in functions.items()), reverse=True),
    )


def _times(rows: Sequence[CallCount], is_meant: Callable[[CallCount], bool]) -> float:
    return sum(row.times for row in rows if is_meant(row))


@contextmanager
def counting(storage: HubStorage, *, users: int = hubs.USERS, **settings: Any) -> Iterator[Counting]:
    """A hub that counts, and agents of so many users connected to it; a PostgreSQL is behind a counting proxy."""
    with ExitStack() as stack:
        proxy, seeded, folder = None, hubs.seed(storage, users), storage.folder.parent
        if url := storage.env.get("DATABASE_URL"):
            address, _, name = url.rpartition("/")
            host, _, port = address.rpartition(":")
            proxy = stack.enter_context(proxied(int(port)))
            storage = replace(storage, env={**storage.env, "DATABASE_URL": f"{host}:{proxy.port}/{name}"})
        command = serve_command("calls", folder)
        hub = stack.enter_context(hubs.running(storage, seeded, command=command, **settings))
        yield Counting(storage.name, hub, Probe(hub.web[0].pid, folder), proxy)


async def ask_over_one(port: int, caller: BenchCaller, kind: str, times: int) -> None:
    """Ask over one connection, one ask after the other."""
    template = question_template(caller, *KINDS[kind])
    async with asyncio.timeout(WITHIN_S), connected(port) as connection:
        for number in range(times):
            await connection.ask_ok(template.fill(number), part=FIRST_CHUNK)


def measure(options: Options, folder: Path) -> BenchResult:
    """Count the calls of every combination that is wanted."""
    costs: list[Cost] = []
    for home in options.homes:
        with (
            hubs.storages(home, folder) as new_storage,
            counting(new_storage(), users=max(2, *options.connections)) as hub,
        ):
            costs += _costs(replace(hub, name=home), options)
    return report(costs, options.top)


def _costs(hub: Counting, options: Options) -> Iterator[Cost]:
    for connections in options.connections:
        asks = options.asks or ASKS.get(connections, ASKS_A_CONNECTION * connections)
        for dialect in options.dialects:
            for kind in options.kinds:
                show_progress(f"{hub.name}, {dialect}, {kind}, {connections} connections")
                yield hub.cost(dialect, kind, connections, asks)


def report(costs: Sequence[Cost], top: int = 0) -> BenchResult:
    """The table, and the `top` functions of each row of the table."""
    result, rows = BenchResult("calls", "Calls an ask costs the hub"), []
    for cost in costs:
        asked = cost.asked
        threads = [f"{of_python:.0f}+{of_c:.0f}" for of_python, of_c in cost.threads.values()]
        what = [asked.home, asked.dialect, asked.kind, str(asked.connections)]
        trips = [f"{cost.ledger_trips:.2f}", f"{cost.database_trips:.2f}"]
        rows.append([*what, f"{cost.calls:.0f}", *threads, str(cost.modules), str(cost.functions), *trips])
        if top:
            called = [[name, f"{times:.2f}"] for times, name in cost.top[:top]]
            result.table(f"Functions called most: {', '.join(what)}", ["function", "calls an ask"], called)
    result.tables.insert(0, ("By hub, dialect and kind", HEAD, rows))
    result.runs = [asdict(cost) for cost in costs]
    return result


if __name__ == "__main__":
    chosen = [
        Option(f"--{name}", known, "what is asked", {"nargs": "+", "choices": known})
        for name, known in (("homes", HOMES), ("dialects", tuple(DIALECTS)), ("kinds", tuple(KINDS)))
    ]
    bench(
        "calls",
        measure,
        *chosen,
        Option("--connections", CONNECTIONS, "at once", {"nargs": "+", "type": int}),
        Option("--asks", 0, "asks in all; otherwise 200 over one connection, else 20 over each"),
        Option("--top", 0, "also list the functions called most", {"metavar": "N"}),
    )
