"""F3 to F7, F22, F29: PostgreSQL and Redis restart, fall silent for all or for one process; Redis is slow."""

import asyncio
import re
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import dataclass, field

import httpx

from lab.callers import bearer, web
from lab.faults.agents import EchoAgent
from lab.faults.fault import Fault, Scene
from lab.faults.stack import DATABASE
from lab.figures import percentile
from lab.proxy import Proxy, proxied
from lab.servers import Servers

ASKS_BETWEEN = 100
SERVED_WITHIN_S = 30.0

# F3.
DOWN_S = 3.0
ASK_EVERY_S = 0.2
REFUSED_WITHIN_S = 5.0
BACK_WITHIN_S = 15.0
MISSES = 1

# F4 and F5. Only pages, presence and what crosses processes may be slower.
SILENT_S = 60.0
SHORT_SILENT_S = 12.0
READY_WITHIN_S = 1.5
LOOKS_EVERY_S = 0.2
ENDED_WITHIN_S = 10.0  # receipts within 4 s, a message sent within 2 s, and slack
SLOWER_BY_S = 0.3
SLOW_P95_S = 2.0
BUSY = 3  # so many times what an ask takes while Redis is quick may go besides: machines are busy
SLOW_ASKS = 60

# F22.
CUT_S = 12.0
ASKED_AGAIN_WITHIN_S = 30.0

# F29.
CUT_OFF_S = 45.0  # a process counts as dead after 20
CUT_OFF_LEAST_S = 15.0  # on a hub whose durations are shorter

# F6 and F7.
NORMAL_WITHIN_S = 10.0
STALE = re.compile(rb"connection already closed|the connection is closed")


@dataclass
class Looks:
    """The seconds and the statuses of requests; the status of a request without an answer is 0."""

    took_s: list[float] = field(default_factory=list)
    statuses: list[int] = field(default_factory=list)

    @property
    def p99_s(self) -> float:
        """The seconds within which 99 of 100 requests were answered."""
        return percentile(self.took_s, 0.99)

    @property
    def summary(self) -> str:
        """A description for the detail of a figure."""
        return f"{len(self.took_s)} looks, p99 {self.p99_s:.2f} s, statuses {Counter(self.statuses)}"


@asynccontextmanager
async def looking(url: str, path: str, token: str = "") -> AsyncIterator[Looks]:
    """GET a path five times a second until the block ends, with that token."""
    looks = Looks()

    async def look_on() -> None:
        async with web(url) as client:
            while True:
                began = time.monotonic()
                try:
                    status = (await client.get(path, headers=bearer(token) if token else {})).status_code
                except httpx.TransportError:
                    status = 0
                looks.took_s.append(time.monotonic() - began)
                looks.statuses.append(status)
                await asyncio.sleep(LOOKS_EVERY_S)

    task = asyncio.get_running_loop().create_task(look_on())
    try:
        yield looks
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


class RedisProxy:
    """The argument `via` of `FaultStack` that puts a proxy before the Redis of the hub."""

    redis: Proxy

    def __init__(self) -> None:
        self._open = ExitStack()

    def __call__(self, servers: Servers) -> Servers:
        self._open.close()
        self.redis = self._open.enter_context(proxied(servers.redis_port))
        return Servers(servers.postgres_port, self.redis.port)


class PostgresProxy:
    """The argument `via` of `FaultStack` that puts a proxy before the PostgreSQL of the hub."""

    postgres: Proxy

    def __init__(self) -> None:
        self._open = ExitStack()

    def __call__(self, servers: Servers) -> Servers:
        self._open.close()
        self.postgres = self._open.enter_context(proxied(servers.postgres_port))
        return Servers(self.postgres.port, servers.redis_port)


