"""F1, F2, F15, F19 and F21: web processes, the Celery worker and the beat are killed, restarted, or run twice."""

import asyncio
import random
import re
import threading
import time
from functools import partial

from lab.callers import web
from lab.faults.agents import EchoAgent
from lab.faults.answers import AGAIN_WITHIN_S
from lab.faults.fault import Fault, Scene, became_true
from lab.receivers import Received

# F1.
POINTS = (
    "after-admission",
    "after-delivery",
    "first-chunk",
    "before-settling",
    "after-settling",
    "while-draining",
)
DIES_WITHIN_S = 60
ASKS_AFTER_DEATH = 20
DRAINS = 5

# F2 and F15.
HELD_WITHIN_S = 60.0
GONE_WITHIN_S = 25.0
ASKS_BETWEEN = 60

# F21.
DOWN_S = (0.0, 3.0)
SERVED_AGAIN_WITHIN_S = 60.0
ASKS_AFTER_KILL = 150
PENDING = "SELECT 1 FROM webhooks_delivery WHERE event_id = %s AND status = 'pending'"
SENT = "SELECT 1 FROM webhooks_delivery WHERE event_id = %s AND status = 'delivered'"

# F19.
TWO_FOR_S = 5.0
CLEAN_WITHIN_S = 45.0
ASKED_WITHIN_S, ASK_EVERY_S = 10.0, 1.0
FREE_AFTER_S, SLACK_S = 60.0, 8.0
ALARM_S, ALARMED_WITHIN_S = 60.0, 75.0
OPEN = "SELECT count(*) FROM agents_turn WHERE home = %s AND outcome IS NULL"
SWEEP_AGE = re.compile(r"^clawbridge_sweep_age_seconds (\S+)$", re.MULTILINE)


