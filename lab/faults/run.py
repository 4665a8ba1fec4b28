"""A whole run: for each hub that faults need, start the hub and the load, inject the faults, settle, check."""

import asyncio
import time
import traceback
from collections.abc import AsyncIterator, Awaitable, Iterator, Sequence
from contextlib import asynccontextmanager, closing
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from lab.bench.command import show_progress
from lab.faults.checker import check
from lab.faults.evidence import gather
from lab.faults.fault import DONE, Fault, Scene
from lab.faults.invariants import InvariantRow, merged
from lab.faults.load import Load
from lab.faults.oplog import OpLog
from lab.faults.participants import Participants
from lab.faults.stack import FaultStack

AGENTS, CALLERS, LOOPS = 36, 64, 32
MANY = 24 * 60.0
CALM_S = 90
TOLD_WITHIN_S = 90
ARRIVED_WITHIN_S = 120  # the delivery of a message by a process that died is tried again after its lease
WAITING = "SELECT 1 FROM gateway_letter WHERE state IN ('queued', 'sending') LIMIT 1"
UNTOLD = "SELECT 1 FROM webhooks_delivery WHERE status IN ('pending', 'sending') LIMIT 1"
DUE = "UPDATE webhooks_delivery SET next_attempt_at = %s WHERE status = 'pending'"

UNSEEN = "every hub was started, and checked after its faults"
Todo = Sequence[tuple[Fault, int]]


@dataclass
class RunOutcome:
    """The table, the number of asks, and how often each fault was done."""

    rows: list[InvariantRow] = field(default_factory=list)
    asks: int = 0
    done: list[tuple[Fault, int]] = field(default_factory=list)

    @property
    def violations(self) -> int:
        """The violations of all rows."""
        return sum(len(row.violations) for row in self.rows)


async def run(todo: Todo, folder: Path, *, asks: int, minutes: float = MANY, scale: float = 1.0) -> RunOutcome:
    """Inject each fault its number of times, and more often until its share of `asks` was made.

    The faults of one hub follow one another. After `minutes` no fault is injected more often than its number.
    `scale`: the factor on the durations of the hubs.
    """
    deadline = time.monotonic() + minutes * 60
    outcome = RunOutcome()
    tables = []
    for number, group in enumerate(_by_hub(todo)):
        share = asks * len(group) // len(todo)
        hub = folder / f"hub-{number}"
        hub.mkdir(parents=True)
        try:
            with closing(OpLog(hub / "operations.jsonl")) as log:
                table = await _on_one_hub(group, hub, log, share, deadline, outcome, scale)
        except Exception as failure:  # noqa: BLE001 - one hub that fails must not cost the others' table
            names = ", ".join(fault.name for fault, _ in group)
            table = [InvariantRow("I1", UNSEEN, 1, [f"hub-{number} ({names}): {failure!r} at {_place(failure)}"])]
        tables.append(table)
    outcome.rows = merged(tables)
    return outcome


def _by_hub(todo: Todo) -> Iterator[Todo]:
    groups: dict[str, list[tuple[Fault, int]]] = {}
    for fault, count in todo:
        groups.setdefault(f"{fault.hub} {sorted(fault.stack.items())}", []).append((fault, count))
    yield from groups.values()


async def _on_one_hub(
    group: Todo, folder: Path, log: OpLog, asks: int, deadline: float, outcome: RunOutcome, scale: float
) -> list[InvariantRow]:
    first, _ = group[0]
    stack = first.hub(folder / "hub", log, scale, **first.stack)  # type: ignore[arg-type]
    participants = Participants(stack, log)
    async with _ended(stack, participants):
        show_progress("starting PostgreSQL, Redis and the hub")
        await stack.start()
        await participants.settle(agents=AGENTS, callers=CALLERS)
        for number, (fault, count) in enumerate(group, 1):
            began = time.monotonic()
            show_progress(f"{fault.name} × {count}: {fault.title}")
            until_asks = asks * number // len(group) if time.monotonic() < deadline else 0
            load = Load(participants, LOOPS if fault.loops is None else fault.loops)
            scene = Scene(stack, participants, load, log, count)
            scene.done = sum(times for one, times in outcome.done if one is fault)
            done = await do(fault, scene, until_asks=until_asks, deadline=deadline)
            outcome.done.append((fault, done))
            show_progress(f"{fault.name} done in {time.monotonic() - began:.0f} s, {log.asks:,} asks on this hub")
        show_progress("waiting for what is still under way")
        log.fault = "I6"
        scene = Scene(stack, participants, Load(participants, 0), log, 0)
        await _to_its_end(scene, "all turns and deliveries ended after the faults", _settle(scene))
        await participants.leave()
        outcome.asks += log.asks
        show_progress("checking")
        return check(gather(stack, log), [fault for fault, _ in group])


async def do(fault: Fault, scene: Scene, *, until_asks: int, deadline: float) -> int:
    """Inject a fault `scene.count` times, and again until so many asks were made; how often in all."""
    load, log, before = scene.load, scene.log, scene.done
    log.fault = fault.name
    load.start()
    continues_task = await _to_its_end(scene, DONE, fault.run(scene))
    scene.done, scene.count = before + scene.count, 1
    while continues_task and load.loops and log.asks < until_asks and time.monotonic() < deadline:
        continues_task = await _to_its_end(scene, DONE, fault.run(scene))
        scene.done += 1
    await _to_its_end(scene, DONE, load.stop())
    log.fault = ""
    log.flush()
    return scene.done - before


async def _to_its_end(scene: Scene, what: str, work: Awaitable[None]) -> bool:
    """Await some work. An exception becomes a violation, so that the table of the run is not lost."""
    try:
        await work
    except Exception as failure:  # noqa: BLE001 - see above
        scene.note(what, False, f"{failure!r} at {_place(failure)}")
        return False
    scene.note(what, True)
    return True


def _place(failure: BaseException) -> str:
    """The lines of our own code that an exception passed."""
    frames = reversed(traceback.extract_tb(failure.__traceback__))
    ours = [frame for frame in frames if "site-packages" not in frame.filename]
    return " < ".join(f"{Path(frame.filename).name}:{frame.lineno}" for frame in ours)


async def _settle(scene: Scene) -> None:
    """Wait until every turn has ended, and every webhook and message was delivered; the checker reports others."""
    await scene.no_turn_open(CALM_S)
    until = time.monotonic() + TOLD_WITHIN_S
    while time.monotonic() < until and scene.stack.sql(UNTOLD):
        scene.stack.sql(DUE, datetime.now(UTC))  # the pauses between tries are not what is looked at here
        await asyncio.sleep(1)
    for team in scene.participants.teams:
        team.stays = True
    until = time.monotonic() + ARRIVED_WITHIN_S
    while time.monotonic() < until and scene.stack.sql(WAITING):
        await asyncio.sleep(1)


@asynccontextmanager
async def _ended(stack: FaultStack, participants: Participants) -> AsyncIterator[None]:
    try:
        yield
    finally:
        try:
            await participants.close()
        finally:
            stack.stop()