REDIS_PROXY, POSTGRES_PROXY = RedisProxy(), PostgresProxy()
VIA = {"via": REDIS_PROXY, "env": {"CALLER_RATE_PER_MINUTE": 100_000}}


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
        left_s = BACK_WITHIN_S - (time.monotonic() - began)
        await scene.check_in_time("agents are back within 15 s", scene.all_online(), left_s)
        for agent, before in zip(scene.participants.agents, missed, strict=True):
            misses = agent.misses - before
            scene.note("at most one handshake of an agent fails", misses <= MISSES, f"{agent.name}: {misses}")
        await asking
        await scene.check_served("asks are answered again after Redis restarted", SERVED_WITHIN_S)
        await scene.asked(ASKS_BETWEEN)


async def _ask_meanwhile(scene: Scene, url: int) -> None:
    until, number = time.monotonic() + DOWN_S, url
    while time.monotonic() < until:
        answer = await scene.ask(scene.agent(number), number, url=url)
        is_told = answer.outcome in ("completed", "failed") or (answer.status == 503 and answer.retry_after)
        ok = is_told and answer.took_s <= REFUSED_WITHIN_S
        scene.note("an ask while Redis is stopped ends, or gets 503, within 5 s", ok, f"{answer}")
        number += 1
        await asyncio.sleep(ASK_EVERY_S)


async def silence_redis(scene: Scene) -> None:
    """Redis is silent: nothing passes, and no connection is refused; the first time for a shorter time."""
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
        scene.note(what, slow_s < SLOW_P95_S + BUSY * quick_s, f"{slow_s:.2f} s, {quick_s:.2f} s before")


async def _silence(scene: Scene, for_s: float) -> None:
    async with AsyncExitStack() as looks:
        here, token = scene.stack.urls[0], scene.stack.tokens[scene.caller(0), "session"]
        near = await looks.enter_async_context(scene.extra_agent(EchoAgent, here))
        far = await looks.enter_async_context(scene.extra_agent(EchoAgent, here))
        REDIS_PROXY.redis.silence()
        try:
            ready = [await looks.enter_async_context(looking(url, "/readyz")) for url in scene.stack.urls]
            read = await looks.enter_async_context(looking(here, "/api/v1/agents", token))
            await _while_silent(scene, (near, far), for_s)
        finally:
            REDIS_PROXY.redis.heal()
        for seen in ready:
            is_quick = seen.p99_s < READY_WITHIN_S and set(seen.statuses) == {200}
            scene.note("/readyz answers within 1.5 s (p99) while Redis is silent", is_quick, seen.summary)
        scene.note("reads are answered while Redis is silent", set(read.statuses) == {200}, read.summary)
    await scene.check_served("every process serves after Redis was silent", SERVED_WITHIN_S)


async def _while_silent(scene: Scene, agents: Sequence[EchoAgent], for_s: float) -> None:
    """Ask one agent through each process; both agents are connected to the first process."""
    until = time.monotonic() + for_s
    while time.monotonic() < until:
        for url, agent in enumerate(agents):
            answer = await scene.ask(agent, url, url=url)
            if url == 0:
                what = "an agent of the same process is reached while Redis is silent"
                scene.note(what, answer.outcome == "completed", answer.summary)
            else:
                what = "an ask to an agent of another process ends within 10 s while Redis is silent"
                scene.note(what, answer.took_s < ENDED_WITHIN_S, answer.summary)
        await _sign_in(scene)


async def _sign_in(scene: Scene) -> None:
    async with web(scene.stack.url) as client:
        began = time.monotonic()
        response = await client.post("/api/v1/auth/device/code", json={"app_name": "faults"})
    took_s = time.monotonic() - began
    ok = response.status_code == 200 and took_s < ENDED_WITHIN_S
    scene.note("sign-in works while its limit cannot be counted", ok, f"{response.status_code} {took_s:.1f} s")


