"""F9, F10 and F20: agents that connect twice, again and again, or all at once."""

import asyncio
import random
import time

from lab.faults.agents import EchoAgent
from lab.faults.extra_agents import extra_agent
from lab.faults.fault import Fault, Scene
from lab.faults.request_kinds import WEIGHTS

ONE_LEFT_WITHIN_S = 20.0
FLAP_FOR_S = 8.0
FLAPPING = 5
HERD_OWNER = "herd"
HERD, HERD_WITHIN_S = 500, 60.0
ASKS_AT_ONCE = 500
CONNECTIONS = "SELECT count(*) FROM pg_stat_activity WHERE datname = 'hub' AND pid <> pg_backend_pid()"
POOLS = 10  # connections to PostgreSQL of each web process and worker child, at most


class Rival(EchoAgent):
    """One of several programs that want to be the same session."""

    def __init__(self, first: EchoAgent, urls: list[str]) -> None:
        super().__init__(urls, first.token, first.log, name="rival", takes_s=0.2)
        self.handle, self.session_id, self.comes_back = first.handle, first.session_id, False
        self.register["pid"] = random.randint(2, 2**31)


async def race_for_a_session(scene: Scene) -> None:
    """2 to 10 sockets register as one session at the same time, through all processes, while it is asked."""
    async with extra_agent(scene, EchoAgent, *scene.stack.urls, concurrencyCap=20) as holder:
        holder.comes_back = False
        live: list[EchoAgent] = [holder]
        for number in range(scene.count):
            rivals = [Rival(holder, [random.choice(scene.stack.urls)]) for _ in range(random.randint(2, 10))]
            asking = asyncio.ensure_future(_ask_often(scene, holder, scene.caller(number), 5))
            for rival in rivals:
                rival.start()
            live = await _one_left(scene, [*live, *rivals])
            await asking
        await asyncio.gather(*(one.stop() for one in live))


async def _one_left(scene: Scene, racing: list[EchoAgent]) -> list[EchoAgent]:
    """Wait until one agent has the session; the agents that are still connected."""
    until = time.monotonic() + ONE_LEFT_WITHIN_S
    live = racing
    while time.monotonic() < until:
        await asyncio.sleep(0.2)
        live = [one for one in racing if one.is_connected]
        settled = [one for one in racing if one.is_over or one.is_connected]
        if len(live) == 1 and len(settled) == len(racing):
            break
    scene.saw("of rival sockets one is left", len(live) == 1, f"{len(live)} of {len(racing)}")
    for one in racing:
        if one not in live:
            ok = one.bye.get("reason") == "superseded" and not one.bye["retry"]
            scene.saw("rival sockets that lost were told so, and not to come back", ok, f"{one.bye}")
    return live


async def _ask_often(scene: Scene, agent: EchoAgent, login: str, count: int) -> None:
    for number in range(count):
        kind = random.choice(list(WEIGHTS))
        await scene.load.ask_once(agent, login, kind, number % len(scene.stack.urls))


async def flap(scene: Scene) -> None:
    """Some agents lose their connection every 0.2 to 2 s, and connect again, while they are asked."""
    for _ in range(scene.count):
        before, began = scene.stack.cpu_s(), time.monotonic()
        flapping = random.sample(scene.participants.agents, FLAPPING)
        until = time.monotonic() + scene.stack.seconds(FLAP_FOR_S, at_least_s=4.0)
        await asyncio.gather(*(_flap(agent, until) for agent in flapping))
        cores = [
            (now - then) / (time.monotonic() - began)
            for now, then in zip(scene.stack.cpu_s(), before, strict=True)
        ]
        detail = ", ".join(f"{one:.2f} cores" for one in cores)
        scene.saw("while agents flap a web process takes less than a core", max(cores) < 1, detail)
        await scene.check_served("asks are answered after agents flapped", 30)


async def _flap(agent: EchoAgent, until: float) -> None:
    while time.monotonic() < until:
        await asyncio.sleep(random.uniform(0.2, 2))
        agent.drop()


async def herd(scene: Scene) -> None:
    """500 agents connect within 2 s; then one agent is asked 500 times within a second."""
    await asyncio.to_thread(scene.stack.mint, [(HERD_OWNER, "session"), (HERD_OWNER, "channel")])
    for _ in range(scene.count):
        crowd = [_one_of_the_herd(scene, number) for number in range(HERD)]
        began = time.monotonic()
        for agent in crowd:
            agent.start()
            await asyncio.sleep(2 / HERD)
        await _all_welcome(scene, crowd, began)
        await asyncio.gather(*(agent.stop() for agent in crowd))
        await _asked_at_once(scene)


def _one_of_the_herd(scene: Scene, number: int) -> EchoAgent:
    url = scene.stack.urls[number % len(scene.stack.urls)]
    return EchoAgent([url], scene.stack.tokens[HERD_OWNER, "channel"], scene.log, name=f"herd-{number}")


async def _all_welcome(scene: Scene, crowd: list[EchoAgent], began: float) -> None:
    what = f"{HERD} agents that connect in 2 s are all registered within {HERD_WITHIN_S:.0f} s"
    try:
        async with asyncio.timeout(HERD_WITHIN_S):
            for agent in crowd:
                await agent.online.wait()
    except TimeoutError:
        missing = sum(not agent.is_connected for agent in crowd)
        scene.saw(what, False, f"{missing} are not")
    else:
        scene.saw(what, True, f"{time.monotonic() - began:.1f} s")


async def _asked_at_once(scene: Scene) -> None:
    kinds = ("hub", "v1", "http+json", "v0.3")
    asking = []
    async with extra_agent(scene, EchoAgent, *scene.stack.urls, concurrencyCap=20) as agent:
        for number in range(ASKS_AT_ONCE):
            url, kind = number % len(scene.stack.urls), kinds[number % len(kinds)]
            asked = scene.load.ask_once(agent, scene.caller(number % 4), kind, url)
            asking.append(asyncio.ensure_future(asked))
            await asyncio.sleep(1 / ASKS_AT_ONCE)
        ((held,),) = scene.stack.sql(CONNECTIONS)
        most = POOLS * (len(scene.stack.urls) + 3)
        scene.saw("connections to PostgreSQL stay within the pools", held <= most, f"{held} of {most}")
        for answer in await asyncio.gather(*asking):
            is_busy = answer.status in (429, 503) and answer.retry_after
            ok = answer.outcome in ("completed", "failed") or is_busy
            scene.saw("an ask of 500 at once is answered, or refused with Retry-After", ok, f"{answer}")


FAULTS = [
    Fault("F9", "rival sockets race for one session", 4, 500, race_for_a_session, fills=("of rival sockets",)),
    Fault("F10", "agents that come and go", 1, 20, flap, fills=("while agents flap", "asks are answered")),
    Fault("F20", "500 agents connect in 2 s, 500 asks in 1 s at one agent", 0, 10, herd,
          fills=("500 agents", "connections to PostgreSQL", "an ask of 500")),
]  # fmt: skip
