"""F26 and F27: a web process, or a worker, is stopped for longer than a silent process counts as living."""

import asyncio
import itertools
import time
from contextlib import AsyncExitStack
from functools import partial
from typing import Any

from lab.faults.agents import EchoAgent, echo_of
from lab.faults.answers import AGAIN_WITHIN_S
from lab.faults.fault import Fault, Scene, became_true
from lab.faults.kinds.programs import (
    OPEN,
    SERVED_AGAIN_WITHIN_S,
    HoldingReceiver,
    check_jobs_run,
    refuse_delivery,
)
from lab.faults.stack import Row
from lab.frames import Json
from lab.processes import Program

PAUSED_S = 45.0  # a process counts as dead after 20
LEAST_S = 15.0  # on a hub whose durations are shorter
ASKS_AFTER_PAUSE = 100

# F26.
PROMPTED_WITHIN_S = 10.0
CLIENTS_WAIT_S = 3.0  # of clients of a paused process
BOOKS_EVERY_S = 5.0
KNOWN = "SELECT count(*) FROM agents_process WHERE id = %s"
CLAIMED = """
SELECT count(*) FROM agents_turn
WHERE home = %s AND outcome IS DISTINCT FROM 'denied' AND released_at IS NULL AND claim_until > now()
"""
LEFT_OF_A_PROCESS = (
    ("a paused process counts as dead before it continues", KNOWN),
    ("a paused process has no open turn before it continues", OPEN),
    ("a paused process holds no claim before it continues", CLAIMED),
)

# F27.
WOKEN_FOR_S = 10.0  # an end that could not be stored is tried again for about 3 s
SENDING = "SELECT id FROM webhooks_delivery WHERE status = 'sending'"
ENDS = """
SELECT id, status, attempts, last_status, next_attempt_at, delivered_at FROM webhooks_delivery
WHERE id = ANY(%s) ORDER BY id
"""


