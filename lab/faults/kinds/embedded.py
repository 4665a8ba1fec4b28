"""F23 and F24: an embedded hub, which is one process with SQLite, is killed; its disk is full."""

import asyncio
import random
import time
from functools import partial

from lab.faults.embedded_stack import EmbeddedStack
from lab.faults.fault import Fault, Scene, became_true

SERVED_WITHIN_S = 60.0
DOWN_S = (0.0, 3.0)
ASKS_BETWEEN = 150
FULL_FOR_S = 8.0
FULL_WITHIN_S = 60.0
ROOM_BYTES = (0, 4_096, 8_192, 20_480, 200_704)  # pages of a mounted disk


async def kill_embedded(scene: Scene) -> None:
    """The only process is killed while it is asked, and started again."""
    for _ in range(scene.count):
        await scene.asked(ASKS_BETWEEN)
        await scene.stack.kill_web(0)
        await asyncio.sleep(random.uniform(*DOWN_S))
        await scene.stack.serve(0)
        await scene.check_served("an embedded hub answers again after it was killed", SERVED_WITHIN_S)


async def fill_embedded(scene: Scene) -> None:
    """The disk of the only process is full for a while; then it has room again."""
    assert isinstance(scene.stack, EmbeddedStack)
    assert scene.stack.disk is not None
    disk, pid = scene.stack.disk, scene.stack.process_of().pid
    for number in scene.numbers:
        await scene.asked(ASKS_BETWEEN)
        room = ROOM_BYTES[number % len(ROOM_BYTES)]
        disk.leave(room, pid)
        try:
            is_full = await became_true(partial(_is_refused, scene), FULL_WITHIN_S)
            scene.note("the embedded hub's disk was full", is_full, f"{room} bytes")
            until = time.monotonic() + FULL_FOR_S
            while time.monotonic() < until:
                await _is_refused(scene)
        finally:
            disk.remove_limit(pid)
        await scene.check_served("an embedded hub whose disk has room again answers", SERVED_WITHIN_S)
    ((sound,),) = scene.stack.sql("PRAGMA integrity_check")
    scene.note("the database of an embedded hub whose disk was full is sound", sound == "ok", str(sound))


async def _is_refused(scene: Scene) -> bool:
    """Ask; True if the ask was refused with 503."""
    answer = await scene.ask(scene.agent(number := random.randrange(1000)), number)
    is_refused = answer.status == 503 and answer.retry_after
    ok = is_refused or answer.outcome in ("completed", "failed")
    scene.note("an ask while an embedded hub's disk is full: 503 with Retry-After, or its end", ok, answer.summary)
    return is_refused


FAULTS = [
    Fault("F23", "an embedded hub: kill -9", 1, 60, kill_embedded,
          hub=EmbeddedStack, fills=("an embedded hub answers again",)),
    Fault("F24", "an embedded hub under load: a full disk", 1, 20, fill_embedded,
          hub=EmbeddedStack,
          fills=("an ask while an embedded hub's disk is full", "the embedded hub's disk was full")),
]  # fmt: skip
