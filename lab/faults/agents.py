"""Agents that reply with the question and its nonce, whole or in pieces.

An agent connects again after a loss, to the other process. An agent logs every prompt, so that the checker sees a
prompt that was sent twice.

`python -m lab.faults.agents URL TOKEN NAME` is one such agent, a process that a fault can stop. The process prints
`online SESSION-ID` each time the hub has registered the agent.
"""

import asyncio
import itertools
import os
import random
import sys
from contextlib import suppress
from pathlib import Path

import websockets

from lab.channel_agent import ChannelAgent
from lab.faults.oplog import OpLog
from lab.frames import Json

BACK_AFTER_S = (0.3, 1.5)
PIECES = 3


def echo_of(text: str) -> str:
    """The reply of an agent to a question."""
    return f"echo {text}"


class EchoAgent(ChannelAgent):
    """An agent program. `handle` is set once the agent is published; `online` while it is registered.

    `urls`: the web processes that the agent connects to, in turn. `takes_s`: the longest time of an answer.
    `is_silent`: the agent answers nothing. `connects`, `misses`: how often the hub welcomed it, and did not.
    `prompted`: set once the agent was asked. `bye`: the last frame of that type.
    """

    welcome_within_s = 60.0

    def __init__(
        self, urls: list[str], token: str, log: OpLog, *, name: str = "agent", takes_s: float = 0.05
    ) -> None:
        super().__init__("", token, host="faults", cwd=f"/work/{name}", pid=1)
        self.urls = urls
        self.log = log
        self.name = name
        self.takes_s = takes_s
        self.online, self.prompted = asyncio.Event(), asyncio.Event()
        self.comes_back = True
        self.is_silent = False
        self.connects, self.misses, self.sockets = 0, 0, 0
        self.bye: Json = {}
        self._running: asyncio.Task[None] | None = None

    def start(self) -> None:
        """Connect, and connect again after each loss, until `stop`."""
        self._running = asyncio.get_running_loop().create_task(self._run(), name=self.name)

    async def stop(self) -> None:
        """Disconnect and do not come back."""
        self.comes_back = False
        if self._running is not None:
            self._running.cancel()
            with suppress(asyncio.CancelledError):
                await self._running
        await self.end_tasks()

    @property
    def is_connected(self) -> bool:
        """True if the hub has registered the agent's socket."""
        return self.online.is_set()

    @property
    def is_over(self) -> bool:
        """True if the agent has ended and will not connect again."""
        return self._running is not None and self._running.done()

    def on_prompt(self, prompt: Json) -> None:
        """Log the prompt, then answer it."""
        self.prompted.set()
        nonce, socket = prompt["text"].partition(" ")[0], f"{self.name}/{self.sockets}"
        self.log.write("prompt", agent=self.handle, nonce=nonce, chat_id=prompt["chatId"], socket=socket)
        super().on_prompt(prompt)

    async def answer(self, prompt: Json) -> None:
        """Reply to one prompt after a little while."""
        if self.is_silent:
            return
        await asyncio.sleep(random.uniform(0, self.takes_s))
        chat_id, text = prompt["chatId"], echo_of(prompt["text"])
        if random.random() < 0.5:
            await self.reply(chat_id, text)
            return
        size = len(text) // PIECES + 1
        for start in range(0, len(text), size):
            await self.chunk(chat_id, text[start : start + size])
        await self.chunk(chat_id, "", done=True)

    async def on_frame(self, frame: Json) -> None:
        """Answer pings; keep the last `bye`."""
        await super().on_frame(frame)
        if frame["type"] == "bye":
            self.bye = frame

    def keeps(self, frame: Json) -> bool:
        """Keep only the frames that `connect` waits for, because a run lasts for hours."""
        return bool(frame["type"] == "welcome")

    async def _run(self) -> None:
        for turn in itertools.count():
            url = self.urls[turn % len(self.urls)]
            try:
                self.sockets += 1
                await self.connect(url)
                self.connects += 1
                self.online.set()
                await self.closed.wait()
            except (OSError, websockets.WebSocketException, TimeoutError) as failure:
                self.misses += 1
                self.log.write("miss", agent=self.name, url=url, why=repr(failure)[:200])
            finally:
                self.online.clear()
                self.drop()
                self.cancel_answers()  # a prompt of this socket is not answered on another
            if not self.comes_back:
                return
            await asyncio.sleep(random.uniform(*BACK_AFTER_S))


async def serve(url: str, token: str, name: str) -> None:
    """Run one agent until the process is killed."""
    agent = EchoAgent([url], token, OpLog(Path(os.devnull)), name=name)
    agent.start()
    known = 0
    while True:
        await asyncio.sleep(0.1)
        if agent.connects > known:
            known = agent.connects
            sys.stdout.write(f"online {agent.session_id}\n")
            sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:4]))
