"""Formats are checked in turns of their caller. For a reply that was not checked, clients do not ask again."""

import asyncio
import threading
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from msgspec import structs

from a2a_bridge.wire.task import State
from hub.limits import REQUESTS
from hub.request_turns import RequestTurns
from kit.asgi import RequestRefused
from openai_api.surface.answers import ChatAnswer
from openai_api.surface.formatted import HeldReply, answer_in_format
from openai_api.surface.forms import ChatWire
from openai_api.wire.errors import NO_RETRY, ModelRefused
from openai_api.wire.formats import ReplyFormat
from openai_api.wire.messages import make_send
from tests.contracts.test_approvals import task_after
from tests.contracts.test_request_turns import stay

BODY = b'{"model": "a/b", "messages": [{"role": "user", "content": "a number"}]}'
FORMAT = ReplyFormat("response_format.json_schema.schema", {"type": "object"})
DONE = structs.replace(task_after(), state=State.COMPLETED)


async def unsent(message: object) -> None:
    raise AssertionError(message)


class Caller:
    """One whose further requests are refused once the line is full."""

    def __init__(self) -> None:
        self.call = partial(RequestTurns().call, 1, stay)
        self.asked: list[str] = []
        self.ended = threading.Event()
        self.chat = ChatAnswer(stay, unsent, ChatWire("https://hub.example"), [])

    async def fill_line(self) -> None:
        self.waiting = [asyncio.create_task(self.call(self.ended.wait, 20)) for _ in range(REQUESTS.most)]
        await asyncio.sleep(0)

    async def ask(self, send: Any, key: str) -> HeldReply:
        self.asked.append(key)
        held = HeldReply(self.chat)
        held.task = DONE
        await self.fill_line()
        return held

    async def answer(self) -> None:
        send = make_send(self.chat.chat.read(BODY), "")
        await answer_in_format(self.chat, self.call, FORMAT, send, "key", self.ask)


@pytest.fixture
def caller() -> Iterator[Caller]:
    found = Caller()
    yield found
    found.ended.set()


async def test_without_a_turn_for_its_schema_nothing_is_asked(caller: Caller) -> None:
    await caller.fill_line()
    with pytest.raises(RequestRefused) as refused:
        await caller.answer()
    assert (refused.value.status, caller.asked) == (429, [])


async def test_without_a_turn_for_its_reply_clients_do_not_ask_again(caller: Caller) -> None:
    with pytest.raises(ModelRefused) as refused:
        await caller.answer()
    assert (refused.value.status, NO_RETRY in refused.value.headers, caller.asked) == (424, True, ["key"])
    assert "was not checked" in str(refused.value)