class HeldAgent(EchoAgent):
    """An agent that answers only once `may_answer` is set. `in_pieces`: the first piece comes before that."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.may_answer = asyncio.Event()
        self.in_pieces = False

    async def answer(self, prompt: Json) -> None:
        """Reply to one prompt when that is allowed."""
        chat_id, text = prompt["chatId"], echo_of(prompt["text"])
        if not self.in_pieces:
            await self.may_answer.wait()
            await self.reply(chat_id, text)
            return
        await self.chunk(chat_id, text[:5])
        await self.may_answer.wait()
        await self.chunk(chat_id, text[5:])
        await self.chunk(chat_id, "", done=True)


async def pause_web(scene: Scene) -> None:
    """A web process is stopped until others have ended its turns, and continues when these are answered late."""
    for number in scene.numbers:
        await _pause_once(scene, number, number % len(scene.stack.urls))
        await scene.asked(ASKS_AFTER_PAUSE)


async def _pause_once(scene: Scene, number: int, url: int) -> None:
    """Four asks are open at the process, or at an agent of its sockets. All are answered while it is stopped."""
    other = (url + 1) % len(scene.stack.urls)
    async with AsyncExitStack() as agents:
        held = [
            await agents.enter_async_context(scene.extra_agent(HeldAgent, scene.stack.urls[at]))
            for at in (other, other, url, url)
        ]
        held[0].in_pieces = True
        asking = [
            asyncio.ensure_future(scene.load.ask_once(agent, scene.caller(number), kind, at))
            for agent, kind, at in zip(held[1:], ("http+json", "hub stream", "v1"), (url, url, other), strict=True)
        ]
        scene.load.set_wait(url, CLIENTS_WAIT_S)
        asking.append(asyncio.ensure_future(scene.load.ask_keyed(held[0], scene.caller(number), url)))
        await asyncio.wait_for(asyncio.gather(*(agent.prompted.wait() for agent in held)), PROMPTED_WITHIN_S)
        until = time.monotonic() + scene.stack.seconds(PAUSED_S, at_least_s=LEAST_S)
        booking = asyncio.ensure_future(_book_until(scene, url, until))
        home = scene.stack.process_id(url)
        with scene.stack.web_paused(url):
            await _check_ended(scene, home, until)
            for agent in held:
                agent.may_answer.set()
            await asyncio.sleep(until - time.monotonic())
        scene.load.set_wait(url)
        await scene.check_served("every process answers asks after one was paused", SERVED_AGAIN_WITHIN_S)
        back = scene.all_online([*held, *scene.participants.agents])
        await scene.check_in_time("agents of a process that was paused are back", back, SERVED_AGAIN_WITHIN_S)
        await asyncio.gather(booking, *asking)
        for agent in held:
            answer = await scene.ask(agent, number)
            what = "an agent whose turn was ended during the pause answers again"
            scene.note(what, answer.outcome == "completed", answer.summary)


async def _check_ended(scene: Scene, home: str, until: float) -> None:
    """Check that others end the turns of a paused process, and release its claims, before it continues."""
    ((left,),) = scene.stack.sql(OPEN, home)
    scene.note("a process is paused with turns open", left > 0, f"{left}")

    began = time.monotonic()

    def is_none(statement: str) -> bool:
        return bool(scene.stack.sql(statement, home)[0][0] == 0)

    for what, statement in LEFT_OF_A_PROCESS:
        ok = await became_true(partial(is_none, statement), until - time.monotonic())
        scene.note(what, ok, f"{time.monotonic() - began:.1f} s later")


async def _book_until(scene: Scene, url: int, until: float) -> None:
    """Let all programs send confirmations first to one process; they are repeated through the others."""
    programs = itertools.cycle(scene.participants.programs)
    async with asyncio.TaskGroup() as booking:
        while time.monotonic() < until:
            for program in itertools.islice(programs, len(scene.participants.programs)):
                booking.create_task(scene.load.book_once(program, url))
            await asyncio.sleep(BOOKS_EVERY_S)


async def pause_worker(scene: Scene) -> None:
    """The only worker is stopped; then one of two, until the other has sent what the first was sending."""
    for _ in range(scene.count):
        due = await refuse_delivery(scene)
        with _worker(scene).paused():
            await asyncio.sleep(scene.stack.seconds(PAUSED_S, at_least_s=LEAST_S))
        await check_jobs_run(scene, due, "the only worker was paused")
        await _pause_mid_delivery(scene)
        await scene.asked(ASKS_AFTER_PAUSE)


async def _pause_mid_delivery(scene: Scene) -> None:
    """A worker is stopped with requests under way, until their leases have ended and another worker has sent them.

    When it continues, it finds that the receiver had refused its first request.
    """
    receiver, paused = HoldingReceiver(), _worker(scene)
    scene.participants.answer_webhook = receiver
    began = time.monotonic()
    try:
        await receiver.has_request()
        with paused.paused():
            receiver.go_on.set()
            ids = [row[0] for row in scene.stack.sql(SENDING)]
            await scene.stack.start_worker()
            ends = await _wait_for_ends(scene, ids)
            await asyncio.sleep(began + scene.stack.seconds(PAUSED_S, at_least_s=LEAST_S) - time.monotonic())
        await asyncio.sleep(WOKEN_FOR_S)
        for before, after in zip(ends, scene.stack.sql(ENDS, ids), strict=True):
            what = "a worker that was paused changes no delivery that another one has ended"
            scene.note(what, before == after, f"{before}, then {after}")
    finally:
        receiver.go_on.set()
        paused.kill()


async def _wait_for_ends(scene: Scene, ids: list[int]) -> list[Row]:
    """Wait until another worker has sent these deliveries, and check that it did in time; returns their rows."""
    began = time.monotonic()

    def are_sent() -> bool:
        return all(status == "delivered" for _, status, *_ in scene.stack.sql(ENDS, ids))

    await became_true(are_sent, AGAIN_WITHIN_S)
    ends = scene.stack.sql(ENDS, ids)
    for _, status, *_ in ends:
        what = "a delivery of a paused worker is sent by another one within 60 s and 30 for a busy machine"
        scene.note(what, status == "delivered", f"{status} after {time.monotonic() - began:.1f} s")
    return ends


def _worker(scene: Scene) -> Program:
    assert scene.stack.worker is not None, "no worker runs"
    return scene.stack.worker


FAULTS = [
    Fault("F26", "a web process pauses longer than a silent process counts as living", 0, 10, pause_web,
          fills=("a process is paused with turns open", "a paused process has no open turn",
                 "every process answers asks after one was paused")),
    Fault("F27", "a worker pauses, alone and beside another", 0, 5, pause_worker,
          fills=("the sweep runs again", "a delivery that was due", "a delivery of a paused worker",
                 "a worker that was paused changes no delivery")),
]  # fmt: skip