async def kill_at_points(scene: Scene) -> None:
    """Each round a web process is started so that it dies at a point, and started again when it did."""
    first = random.randrange(len(POINTS) * len(scene.stack.urls))
    for number in range(first, first + scene.count):
        point, url = POINTS[number % len(POINTS)], (number // len(POINTS)) % len(scene.stack.urls)
        for _ in range(DRAINS):
            code = await _kill_at(scene, point, url)
            if code != 0:
                break  # else no turn was open: nothing to drain, so nothing was done
        scene.note(f"a process died {point}", code == -9, f"left with {code}")
        await scene.asked(ASKS_AFTER_DEATH)
    await _serve_all(scene)


async def _kill_at(scene: Scene, point: str, url: int) -> int:
    """The exit code of the process; 0 when it drained and no turn was open."""
    await _serve_all(scene, but=url)
    if scene.stack.web[url] is not None:
        await scene.stack.kill_web(url)
    is_drain = point == "while-draining"
    await scene.stack.serve(url, FAIL_POINTS=f"{point}:{1 if is_drain else random.randint(1, 20)}")
    await scene.asked(ASKS_AFTER_DEATH)
    if is_drain:
        scene.stack.terminate_web(url)
    return await scene.stack.web_exited(url, f"kill -9 {point}", within_s=DIES_WITHIN_S)


async def _serve_all(scene: Scene, but: int = -1) -> None:
    """Start the web processes that do not run."""
    for url, program in enumerate(scene.stack.web):
        if program is None and url != but:
            await scene.stack.serve(url)


async def kill_mid_delivery(scene: Scene) -> None:
    """The worker is killed while a receiver holds its request; another worker sends the delivery again.

    The delivery comes when the lease of the killed worker has ended; `deliveries_come_again` checks that.
    """
    for _ in range(scene.count):
        await _kill_once(scene)
    if scene.count > 1:  # else the next fault is in the way of the last of them
        await asyncio.sleep(AGAIN_WITHIN_S)


async def _kill_once(scene: Scene) -> None:
    receiver = HoldingReceiver()
    scene.participants.answer_webhook = receiver
    try:
        await receiver.has_request()
        scene.stack.kill_worker()
        scene.log.write("held", event_id=receiver.held[0].headers["webhook-id"])
        await scene.stack.start_worker()
    finally:
        receiver.go_on.set()
    await scene.asked(ASKS_BETWEEN)


class HoldingReceiver:
    """Holds all requests until `go_on` is set; then it refuses the first of them, and accepts the others."""

    def __init__(self) -> None:
        self.held: list[Received] = []
        self.go_on = threading.Event()

    def __call__(self, one: Received) -> int:
        is_first = not self.held
        if not self.go_on.is_set():
            self.held.append(one)
            self.go_on.wait(HELD_WITHIN_S)
        return 503 if is_first else 204

    async def has_request(self) -> None:
        """Wait until it holds a request."""
        async with asyncio.timeout(HELD_WITHIN_S):
            while not self.held:
                await asyncio.sleep(0.05)


async def rolling_restart(scene: Scene) -> None:
    """SIGTERM, wait for the drain, start again; one process after the other, while all is asked."""
    for _ in range(scene.count):
        for url in range(len(scene.stack.urls)):
            began = time.monotonic()
            scene.stack.terminate_web(url)
            code = await scene.stack.web_exited(url, "SIGTERM", within_s=2 * GONE_WITHIN_S)
            took_s = time.monotonic() - began
            ok = code == 0 and took_s <= GONE_WITHIN_S
            scene.note("a drained process exits with 0 within 25 s", ok, f"{code} after {took_s:.1f} s")
            await scene.stack.serve(url)
            await scene.asked(ASKS_BETWEEN)


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
    async with scene.extra_agent(EchoAgent) as agent:
        agent.is_silent = True
        await scene.ask(agent, number, url=0)
        agent.is_silent, settled_at = False, time.monotonic()

        async def is_free() -> bool:
            return (await scene.ask(agent, number + 1, url=0)).outcome == "completed"

        was_free = await is_free()
        alarm_s = scene.stack.seconds(ALARM_S)
        for url in scene.stack.urls:
            alarmed = await became_true(partial(_is_alarm, url, alarm_s), ALARMED_WITHIN_S)
            scene.note("without a beat sweep_age passes 60 s", alarmed, url)
        free_at = settled_at + scene.stack.seconds(FREE_AFTER_S) + SLACK_S
        free = await became_true(is_free, free_at - time.monotonic(), every_s=ASK_EVERY_S)
        detail = f"{time.monotonic() - settled_at:.1f} s, at first {'free' if was_free else 'held'}"
        scene.note("without a beat a claim runs out 60 s after its end", free and not was_free, detail)


async def _is_alarm(url: str, alarm_s: float) -> bool:
    age_s = await sweep_age_s(url)
    return age_s is not None and age_s > alarm_s


async def sweep_age_s(url: str) -> float | None:
    """The seconds since the last sweep, as the metrics of a web process tell it."""
    async with web(url) as client:
        found = SWEEP_AGE.search((await client.get("/metrics")).text)
    return None if found is None else float(found[1])


async def _die_unswept(scene: Scene, number: int) -> None:
    """A web process dies with a turn open, which is not ended until a beat runs again."""
    url = number % len(scene.stack.urls)
    other = (url + 1) % len(scene.stack.urls)
    async with scene.extra_agent(EchoAgent, scene.stack.urls[other]) as agent:
        agent.is_silent = True
        asking = asyncio.ensure_future(scene.ask(agent, number, url=url))
        await asyncio.wait_for(agent.prompted.wait(), ASKED_WITHIN_S)
        await scene.stack.kill_web(url)
        dead = scene.stack.process_id(url)
        await asking
        await scene.stack.serve(url)
        await scene.check_served("asks are answered while no beat runs", CLEAN_WITHIN_S)
        ((left,),) = scene.stack.sql(OPEN, dead)
        scene.note("a dead process leaves turns open while no beat runs", left > 0, f"{left}")
        await scene.stack.start_beat()

        async def is_clean() -> bool:
            return bool(scene.stack.sql(OPEN, dead)[0][0] == 0)

        clean = await became_true(is_clean, CLEAN_WITHIN_S)
        scene.note("the next beat ends turns that were left open, within 45 s", clean, dead)


async def kill_each(scene: Scene) -> None:
    """Kill each web process, then the worker, then the beat, each alone, and start each again."""
    stack = scene.stack
    for _ in range(scene.count):
        for url in range(len(stack.urls)):
            await stack.kill_web(url)
            await asyncio.sleep(random.uniform(*DOWN_S))
            await stack.serve(url)
            await scene.check_served("asks are answered after a web process was killed", SERVED_AGAIN_WITHIN_S)
            await scene.asked(ASKS_AFTER_KILL)
        due = await refuse_delivery(scene)
        stack.kill_worker()
        await asyncio.sleep(random.uniform(*DOWN_S))
        await stack.start_worker()
        await check_jobs_run(scene, due, "the worker was killed")
        await scene.asked(ASKS_AFTER_KILL)
        due = await refuse_delivery(scene)
        stack.kill_beats()
        await asyncio.sleep(random.uniform(*DOWN_S))
        await stack.start_beat()
        await check_jobs_run(scene, due, "the beat was killed")
        await scene.asked(ASKS_AFTER_KILL)


async def refuse_delivery(scene: Scene) -> str:
    """Let the webhook refuse one delivery, which is due again some seconds later; returns its event id."""
    refused: list[str] = []

    def refuse_first(one: Received) -> int:
        if refused:
            return 204
        refused.append(one.headers["webhook-id"])
        return 503

    def is_pending() -> bool:
        return bool(refused and scene.stack.sql(PENDING, refused[0]))

    scene.participants.answer_webhook = refuse_first
    if not await became_true(is_pending, HELD_WITHIN_S):
        raise TimeoutError("no delivery was refused")
    return refused[0]


async def check_jobs_run(scene: Scene, due: str, what: str) -> None:
    """Check that the sweep runs from now on, and that a delivery that was or becomes due is sent."""
    began = time.monotonic()

    async def is_swept() -> bool:
        age_s = await sweep_age_s(scene.stack.url)
        return age_s is not None and age_s < time.monotonic() - began

    def is_sent() -> bool:
        return bool(scene.stack.sql(SENT, due))

    ok = await became_true(is_swept, CLEAN_WITHIN_S)
    scene.note(f"the sweep runs again within 45 s after {what}", ok, f"{time.monotonic() - began:.1f} s")
    ok = await became_true(is_sent, began + AGAIN_WITHIN_S - time.monotonic())
    scene.note(
        f"a delivery that was due is sent within 90 s after {what}", ok, f"{time.monotonic() - began:.1f} s"
    )


FAULTS = [
    Fault("F1", "kill -9 of a web process at six points of a turn", 6, 300, kill_at_points,
          fills=("a process died",)),
    Fault("F2", "kill -9 of the Celery worker mid-delivery", 1, 50, kill_mid_delivery,
          fills=("a delivery that a killed worker",)),
    Fault("F15", "rolling restart", 1, 30, rolling_restart, fills=("asks admitted", "a drained process")),
    Fault("F19", "two beats, and none", 1, 10, two_beats_and_none,
          fills=("asks are answered while no beat runs", "the next beat")),
    Fault("F21", "kill -9 of each process in turn", 0, 30, kill_each,
          fills=("asks are answered after a web process", "the sweep runs again", "a delivery that was due")),
]  # fmt: skip
