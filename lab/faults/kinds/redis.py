"""F3: Redis restarts, empty."""

import asyncio
import time

from lab.faults.extra_agents import caller
from lab.faults.fault import Fault, Scene

DOWN_S = 3.0
ASK_EVERY_S = 0.2
ENDED_WITHIN_S = 5.0
BACK_WITHIN_S = 15.0
ONLINE_WITHIN_S = 30.0
SERVED_WITHIN_S = 30.0
MISSES = 1
ASKS_BETWEEN = 100


async def restart_redis(scene: Scene) -> None:
    """Redis is gone for 3 s and comes back without data; agents lose their sockets and come back meanwhile."""
    for _ in range(scene.count):
        await asyncio.to_thread(scene.stack.redis.stop)
        missed = [agent.misses for agent in scene.participants.agents]
        asking = asyncio.gather(*(_ask_meanwhile(scene, url) for url in range(len(scene.stack.urls))))
        began = time.monotonic()
        for agent in scene.participants.agents:
            agent.drop()
        await asyncio.sleep(DOWN_S)
        await asyncio.to_thread(scene.stack.redis.start)
        await _check_online(scene, began)
        for agent, before in zip(scene.participants.agents, missed, strict=True):
            misses = agent.misses - before
            scene.saw("at most one handshake of an agent fails", misses <= MISSES, f"{agent.name}: {misses}")
        await asking
        await scene.check_served("asks are answered again after Redis restarted", SERVED_WITHIN_S)
        await scene.asked(ASKS_BETWEEN)


async def _ask_meanwhile(scene: Scene, url: int) -> None:
    until, number = time.monotonic() + DOWN_S, url
    while time.monotonic() < until:
        agent = scene.participants.agents[number % len(scene.participants.agents)]
        began = time.monotonic()
        answer = await scene.load.ask_once(agent, caller(scene, number), "v1", url)
        took_s = time.monotonic() - began
        is_told = answer.outcome in ("completed", "failed") or (answer.status == 503 and answer.retry_after)
        detail = f"{answer} after {took_s:.1f} s"
        scene.saw(
            "an ask while Redis is away: an end or 503, within 5 s", is_told and took_s <= ENDED_WITHIN_S, detail
        )
        number += 1
        await asyncio.sleep(ASK_EVERY_S)


async def _check_online(scene: Scene, began: float) -> None:
    what = "agents are back within 15 s"
    try:
        await scene.all_online(ONLINE_WITHIN_S)
    except TimeoutError:
        scene.saw(what, False, f"not within {ONLINE_WITHIN_S:.0f} s")
    else:
        took_s = time.monotonic() - began
        scene.saw(what, took_s <= BACK_WITHIN_S, f"{took_s:.1f} s")


FAULTS = [Fault("F3", "Redis restarts, empty", 1, 30, restart_redis)]
