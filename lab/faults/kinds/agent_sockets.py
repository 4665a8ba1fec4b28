"""F8, F9, F10 and F20: agents that connect twice, again and again, or all at once; and half-open connections.

The connection of a half-open agent is open and silent: its process is stopped, or a proxy passes nothing on.
"""

import asyncio
import random
import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass

from lab.faults.agents import EchoAgent
from lab.faults.fault import OWNER, Fault, Scene, became_true
from lab.faults.request_kinds import WEIGHTS
from lab.processes import Program, printed, python
from lab.proxy import Proxy, proxied

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
    async with scene.extra_agent(EchoAgent, *scene.stack.urls, concurrencyCap=20) as holder:
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
    scene.note("one of several rival sockets stays connected", len(live) == 1, f"{len(live)} of {len(racing)}")
    for one in racing:
        if one not in live:
            ok = one.bye.get("reason") == "superseded" and not one.bye["retry"]
            scene.note("every other rival socket gets `bye`: superseded, no retry", ok, f"{one.bye}")
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
        scene.note("while agents flap a web process takes less than a core", max(cores) < 1, detail)
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
        for agent in crowd:
            agent.start()
            await asyncio.sleep(2 / HERD)
        what = f"{HERD} agents that connect in 2 s are all registered within {HERD_WITHIN_S:.0f} s"
        await scene.check_in_time(what, scene.all_online(crowd), HERD_WITHIN_S)
        await asyncio.gather(*(agent.stop() for agent in crowd))
        await _asked_at_once(scene)


def _one_of_the_herd(scene: Scene, number: int) -> EchoAgent:
    url = scene.stack.urls[number % len(scene.stack.urls)]
    return EchoAgent([url], scene.stack.tokens[HERD_OWNER, "channel"], scene.log, name=f"herd-{number}")


async def _asked_at_once(scene: Scene) -> None:
    kinds = ("hub", "v1", "http+json", "v0.3")
    asking = []
    async with scene.extra_agent(EchoAgent, *scene.stack.urls, concurrencyCap=20) as agent:
        for number in range(ASKS_AT_ONCE):
            url, kind = number % len(scene.stack.urls), kinds[number % len(kinds)]
            asked = scene.load.ask_once(agent, scene.caller(number % 4), kind, url)
            asking.append(asyncio.ensure_future(asked))
            await asyncio.sleep(1 / ASKS_AT_ONCE)
        ((held,),) = scene.stack.sql(CONNECTIONS)
        most = POOLS * (len(scene.stack.urls) + 3)
        scene.note("connections to PostgreSQL stay within the pools", held <= most, f"{held} of {most}")
        for answer in await asyncio.gather(*asking):
            is_busy = answer.status in (429, 503) and answer.retry_after
            ok = answer.outcome in ("completed", "failed") or is_busy
            scene.note("an ask of 500 at once is answered, or refused with Retry-After", ok, f"{answer}")


AT_ONCE = 5
SILENT_AFTER_S = 60.0
SLACK_S = 8.0  # looked at every second, on a busy machine; the `bye` may take a while
BACK_WITHIN_S = 60.0
AT_ONCE_S = 5.0
ONLINE = (
    "SELECT count(*) FROM agents_connection c JOIN agents_session s ON s.id = c.session_id WHERE s.public_id = %s"
)
HELD = """
SELECT count(*) FROM agents_turn t JOIN agents_session s ON s.id = t.session_id
WHERE s.public_id = %s AND outcome IS DISTINCT FROM 'denied' AND released_at IS NULL AND claim_until > now()
"""


@dataclass
class SilentAgent:
    """An agent in a process of its own, behind a proxy. `stops`: stop the process, do not silence the proxy."""

    agent: EchoAgent
    program: Program
    proxy: Proxy
    stops: bool

    @property
    def times_online(self) -> int:
        """The number of times that the hub registered the agent."""
        return self.program.output.count("online ")

    def fall_silent(self) -> None:
        """Stop the process, or silence the proxy."""
        if self.stops:
            self.program.send_signal(signal.SIGSTOP)
        else:
            self.proxy.silence()

    def wake(self) -> None:
        """Undo `fall_silent`."""
        if self.stops:
            self.program.send_signal(signal.SIGCONT)
        else:
            self.proxy.heal()


