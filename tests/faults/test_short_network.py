"""The short set's other half: what network, agents, readers, receivers and disks do to a hub, mostly at once."""

import asyncio
import tempfile
from dataclasses import replace
from pathlib import Path

import pytest

from faults.fault import Fault, Scene
from faults.kinds.full import full_disk, read_only
from faults.kinds.half_open import half_open
from faults.kinds.lost_redis import VIA, silence_redis
from faults.kinds.readers import slow_readers
from faults.kinds.receivers import bad_receivers
from faults.kinds.replies import bad_replies
from faults.report import as_markdown, examples
from faults.run import run

pytestmark = [pytest.mark.slow, pytest.mark.grown]

LOOPS = 4


async def together(scene: Scene) -> None:
    """What does not disturb the rest at once, then Redis and PostgreSQL, one after the other."""
    await asyncio.gather(half_open(replace(scene, count=2)), _measured(scene))
    await silence_redis(replace(scene, count=1))
    await read_only(scene)


async def _measured(scene: Scene) -> None:
    """What is measured has the hub for itself, but for agents that say nothing."""
    await asyncio.gather(slow_readers(replace(scene, count=20)), full_disk(scene, 0))
    await asyncio.gather(bad_receivers(replace(scene, count=8)), bad_replies(replace(scene, count=5)))


@pytest.mark.timeout(400)
async def test_no_invariant_breaks_whatever_the_network_does() -> None:
    fault = Fault("N1", "network, agents, readers, receivers, disks", 1, 0, together, stack=VIA, loops=LOOPS)
    said: list[str] = []
    with tempfile.TemporaryDirectory(prefix="hub-faults-") as folder:
        Path(folder).chmod(0o755)  # PostgreSQL runs as somebody else when we are root
        outcome = await run([(fault, 1)], Path(folder), asks=0, say=said.append)
    assert outcome.asks > 100, said
    assert not outcome.violations, f"{as_markdown(outcome.rows)}\n{examples(outcome.rows)}"
