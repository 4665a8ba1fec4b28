"""F6 and F7: PostgreSQL restarts, in order and by a crash."""

import asyncio
import re
import time

from lab.faults.fault import Fault, Scene

NORMAL_WITHIN_S = 10.0
ASKS_BETWEEN = 100
STALE = re.compile(rb"connection already closed|the connection is closed")


async def restart_fast(scene: Scene) -> None:
    """`pg_ctl restart -m fast` under load."""
    await _restart(scene, "fast")


async def restart_immediate(scene: Scene) -> None:
    """`pg_ctl restart -m immediate` under load: a crash, and recovery from the log."""
    await _restart(scene, "immediate")


async def _restart(scene: Scene, mode: str) -> None:
    for _ in range(scene.count):
        await scene.stack.restart_postgres(mode)
        normal_at = time.monotonic() + NORMAL_WITHIN_S
        what = f"asks are answered again within 10 s after PostgreSQL restarted ({mode})"
        await scene.check_served(what, NORMAL_WITHIN_S)
        await asyncio.sleep(max(0, normal_at - time.monotonic()))
        said = {log: log.stat().st_size for log in scene.stack.logs()}
        await scene.asked(ASKS_BETWEEN)
        stale = [log.name for log, size in said.items() if STALE.search(log.read_bytes()[size:])]
        scene.saw("after 10 s no process uses a connection of before", not stale, f"{stale}")


FAULTS = [
    Fault("F6", "PostgreSQL restarts (fast)", 1, 30, restart_fast),
    Fault("F7", "PostgreSQL crashes (immediate)", 1, 20, restart_immediate),
]
