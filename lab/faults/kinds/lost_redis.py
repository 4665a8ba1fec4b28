"""F4 and F5: Redis falls silent, or is slow. Only pages, presence and what crosses processes may be slower."""

import asyncio
import time
from collections.abc import Sequence
from contextlib import AsyncExitStack

from lab.callers import web
from lab.faults.agents import EchoAgent
from lab.faults.extra_agents import caller, extra_agent
from lab.faults.fault import Fault, Scene
from lab.faults.observing import looking
from lab.faults.redis_proxy import RedisProxy

SILENT_S = 60.0
SHORT_SILENT_S = 12.0
READY_WITHIN_S = 1.5
ENDED_WITHIN_S = 10.0  # receipts within 4 s, a message sent within 2 s, and slack
SERVED_WITHIN_S = 30.0
SLOWER_BY_S = 0.3
SLOW_P95_S = 2.0
BUSY = 3  # so many times what an ask takes while Redis is quick may go besides: machines are busy
SLOW_ASKS = 60
REDIS_PROXY = RedisProxy()
VIA = {"via": REDIS_PROXY, "env": {"CALLER_RATE_PER_MINUTE": 100_000}}


async def silence_redis(scene: Scene) -> None:
    """Nothing passes to or from Redis, and no connection is refused; the first time for less long."""
    for number in scene.numbers:
        silent_s = SILENT_S if number or scene.count > 1 else SHORT_SILENT_S
        await _silence(scene, scene.stack.seconds(silent_s, at_least_s=8.0))


async def slow_redis(scene: Scene) -> None:
    """Every answer of Redis comes 300 ms later."""
    for _ in range(scene.count):
        quick_s = await _ask_far(scene, "asks across processes are answered while Redis is quick")
        REDIS_PROXY.redis.spoil(latency_s=SLOWER_BY_S / 2)
        try:
            slow_s = await _ask_far(scene, "asks across processes are answered while Redis is slow")
            await scene.asked(SLOW_ASKS)
        finally:
            REDIS_PROXY.redis.heal()
        what = (
            "an ask across processes takes less than 2 s (p95), and 3 times as long as before, while Redis is slow"
        )
        scene.saw(what, slow_s < SLOW_P95_S + BUSY * quick_s, f"{slow_s:.2f} s, {quick_s:.2f} s before")


async def _silence(scene: Scene, for_s: float) -> None:
    async with AsyncExitStack() as looks:
        here, token = scene.stack.urls[0], scene.stack.tokens[caller(scene, 0), "session"]
        near = await looks.enter_async_context(extra_agent(scene, EchoAgent, at=here))
        far = await looks.enter_async_context(extra_agent(scene, EchoAgent, at=here))
        REDIS_PROXY.redis.silence()
        try:
            ready = [await looks.enter_async_context(looking(url, "/readyz")) for url in scene.stack.urls]
            read = await looks.enter_async_context(looking(here, "/api/v1/agents", token))
            await _while_silent(scene, (near, far), for_s)
        finally:
            REDIS_PROXY.redis.heal()
        for seen in ready:
            is_quick = seen.within(0.99) < READY_WITHIN_S and set(seen.statuses) == {200}
            scene.saw("/readyz answers within 1.5 s (p99) while Redis is silent", is_quick, seen.summary)
        scene.saw("reads are answered while Redis is silent", set(read.statuses) == {200}, read.summary)
    await scene.check_served("every process serves after Redis was silent", SERVED_WITHIN_S)


async def _while_silent(scene: Scene, agents: Sequence[EchoAgent], for_s: float) -> None:
    """Asks, through each process, of an agent of its own: both are at the first."""
    until, number = time.monotonic() + for_s, 0
    while time.monotonic() < until:
        number += 1
        for url, agent in enumerate(agents):
            began = time.monotonic()
            answer = await scene.load.ask_once(agent, caller(scene, url), "v1", url)
            took_s = time.monotonic() - began
            detail = f"{answer.outcome} {answer.text} {took_s:.1f} s"
            if url == 0:
                what = "an agent of the same process is reached while Redis is silent"
                scene.saw(what, answer.outcome == "completed", detail)
            else:
                what = "an agent of another process: an answer or a clear end within 10 s"
                scene.saw(what, took_s < ENDED_WITHIN_S, detail)
        await _sign_in(scene)


async def _sign_in(scene: Scene) -> None:
    async with web(scene.stack.url) as client:
        began = time.monotonic()
        response = await client.post("/api/v1/auth/device/code", json={"app_name": "faults"})
    took_s = time.monotonic() - began
    ok = response.status_code == 200 and took_s < ENDED_WITHIN_S
    scene.saw("signing in opens while its limit cannot be counted", ok, f"{response.status_code} {took_s:.1f} s")


async def _ask_far(scene: Scene, what: str) -> float:
    """Asks through one process of an agent at the other, some at a time; in how many seconds 95 of 100 ended."""
    took: list[float] = []

    async def one(far: EchoAgent, number: int) -> None:
        for turn in range(SLOW_ASKS // 4):
            began = time.monotonic()
            answer = await scene.load.ask_once(far, caller(scene, number), "v1", 1)
            took.append(time.monotonic() - began)
            ok = answer.outcome == "completed"
            scene.saw(what, ok, f"{answer.text} ({turn})")

    async with AsyncExitStack() as stack:
        added = [extra_agent(scene, EchoAgent, at=scene.stack.urls[0]) for _ in range(4)]
        agents = [await stack.enter_async_context(one) for one in added]
        await asyncio.gather(*(one(agent, number) for number, agent in enumerate(agents)))
    return sorted(took)[int(len(took) * 0.95)]


FAULTS = [
    Fault("F4", "Redis is silent for 60 s", 1, 20, silence_redis, stack=VIA),
    Fault("F5", "Redis is 300 ms slower", 1, 10, slow_redis, stack=VIA),
]
