"""F2: kill -9 of the Celery worker while a receiver holds its answer."""

import asyncio
import threading

from lab.faults.answers import AGAIN_WITHIN_S
from lab.faults.fault import Fault, Scene
from lab.receivers import Received

HELD_WITHIN_S = 60.0
ASKS_BETWEEN = 60


async def kill_mid_delivery(scene: Scene) -> None:
    """The worker dies with a delivery in its hand; another is started, and the delivery comes once more.

    It does when the lease of the dead ran out; `answers.deliveries_come_again` looks whether it did.
    """
    for _ in range(scene.count):
        await _kill_once(scene)
    if scene.count > 1:  # else the next fault is in the way of the last of them
        await asyncio.sleep(AGAIN_WITHIN_S)


async def _kill_once(scene: Scene) -> None:
    held: list[Received] = []
    go_on = threading.Event()

    def hold(one: Received) -> int:
        is_first = not held
        if not go_on.is_set():
            held.append(one)
            go_on.wait(HELD_WITHIN_S)
        return 503 if is_first else 204  # the first is not read: its worker is dead

    scene.participants.answer_webhook = hold
    try:
        async with asyncio.timeout(HELD_WITHIN_S):
            while not held:
                await asyncio.sleep(0.05)
        scene.stack.kill_worker()
        scene.log.write("held", event_id=held[0].headers["webhook-id"])
        await scene.stack.start_worker()
    finally:
        go_on.set()
    await scene.asked(ASKS_BETWEEN)


FAULTS = [Fault("F2", "kill -9 of the Celery worker mid-delivery", 1, 50, kill_mid_delivery)]