async def _ask_far(scene: Scene, what: str) -> float:
    """Ask agents of the first process through the second; the seconds in which 95 of 100 asks ended."""
    took: list[float] = []

    async def one(far: EchoAgent, number: int) -> None:
        for turn in range(SLOW_ASKS // 4):
            answer = await scene.ask(far, number, url=1)
            took.append(answer.took_s)
            scene.note(what, answer.outcome == "completed", f"{answer.text} ({turn})")

    async with AsyncExitStack() as stack:
        added = [scene.extra_agent(EchoAgent, scene.stack.urls[0]) for _ in range(4)]
        agents = [await stack.enter_async_context(one) for one in added]
        await asyncio.gather(*(one(agent, number) for number, agent in enumerate(agents)))
    return percentile(took, 0.95)


async def silence_postgres(scene: Scene) -> None:
    """No data passes to or from PostgreSQL for a while, and no connection is refused."""
    for _ in range(scene.count):
        POSTGRES_PROXY.postgres.silence()
        try:
            await asyncio.sleep(CUT_S)
        finally:
            POSTGRES_PROXY.postgres.heal()
        what = "asks are answered again after PostgreSQL was silent"
        await scene.check_served(what, ASKED_AGAIN_WITHIN_S)
        await scene.asked(ASKS_BETWEEN)


async def cut_one_off(scene: Scene) -> None:
    """No data passes between one web process and PostgreSQL or Redis; the other process is asked meanwhile."""
    stack = scene.stack
    with proxied(stack.postgres.port) as postgres, proxied(stack.redis.port) as redis:
        database_url = stack.postgres.url(DATABASE, port=postgres.port)
        await _serve_again(scene, DATABASE_URL=database_url, REDIS_URL=stack.redis.url(port=redis.port))
        for number in scene.numbers:
            async with scene.extra_agent(EchoAgent, stack.urls[0]) as agent:
                postgres.silence()
                redis.silence()
                try:
                    await _ask_other(scene, agent, number)
                finally:
                    redis.heal()
                    postgres.heal()
            await scene.check_served("every process answers asks after one was cut off", SERVED_WITHIN_S)
            await scene.asked(ASKS_BETWEEN)
        await _serve_again(scene)


async def _ask_other(scene: Scene, agent: EchoAgent, number: int) -> None:
    until = time.monotonic() + scene.stack.seconds(CUT_OFF_S, at_least_s=CUT_OFF_LEAST_S)
    while time.monotonic() < until:
        answer = await scene.ask(agent, number, url=0)
        what = "the other process answers asks while one is cut off"
        scene.note(what, answer.outcome == "completed", answer.summary)
        number += 1
        await asyncio.sleep(ASK_EVERY_S)


async def _serve_again(scene: Scene, **env: object) -> None:
    """Restart the second web process. `env`: settings of this process."""
    scene.stack.terminate_web(1)
    await scene.stack.web_exited(1, "SIGTERM")
    await scene.stack.serve(1, **env)


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
        scene.note("10 s after a restart no process uses an old connection", not stale, f"{stale}")


FAULTS = [
    Fault("F3", "Redis restarts, empty", 1, 30, restart_redis,
          fills=("agents are back", "asks are answered again")),
    Fault("F4", "Redis is silent for 60 s", 1, 20, silence_redis,
          stack=VIA,
          fills=("/readyz", "reads", "an agent of the same", "an ask to an agent of another", "sign-in")),
    Fault("F5", "Redis is 300 ms slower", 1, 10, slow_redis,
          stack=VIA, fills=("asks across processes", "an ask across processes")),
    Fault("F6", "PostgreSQL restarts (fast)", 1, 30, restart_fast, fills=("asks are answered again",)),
    Fault("F7", "PostgreSQL crashes (immediate)", 1, 20, restart_immediate,
          fills=("asks are answered again",)),
    Fault("F22", "PostgreSQL is silent for 12 s", 0, 10, silence_postgres,
          stack={"via": POSTGRES_PROXY}, fills=("asks are answered again",)),
    Fault("F29", "one web process is cut off from PostgreSQL and Redis", 0, 5, cut_one_off,
          fills=("the other process", "every process")),
]  # fmt: skip
