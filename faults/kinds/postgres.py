"""F6 and F7: PostgreSQL restarts, in order and by a crash."""

from faults.fault import Fault, Scene

NORMAL_WITHIN_S = 30.0
ASKS_BETWEEN = 100


async def restart_fast(scene: Scene) -> None:
    """`pg_ctl restart -m fast` under load."""
    await _restart(scene, "fast")


async def restart_immediate(scene: Scene) -> None:
    """`pg_ctl restart -m immediate` under load: a crash, and recovery from the log."""
    await _restart(scene, "immediate")


async def _restart(scene: Scene, mode: str) -> None:
    for _ in range(scene.count):
        await scene.stack.postgres.restart(mode)
        await scene.check_served(f"asks are answered again after PostgreSQL restarted ({mode})", NORMAL_WITHIN_S)
        await scene.asked(ASKS_BETWEEN)


FAULTS = [
    Fault("F6", "PostgreSQL restarts (fast)", 1, 30, restart_fast),
    Fault("F7", "PostgreSQL crashes (immediate)", 1, 20, restart_immediate),
]
