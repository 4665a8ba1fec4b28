"""F3: Redis restarts, empty."""

import asyncio

from faults.fault import Fault, Scene

DOWN_S = 3.0
SERVED_WITHIN_S = 30.0
ASKS_BETWEEN = 100


async def restart_redis(scene: Scene) -> None:
    """Redis is gone for 3 s and comes back without data."""
    for _ in range(scene.count):
        await asyncio.to_thread(scene.stack.redis.stop)
        await asyncio.sleep(DOWN_S)
        await asyncio.to_thread(scene.stack.redis.start)
        await scene.check_served("asks are answered again after Redis restarted", SERVED_WITHIN_S)
        await scene.asked(ASKS_BETWEEN)


FAULTS = [Fault("F3", "Redis restarts, empty", 1, 20, restart_redis)]
