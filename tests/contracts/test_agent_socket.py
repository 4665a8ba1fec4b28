"""The socket of an agent: prompts that are sent, and replies that are read, without a coroutine."""

import asyncio
from functools import partial
from typing import Any

import msgspec
import pytest

from accounts.open_requests import UnsignedSockets
from agents.core.errors import NotDelivered
from agents.core.post import Final, LocalPost, PostedChunk, PostedPrompt, ReplyMessage
from agents.core.registration import Registered
from agents.core.waiting import WaitingTurns
from agents.links.channel.arrivals import Arrivals
from agents.links.channel.driving import register_agents
from agents.links.channel.socket import AgentSocket
from agents.links.sockets import SocketLink
from agents.models.choices import TurnFailure
from agents.transcript.pieces import MAX_PIECES, Usage
from kit.account_pace import AccountPaces
from lab import frames

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
            arrivals=Arrivals(link, AccountPaces(0), partial(register_agents, process_id=HERE)),
        )  # fmt: skip
        self.has_room = asyncio.Event()
        self.has_room.set()
        self.sent: list[str] = []
        self.base_send = self._send_later
        self.send_now = self._send_at_once

    def register(self) -> None:
        """Let the hub read other frames than the first."""
        self._registered = Registered(
            connection_id=1, session_id=1, public_id="s", routing_name="agent", is_new=True, evicted=None
        )

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


def encoded(frame: frames.Json) -> bytes:
    return msgspec.json.encode(frame)


async def test_a_reply_is_taken_without_a_coroutine() -> None:
    socket = Wired()
    for chat_id in ("one", "two"):
        assert socket.prompt_now(question(chat_id))
    assert socket.receive_now(encoded(frames.reply("one", "so: ü", usage={"inputTokens": 7})))
    assert socket.receive_now(encoded(frames.chunk("two", "a")))
    assert socket.receive_now(encoded(frames.chunk("two", "b", done=True)))
    assert socket.waiting.taken == [
        Final("one", 0, "so: ü", usage=Usage(7, None, None)),
        PostedChunk("two", 0, "a"),
        PostedChunk("two", 1, "b"),
        Final("two", 2),
    ]
    assert not socket.is_open("one")
    assert not socket.is_open("two")


async def test_what_has_to_wait_or_to_be_refused_is_not_taken_at_once() -> None:
    socket = Wired()
    assert socket.prompt_now(question("here"))
    assert socket.prompt_now(question("far", home="another process"))
    for frame in (
        frames.reply("far", "for another process"),
        frames.reply("unknown", "no such prompt"),
        frames.reply("here", "a\0"),
        frames.chunk("here", "x" * 65_537, done=True),
        frames.chunk("here", ""),
        frames.chat_event("task_status", chatId="here", state="completed"),
        frames.chat_event("thought", chatId="here", text="stored"),
        frames.register(session_id=None),
    ):
        assert not socket.receive_now(encoded(frame)), frame
    assert socket.waiting.taken == []
    assert socket.is_open("here")


async def test_a_reply_that_is_too_large_is_refused_once() -> None:
    socket = Wired()
    assert socket.prompt_now(question("one"))
    for _ in range(MAX_PIECES):
        assert socket.receive_now(encoded(frames.chunk("one", "a")))
    last = encoded(frames.chunk("one", "b"))
    assert not socket.receive_now(last)
    socket.register()
    await socket.receive(last.decode())
    assert [one for one in socket.waiting.taken if isinstance(one, Final)] == [
        Final("one", MAX_PIECES, reason=TurnFailure.REPLY_TOO_LARGE)
    ]
    assert not socket.receive_now(last)  # the agent goes on, and is ignored
    assert msgspec.json.decode(socket.sent[-1])["code"] == "reply_too_large"


async def test_a_socket_that_is_over_takes_no_reply() -> None:
    socket = Wired()
    assert socket.prompt_now(question("one"))
    await socket.close_from_hub(1000)
    assert not socket.receive_now(encoded(frames.reply("one", "late")))
    assert [one.reason for one in socket.waiting.taken if isinstance(one, Final)] == [TurnFailure.CHANNEL_LOST]
