"""F2: kill -9 of the Celery worker while a receiver holds its answer."""

import asyncio
import threading
import time

from faults.fault import Fault, Scene
from tests.receivers import Received

HELD_WITHIN_S = 60.0
TOLD_WITHIN_S = 90.0


async def kill_mid_delivery(scene: Scene) -> None:
    """The worker dies with a delivery in its hand; another is started, and the delivery comes once more."""
    for _ in range(scene.count):
        await _kill_once(scene)


async def _kill_once(scene: Scene) -> None:
    held: list[Received] = []
    go_on = threading.Event()

    def hold(one: Received) -> int:
        if not go_on.is_set():
            held.append(one)
            go_on.wait(HELD_WITHIN_S)
            return 503
        return 204

    scene.estate.answer_webhook = hold
    try:
        async with asyncio.timeout(HELD_WITHIN_S):
            while not held:
                await asyncio.sleep(0.05)
        scene.stack.kill_worker()
        killed = time.monotonic()
        await scene.stack.start_worker()
    finally:
        go_on.set()
    event_id = held[0].headers["webhook-id"]
    told = await _delivered(scene, event_id, killed)
    scene.saw("a delivery under way when its worker died comes again", told, event_id)


async def _delivered(scene: Scene, event_id: str, since: float) -> bool:
    while time.monotonic() < since + TOLD_WITHIN_S:
        if scene.stack.sql(
            "SELECT 1 FROM webhooks_delivery WHERE event_id = %s AND status = 'delivered'", event_id
        ):
            return True
        await asyncio.sleep(0.5)
    return False


FAULTS = [Fault("F2", "kill -9 of the Celery worker mid-delivery", 1, 20, kill_mid_delivery)]
