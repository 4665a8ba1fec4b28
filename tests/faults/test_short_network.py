"""The short set's other half: what network, agents, readers, receivers, disks and clocks do to a hub."""

import asyncio
import tempfile
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from lab.faults.fault import Fault, Scene
from lab.faults.invariants import as_markdown, examples
from lab.faults.kinds import TABLE, chosen
from lab.faults.kinds.full import full_disk, read_only
from lab.faults.kinds.servers import VIA
from lab.faults.run import Todo, run
from lab.waiting import SCALE

pytestmark = [pytest.mark.slow, pytest.mark.distributed]

CLOCKS = {"F11", "F12"}
NETWORK = {"F4", "F5", "F8", "F13", "F14", "F17", "F18"}
QUICK = NETWORK - {"F5", "F17"}  # those two compare speeds, which takes its time
QUICK_COUNTS = {"F13": 10}  # else as often as in the short set
HERE = CLOCKS | NETWORK  # the rest of the short set: test_short_set.py
LOOPS = 4
Done = set[str]


async def together(wanted: Done, done: Done, scene: Scene) -> None:
    """Faults that do not disturb each other at once, then Redis and PostgreSQL, one after the other."""
    await asyncio.gather(_do(scene, "F8", done), _measured(scene, wanted, done))
    for name in sorted({"F4", "F5"} & wanted):
        await _do(scene, name, done)
    await read_only(scene)
    done.add("F18")


async def _measured(scene: Scene, wanted: Done, done: Done) -> None:
    """Measurements have the hub for themselves, but for agents that say nothing."""
    await asyncio.gather(_do(scene, "F13", done), full_disk(scene, 0))
    await asyncio.gather(*(_do(scene, name, done) for name in sorted({"F17", "F14"} & wanted)))


async def _do(scene: Scene, name: str, done: Done) -> None:
    count = TABLE[name].short if scene.stack.scale == 1 else QUICK_COUNTS.get(name, TABLE[name].short)
    await TABLE[name].run(replace(scene, count=count))
    done.add(name)


@pytest.mark.deep
@pytest.mark.timeout(200)
async def test_no_invariant_breaks_in_the_quick_half() -> None:
    """On a hub whose durations are scaled like those of all tests."""
    await _check_network(QUICK, scale=SCALE)


@pytest.mark.deep
@pytest.mark.timeout(400)
async def test_no_invariant_breaks_whatever_the_network_does() -> None:
    """Real speed."""
    await _check_network(NETWORK, scale=1)


@pytest.mark.deep
@pytest.mark.timeout(300)
async def test_no_invariant_breaks_whatever_the_clocks_say() -> None:
    await check_invariants([(fault, count) for fault, count in chosen("short") if fault.name in CLOCKS])


async def _check_network(wanted: Done, *, scale: float) -> None:
    done: Done = set()
    title = "network, agents, readers, receivers, disks"
    fault = Fault("N1", title, 1, 0, partial(together, wanted, done), stack=VIA, loops=LOOPS)
    await check_invariants([(fault, 1)], scale=scale)
    assert done == wanted


async def check_invariants(todo: Todo, *, scale: float = 1) -> None:
    with tempfile.TemporaryDirectory(prefix="hub-faults-") as folder:
        Path(folder).chmod(0o755)  # PostgreSQL runs as another user when we are root
        outcome = await run(todo, Path(folder), asks=0, scale=scale)
    assert outcome.asks > 100
    assert not outcome.violations, f"{as_markdown(outcome.rows)}\n{examples(outcome.rows)}"
