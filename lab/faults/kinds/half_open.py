"""F8: agents whose connection is open and silent: their process is stopped, or a proxy passes nothing on."""

import asyncio
import signal
import time
from contextlib import ExitStack
from dataclasses import dataclass

from lab.faults.agents import EchoAgent
from lab.faults.extra_agents import OWNER
from lab.faults.fault import Fault, Scene
from lab.faults.observing import until_true
from lab.processes import Program, printed, python
from lab.proxy import Proxy, proxied

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
        """How often the hub registered the agent."""
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
    command = python("-m", "lab.faults.agent_process", url, token, name)
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
    back = await until_true(lambda: silent.times_online > before, BACK_WITHIN_S)
    scene.saw(f"an agent that was {how} comes back by itself", back, silent.agent.name)
    if back:
        await _check_echo(scene, silent, number, f"an agent that was {how} answers again")


async def _ask_in_vain(scene: Scene, silent: SilentAgent, number: int, how: str) -> None:
    answer = await scene.ask(silent.agent, number)
    ok = answer.outcome == "failed" and answer.took_s < scene.stack.reply_wait_s + SLACK_S
    scene.saw(f"an ask to an agent that is {how} fails when its wait is over", ok, answer.summary)


async def _given_up(scene: Scene, silent: SilentAgent, since: float, how: str) -> None:
    def is_gone() -> bool:
        return _count(scene, ONLINE, silent) == 0

    silent_after_s = scene.stack.seconds(SILENT_AFTER_S, at_least_s=12.0)
    gone = await until_true(is_gone, since + silent_after_s + SLACK_S - time.monotonic())
    took_s = time.monotonic() - since
    scene.saw(f"an agent that is {how} is off line 60 s after its last word", gone, f"{took_s:.0f} s")
    free = await until_true(lambda: _count(scene, HELD, silent) == 0, AT_ONCE_S)
    scene.saw(f"no claim is left on an agent that was {how}", free, silent.agent.name)


async def _ask_too_late(scene: Scene, silent: SilentAgent, number: int, how: str) -> None:
    answer = await scene.ask(silent.agent, number)
    ok = "offline" in answer.text and answer.took_s < AT_ONCE_S
    scene.saw(f"an agent that was {how} is refused as offline, at once", ok, answer.summary)


async def _check_echo(scene: Scene, silent: SilentAgent, number: int, what: str) -> None:
    for url in range(len(scene.stack.urls)):
        answer = await scene.ask(silent.agent, number, url=url)
        scene.saw(what, answer.outcome == "completed", answer.summary)


def _count(scene: Scene, statement: str, silent: SilentAgent) -> int:
    return int(scene.stack.sql(statement, silent.agent.session_id)[0][0])


FAULTS = [
    Fault("F8", "half-open agents: stopped, cut off", 2, 50, half_open,
          fills=("no claim is left", "an ask to an agent")),
]  # fmt: skip
