"""F3: Redis restarts, empty."""

import asyncio

from faults.fault import Fault, Scene

DOWN_S = 3.0
SERVED_WITHIN_S = 30.0
ONLINE_WITHIN_S = 30.0
ASKS_BETWEEN = 100


async def restart_redis(scene: Scene) -> None:
    """Redis is gone for 3 s and comes back without data."""
    for _ in range(scene.count):
        await asyncio.to_thread(scene.stack.redis.stop)
        await asyncio.sleep(DOWN_S)
        await asyncio.to_thread(scene.stack.redis.start)
        await _check_online(scene)
        await scene.check_served("asks are answered again after Redis restarted", SERVED_WITHIN_S)
        await scene.asked(ASKS_BETWEEN)


async def _check_online(scene: Scene) -> None:
    try:
        took_s = await scene.all_online(ONLINE_WITHIN_S)
    except TimeoutError:
        scene.saw("agents are back", False, f"not within {ONLINE_WITHIN_S:.0f} s")
    else:
        scene.saw("agents are back", True, f"{took_s:.1f} s")


FAULTS = [Fault("F3", "Redis restarts, empty", 1, 30, restart_redis)]
