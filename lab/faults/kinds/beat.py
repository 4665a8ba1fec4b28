"""F19: two beats, and none."""

import asyncio
import re
import time
from functools import partial

from lab.callers import web
from lab.faults.agents import EchoAgent
from lab.faults.extra_agents import caller, extra_agent
from lab.faults.fault import Fault, Scene
from lab.faults.observing import became_true

TWO_FOR_S = 5.0
CLEAN_WITHIN_S = 45.0
ASKED_WITHIN_S = 10.0
FREE_AFTER_S, SLACK_S = 60.0, 8.0
ALARM_S, ALARMED_WITHIN_S = 60.0, 75.0
OPEN = "SELECT count(*) FROM agents_turn WHERE home = %s AND outcome IS NULL"
SWEEP_AGE = re.compile(r"^clawbridge_sweep_age_seconds (\S+)$", re.MULTILINE)


async def two_beats_and_none(scene: Scene) -> None:
    """Two beats at once; then none until that is an alarm, and a web process dies; then one, which cleans up."""
    for number in range(scene.count):
        await scene.stack.start_beat()
        await asyncio.sleep(scene.stack.seconds(TWO_FOR_S, at_least_s=2.0))
        scene.stack.kill_beats()
        await _run_out_unswept(scene, number)
        await _die_unswept(scene, number)


async def _run_out_unswept(scene: Scene, number: int) -> None:
    """No beat runs until that is an alarm; the claim of an ask that was not answered runs out by itself."""
    async with extra_agent(scene, EchoAgent) as agent:
        agent.is_silent = True
        await scene.load.ask_once(agent, caller(scene, number), "v1", 0)
        agent.is_silent, settled_at = False, time.monotonic()

        async def is_free() -> bool:
            answer = await scene.load.ask_once(agent, caller(scene, number + 1), "v1", 0)
            return answer.outcome == "completed"

        was_free = await is_free()
        alarm_s = scene.stack.seconds(ALARM_S)
        for url in scene.stack.urls:
            alarmed = await became_true(partial(_is_alarm, url, alarm_s), ALARMED_WITHIN_S)
            scene.saw("without a beat sweep_age passes 60 s", alarmed, url)
        free_at = settled_at + scene.stack.seconds(FREE_AFTER_S) + SLACK_S
        free = await became_true(is_free, free_at - time.monotonic())
        detail = f"{time.monotonic() - settled_at:.1f} s, at first {'free' if was_free else 'held'}"
        scene.saw("without a beat a claim runs out 60 s after its end", free and not was_free, detail)


async def _is_alarm(url: str, alarm_s: float) -> bool:
    async with web(url) as client:
        found = SWEEP_AGE.search((await client.get("/metrics")).text)
    return found is not None and float(found[1]) > alarm_s


async def _die_unswept(scene: Scene, number: int) -> None:
    """A web process dies with a turn open, which is not ended until a beat runs again."""
    url = number % len(scene.stack.urls)
    other = (url + 1) % len(scene.stack.urls)
    async with extra_agent(scene, EchoAgent, at=scene.stack.urls[other]) as agent:
        agent.is_silent = True
        asking = asyncio.ensure_future(scene.load.ask_once(agent, caller(scene, number), "v1", url))
        await _prompted(agent)
        await scene.stack.kill_web(url)
        dead = scene.stack.process_id(url)
        await asking
        await scene.stack.serve(url)
        await scene.check_served("asks are answered while no beat runs", CLEAN_WITHIN_S)
        ((left,),) = scene.stack.sql(OPEN, dead)
        scene.saw("a dead process leaves turns open while no beat runs", left > 0, f"{left}")
        await scene.stack.start_beat()
        await _check_cleaned(scene, dead)


async def _prompted(agent: EchoAgent) -> None:
    async with asyncio.timeout(ASKED_WITHIN_S):
        while not agent.asked:
            await asyncio.sleep(0.05)


async def _check_cleaned(scene: Scene, dead: str) -> None:
    async def is_clean() -> bool:
        return bool(scene.stack.sql(OPEN, dead)[0][0] == 0)

    clean = await became_true(is_clean, CLEAN_WITHIN_S)
    scene.saw("the next beat ends what was left open meanwhile, within 45 s", clean, dead)


FAULTS = [Fault("F19", "two beats, and none", 1, 10, two_beats_and_none)]
