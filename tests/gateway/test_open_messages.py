"""What a connection does with a message whose sending breaks off: a repetition is not delivered twice. No hub."""

import asyncio
import time
from typing import Any, cast

import pytest

from agents.core.ask_starter import AskingUser
from agents.links.channel.requests import ActingFor
from gateway.service.addressing import FrameSender, NewMessage, RecentMessages
from gateway.service.frame_log import FrameLog, begin_note
from gateway.service.message_router import BegunMessage, MessageRouter
from gateway.service.open_messages import OpenMessages
from gateway.service.seat import NO_SESSION
from gateway.wire.errors import FrameRefused, GatewayErrorCode
from gateway.wire.frames import Envelope, Json

WITHIN_S = 10
SENDER = FrameSender(1, "owner", "alpha", 1)
MESSAGE = Envelope(
    type="message", content={"role": "user", "content": "hi"}, metadata={}, id="m-1", agent="beta", extra={}
)


class Router:
    """Begins messages, and fails with each; `hangs`: until it is cancelled."""

    def __init__(self, failure: Exception | None) -> None:
        self.recent = RecentMessages(time.monotonic)
        self.begun: list[Envelope] = []
        self.has_begun = asyncio.Event()
        self._failure = failure

    async def begin(self, key: str, message: NewMessage) -> BegunMessage:
        """See `MessageRouter.begin`."""
        self.begun.append(message.envelope)
        self.has_begun.set()
        if self._failure is not None:
            raise self._failure
        await asyncio.Event().wait()
        raise AssertionError


async def send_twice(router: Router) -> list[Json]:
    """Send a message, break off, and send it again; what was answered."""
    said: list[Json] = []

    async def say(frame: Json) -> None:
        said.append(frame)

    messages = OpenMessages(cast("MessageRouter", router), say)
    behalf = ActingFor(AskingUser(user_id=1, login="owner"), NO_SESSION)

    def start() -> "asyncio.Task[None]":
        note: Any = begin_note(FrameLog(write=lambda rows: None), time.monotonic, 0)
        return asyncio.create_task(messages.take(NewMessage(MESSAGE, behalf, SENDER, 1.0), note))

    async with asyncio.timeout(WITHIN_S):
        first = start()
        await router.has_begun.wait()
        await asyncio.wait([first], timeout=0.01)
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        router.has_begun.clear()
        second = start()
        has_begun = asyncio.create_task(router.has_begun.wait())
        await asyncio.wait([second, has_begun], return_when=asyncio.FIRST_COMPLETED)
        for one in (second, has_begun):
            one.cancel()
        await asyncio.gather(second, has_begun, return_exceptions=True)
    return said


@pytest.mark.django_db
@pytest.mark.parametrize("failure", [None, RuntimeError("its entry could not be added")])
async def test_a_message_that_may_have_been_sent_is_not_sent_again(failure: Exception | None) -> None:
    router = Router(failure)
    said = await send_twice(router)
    assert len(router.begun) == 1
    assert [one["content"]["reason"] for one in said] == ["already_answered"]


@pytest.mark.django_db
async def test_a_message_that_was_refused_is_sent_again() -> None:
    router = Router(FrameRefused(GatewayErrorCode.AGENT_OFFLINE, "offline"))
    said = await send_twice(router)
    assert len(router.begun) == 2
    assert [one["content"]["code"] for one in said] == [3002, 3002]
