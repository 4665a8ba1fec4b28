"""F19: two beats, and none."""

import asyncio
import time

from faults.fault import Fault, Scene

TWO_FOR_S, NONE_FOR_S = 5.0, 6.0
CLEAN_WITHIN_S = 45.0
OPEN = "SELECT count(*) FROM agents_turn WHERE home = %s AND outcome IS NULL"


async def two_beats_and_none(scene: Scene) -> None:
    """Two beats at once; then none while a web process dies; then one, which cleans up."""
    for number in range(scene.count):
        await scene.stack.start_beat()
        await asyncio.sleep(TWO_FOR_S)
        scene.stack.kill_beats()
        url = number % len(scene.stack.urls)
        await scene.stack.kill_web(url)
        dead = scene.stack.process_id(url)
        await scene.stack.serve(url)
        await scene.check_served("asks are answered while no beat runs", CLEAN_WITHIN_S)
        await asyncio.sleep(NONE_FOR_S)
        await scene.stack.start_beat()
        began = time.monotonic()
        while (left := scene.stack.sql(OPEN, dead)[0][0]) and time.monotonic() < began + CLEAN_WITHIN_S:
            await asyncio.sleep(0.5)
        scene.saw("the next beat ends what was left open meanwhile, within 45 s", not left, f"{left} still open")


FAULTS = [Fault("F19", "two beats, and none", 1, 10, two_beats_and_none)]
