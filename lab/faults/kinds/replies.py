"""F14: agents whose replies are slow, endless, or far too large."""

import asyncio

from lab.callers import Json
from lab.faults.agents import EchoAgent
from lab.faults.extra_agents import extra_agent
from lab.faults.fault import Fault, Scene
from lab.faults.observing import became_true, process_of

DROPS = 2  # while there is time
MANY, VERY_MANY = 20_000, 1_000_000
SLACK_S = 10.0
SERVED_WITHIN_S = 100.0  # the claim of a turn that did not end well is kept for up to 60 s
MEMORY = 96 * 1024 * 1024
TOO_LARGE, OFFLINE, LATE = "over the size limit", "offline", "did not reply within"


class Bad(EchoAgent):
    """Replies badly to the first question, and as an echo afterwards. `many`: the chunks of an endless reply.

    `wait_s`: how long the caller waits.
    """

    many = MANY
    wait_s = 0.0
    is_bad = True

    async def answer(self, prompt: Json) -> None:
        if not self.is_bad:
            await super().answer(prompt)
            return
        self.is_bad = False
        await self.reply_badly(prompt["chatId"])

    async def reply_badly(self, chat_id: str) -> None:
        """Send the bad reply."""


class Trickle(Bad):
    """A few chunks, of which the last comes too late."""

    async def reply_badly(self, chat_id: str) -> None:
        for _ in range(DROPS + 1):
            await self.chunk(chat_id, "drop")
            await asyncio.sleep(self.wait_s / DROPS)
        await self.chunk(chat_id, "", done=True)


class Endless(Bad):
    """Small chunks without end, also after the hub refused them."""

    async def reply_badly(self, chat_id: str) -> None:
        for _ in range(self.many):
            await self.chunk(chat_id, "on and on")
        await self.chunk(chat_id, "", done=True)


class WideChunk(Bad):
    """One chunk of 256 KiB."""

    async def reply_badly(self, chat_id: str) -> None:
        await self.chunk(chat_id, "w" * 262_144, done=True)


class LongReply(Bad):
    """A whole reply of 2 MiB."""

    async def reply_badly(self, chat_id: str) -> None:
        await self.reply(chat_id, "l" * 2_097_152)


class HugeFrame(Bad):
    """A frame of 64 MiB: the socket closes before it is read."""

    async def reply_badly(self, chat_id: str) -> None:
        await self.reply(chat_id, "h" * 67_108_864)


KINDS: list[tuple[type[Bad], str]] = [
    (Trickle, LATE), (Endless, TOO_LARGE), (WideChunk, TOO_LARGE), (LongReply, TOO_LARGE), (HugeFrame, OFFLINE),
]  # fmt: skip


async def bad_replies(scene: Scene) -> None:
    """Ask one agent of each kind at the same time."""
    for first in range(0, scene.count, len(KINDS)):
        kinds = [KINDS[number % len(KINDS)] for number in scene.numbers[first : first + len(KINDS)]]
        hubs = [process_of(scene, index) for index in range(len(scene.stack.urls))]
        before = [hub.memory_info().rss for hub in hubs]
        await asyncio.gather(*(_reply_badly(scene, *kind, number) for number, kind in enumerate(kinds)))
        for hub, least in zip(hubs, before, strict=True):
            grown = hub.memory_info().rss - least
            scene.saw("bad replies cost a process less than 96 MiB", grown < MEMORY, f"{grown / 2**20:.0f} MiB")


async def _reply_badly(scene: Scene, kind: type[Bad], text: str, number: int) -> None:
    urls = scene.stack.urls
    async with extra_agent(scene, kind, urls[number % len(urls)], concurrencyCap=1) as agent:
        agent.wait_s = scene.stack.reply_wait_s
        agent.many = VERY_MANY if scene.count > len(KINDS) else MANY
        answer = await scene.ask(agent, number)
        is_in_time = answer.took_s < scene.stack.reply_wait_s + SLACK_S
        ok = answer.outcome == "failed" and text in answer.text and is_in_time
        scene.saw(f"{kind.__name__}: the task fails, and says why: {text}", ok, answer.summary)
        again = await became_true(lambda: _echoes(scene, agent, number), SERVED_WITHIN_S)
        scene.saw(f"{kind.__name__}: the agent is served again", again, agent.handle)


async def _echoes(scene: Scene, agent: Bad, number: int) -> bool:
    return (await scene.ask(agent, number)).outcome == "completed"


FAULTS = [
    Fault("F14", "replies drop by drop, without end, far too large", 5, 50, bad_replies,
          fills=("bad replies cost",)),
]  # fmt: skip