async def half_open(scene: Scene) -> None:
    """Agents, at most five at once, fall silent; the hub is asked for them, gives them up, and they come back."""
    done = 0
    while done < scene.count:
        size = min(AT_ONCE, scene.count - done)
        with ExitStack() as open_ones:
            silent = [await _join(scene, open_ones, done + number) for number in range(size)]
            await asyncio.gather(*(_be_silent(scene, one, number) for number, one in enumerate(silent)))
        done += size


async def _join(scene: Scene, open_ones: ExitStack, number: int) -> SilentAgent:
    token, name = scene.stack.tokens[OWNER, "channel"], f"silent-{time.time_ns()}"
    port = scene.stack.urls[number % len(scene.stack.urls)].rpartition(":")[2]
    proxy = open_ones.enter_context(proxied(int(port)))
    url = f"http://127.0.0.1:{proxy.port}"
    command = python("-m", "lab.faults.agents", url, token, name)
    program = Program(command, scene.stack.folder / f"{name}.log", is_ready=printed("online "))
    open_ones.callback(program.kill)
    await asyncio.to_thread(program.start)
    agent = EchoAgent([], token, scene.log, name=name)
    silent = SilentAgent(agent, program, proxy, stops=number % 2 == 0)
    agent.session_id = program.output.split()[-1]
    await scene.participants.publish(agent, OWNER, name, dailyBudgetQueries=100_000)
    return silent


async def _be_silent(scene: Scene, silent: SilentAgent, number: int) -> None:
    how = "stopped" if silent.stops else "cut off"
    await _check_echo(scene, silent, number, f"an agent that will be {how} answers before")
    silent.fall_silent()
    since, before = time.monotonic(), silent.times_online
    try:
        await _ask_in_vain(scene, silent, number, how)
        await _given_up(scene, silent, since, how)
        await _ask_too_late(scene, silent, number, how)
    finally:
        silent.wake()
    back = await became_true(lambda: silent.times_online > before, BACK_WITHIN_S)
    scene.note(f"an agent that was {how} reconnects by itself", back, silent.agent.name)
    if back:
        await _check_echo(scene, silent, number, f"an agent that was {how} answers again")


async def _ask_in_vain(scene: Scene, silent: SilentAgent, number: int, how: str) -> None:
    answer = await scene.ask(silent.agent, number)
    ok = answer.outcome == "failed" and answer.took_s < scene.stack.reply_wait_s + SLACK_S
    scene.note(f"an ask to an agent that is {how} fails when its wait is over", ok, answer.summary)


async def _given_up(scene: Scene, silent: SilentAgent, since: float, how: str) -> None:
    def is_gone() -> bool:
        return _count(scene, ONLINE, silent) == 0

    silent_after_s = scene.stack.seconds(SILENT_AFTER_S, at_least_s=12.0)
    gone = await became_true(is_gone, since + silent_after_s + SLACK_S - time.monotonic())
    took_s = time.monotonic() - since
    scene.note(f"an agent that is {how} is offline 60 s after its last frame", gone, f"{took_s:.0f} s")
    free = await became_true(lambda: _count(scene, HELD, silent) == 0, AT_ONCE_S)
    scene.note(f"no claim is left on an agent that was {how}", free, silent.agent.name)


async def _ask_too_late(scene: Scene, silent: SilentAgent, number: int, how: str) -> None:
    answer = await scene.ask(silent.agent, number)
    ok = "offline" in answer.text and answer.took_s < AT_ONCE_S
    scene.note(f"an agent that was {how} is refused as offline, at once", ok, answer.summary)


async def _check_echo(scene: Scene, silent: SilentAgent, number: int, what: str) -> None:
    for url in range(len(scene.stack.urls)):
        answer = await scene.ask(silent.agent, number, url=url)
        scene.note(what, answer.outcome == "completed", answer.summary)


def _count(scene: Scene, statement: str, silent: SilentAgent) -> int:
    return int(scene.stack.sql(statement, silent.agent.session_id)[0][0])


FAULTS = [
    Fault("F9", "rival sockets race for one session", 4, 500, race_for_a_session, fills=("one of several",)),
    Fault("F10", "agents that come and go", 1, 20, flap, fills=("while agents flap", "asks are answered")),
    Fault("F20", "500 agents connect in 2 s, 500 asks in 1 s at one agent", 0, 10, herd,
          fills=("500 agents", "connections to PostgreSQL", "an ask of 500")),
    Fault("F8", "half-open agents: stopped, cut off", 2, 50, half_open,
          fills=("no claim is left", "an ask to an agent")),
]  # fmt: skip
