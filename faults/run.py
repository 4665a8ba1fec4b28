"""A whole run: for each hub that faults need, start it, let callers ask, do the faults, let it settle, check."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

from faults.checker import check
from faults.estate import Estate
from faults.evidence import gather
from faults.fault import Fault, Scene
from faults.load import Load
from faults.oplog import OpLog
from faults.report import Row, merged
from faults.stack import Stack

AGENTS, CALLERS, LOOPS = 24, 48, 10
MANY = 24 * 60.0
CALM_S = 90
TOLD_WITHIN_S = 90
UNTOLD = "SELECT 1 FROM webhooks_delivery WHERE status IN ('pending', 'sending') LIMIT 1"
DUE = "UPDATE webhooks_delivery SET next_attempt_at = now() WHERE status = 'pending'"

Todo = Sequence[tuple[Fault, int]]
Say = Callable[[str], None]


@dataclass
class Outcome:
    """The table, how many asks it is over, and what each fault took in seconds."""

    rows: list[Row] = field(default_factory=list)
    asks: int = 0
    took_s: dict[str, float] = field(default_factory=dict)
    done: list[tuple[Fault, int]] = field(default_factory=list)

    @property
    def violations(self) -> int:
        """Over all rows."""
        return sum(len(row.violations) for row in self.rows)


async def run(todo: Todo, folder: Path, *, asks: int, say: Say, minutes: float = MANY) -> Outcome:
    """Do the faults, each its number of times, and more often until its share of `asks` was made.

    Those of one hub are done one after another. After `minutes` none is done more often than its number.
    """
    deadline = time.monotonic() + minutes * 60
    outcome = Outcome()
    tables = []
    for number, group in enumerate(_by_hub(todo)):
        share = asks * len(group) // len(todo)
        tables.append(await _on_one_hub(group, folder / f"hub-{number}", share, deadline, outcome, say))
    outcome.rows = merged(tables)
    return outcome


def _by_hub(todo: Todo) -> Iterator[Todo]:
    groups: dict[str, list[tuple[Fault, int]]] = {}
    for fault, count in todo:
        groups.setdefault(repr(sorted(fault.stack.items())), []).append((fault, count))
    yield from groups.values()


async def _on_one_hub(
    group: Todo, folder: Path, asks: int, deadline: float, outcome: Outcome, say: Say
) -> list[Row]:
    folder.mkdir(parents=True)
    log = OpLog(folder / "operations.jsonl")
    stack = Stack(folder / "hub", log, **group[0][0].stack)  # type: ignore[arg-type]
    estate = Estate(stack, log)
    async with _ended(stack, estate):
        say("starting PostgreSQL, Redis and the hub")
        await stack.start()
        await estate.settle(agents=AGENTS, callers=CALLERS)
        for number, (fault, count) in enumerate(group, 1):
            began = time.monotonic()
            say(f"{fault.name} × {count}: {fault.title}")
            until_asks = asks * number // len(group) if time.monotonic() < deadline else 0
            done = await _do(fault, count, stack, estate, log, until_asks=until_asks, deadline=deadline)
            outcome.took_s[fault.name] = time.monotonic() - began
            outcome.done.append((fault, done))
            say(f"{fault.name} done in {outcome.took_s[fault.name]:.0f} s, {log.asks:,} asks on this hub")
        say("waiting for what is still under way")
        await _settle(stack, estate, log)
        await estate.leave()
        say("checking")
        rows = check(gather(stack, log))
    outcome.asks += log.asks
    return rows


async def _do(
    fault: Fault, count: int, stack: Stack, estate: Estate, log: OpLog, *, until_asks: int, deadline: float
) -> int:
    """Do a fault so often, and again until so many asks were made or time is up; how often it was."""
    log.fault = fault.name
    load = Load(estate, LOOPS if fault.loops is None else fault.loops)
    scene = Scene(stack, estate, load, log, count)
    load.start()
    try:
        await fault.run(scene)
        scene.count = 1
        while load.loops and log.asks < until_asks and time.monotonic() < deadline:
            load.check()
            await fault.run(scene)
            count += 1
    finally:
        await load.stop()
    log.fault = ""
    log.flush()
    return count


async def _settle(stack: Stack, estate: Estate, log: OpLog) -> None:
    """Nothing is asked any more: every turn ends, every webhook is told. What does not shows in the table."""
    scene = Scene(stack, estate, Load(estate, 0), log, 0)
    await scene.no_turn_open(CALM_S)
    until = time.monotonic() + TOLD_WITHIN_S
    while time.monotonic() < until and stack.sql(UNTOLD):
        stack.sql(DUE)  # the pauses between tries are not what is looked at here
        await asyncio.sleep(1)


@asynccontextmanager
async def _ended(stack: Stack, estate: Estate) -> AsyncIterator[None]:
    try:
        yield
    finally:
        await estate.close()
        stack.stop()
        estate.log.close()
