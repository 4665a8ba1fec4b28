"""The socket of an agent: prompts that are sent without a coroutine, and their order."""

import asyncio
from typing import Any

import msgspec
import pytest

from accounts.open_requests import UnsignedSockets
from agents.core.errors import NotDelivered
from agents.core.post import LocalPost, PostedPrompt, ReplyMessage
from agents.core.waiting import WaitingTurns
from agents.links.channel.socket import AgentSocket
from agents.links.sockets import SocketLink

HERE = "here"


class Waiting(WaitingTurns):
    """Records the messages of replies."""

    def __init__(self) -> None:
        self.taken: list[ReplyMessage] = []

    def take(self, message: ReplyMessage) -> None:
        self.taken.append(message)


class Wired(AgentSocket):
    """The socket of a registered agent whose frames are recorded. `has_room`: the agent reads."""

    session_id = 1

    def __init__(self) -> None:
        nothing: Any = None
        self.waiting = Waiting()
        link = SocketLink(process_id=HERE, post=LocalPost(), waiting=self.waiting)
        super().__init__(
            link=link, ledger=nothing, requests=nothing, follow_ups=nothing, meter=nothing, process_id=HERE,
            clock=asyncio.get_running_loop().time, unsigned=UnsignedSockets(),
        )  # fmt: skip
        self.has_room = asyncio.Event()
        self.has_room.set()
        self.sent: list[str] = []
        self.base_send = self._send_later
        self.send_now = self._send_at_once

    def prompted(self) -> list[str]:
        """The chat ids of the prompts that were sent."""
        return [msgspec.json.decode(frame)["chatId"] for frame in self.sent]

    def is_open(self, chat_id: str) -> bool:
        """True if the agent may reply to this prompt."""
        return self._prompts.cancel(chat_id)

    def _send_at_once(self, text: bytes) -> bool:
        if self.has_room.is_set():
            self.sent.append(text.decode())
        return self.has_room.is_set()

    async def _send_later(self, message: Any) -> None:
        await self.has_room.wait()
        if message["type"] == "websocket.send":
            self.sent.append(message["text"])


def question(chat_id: str, home: str = HERE) -> PostedPrompt:
    return PostedPrompt(chat_id, 1, home, "ada", "why?", 60.0)


async def test_a_prompt_is_sent_without_a_coroutine() -> None:
    socket = Wired()
    assert socket.prompt_now(question("one"))
    assert socket.prompted() == ["one"]
    assert socket.is_open("one")


async def test_a_prompt_that_cannot_be_sent_at_once_is_not_begun() -> None:
    socket = Wired()
    socket.has_room.clear()
    assert not socket.prompt_now(question("one"))
    socket.send_now = None  # a wrapper of `send`
    assert not socket.prompt_now(question("one"))
    assert not socket.is_open("one")
    assert socket.sent == []


async def test_prompts_keep_their_order_while_the_agent_does_not_read() -> None:
    socket = Wired()
    socket.has_room.clear()
    async with asyncio.TaskGroup() as prompts:
        prompts.create_task(socket.prompt(question("one")))
        prompts.create_task(socket.prompt(question("two")))
        await asyncio.sleep(0)
        socket.has_room.set()
        assert not socket.prompt_now(question("three"))
        prompts.create_task(socket.prompt(question("three")))
    assert socket.prompt_now(question("four"))
    assert socket.prompted() == ["one", "two", "three", "four"]


async def test_a_cancelled_prompt_lets_later_prompts_be_sent_at_once() -> None:
    socket = Wired()
    socket.has_room.clear()
    prompting = asyncio.create_task(socket.prompt(question("one")))
    await asyncio.sleep(0)
    prompting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await prompting
    assert not socket.is_open("one")
    socket.has_room.set()
    assert socket.prompt_now(question("two"))


async def test_a_socket_that_is_over_gets_no_prompt() -> None:
    socket = Wired()
    await socket.close_from_hub(1000)
    assert not socket.prompt_now(question("one"))
    with pytest.raises(NotDelivered):
        await socket.prompt(question("one"))
