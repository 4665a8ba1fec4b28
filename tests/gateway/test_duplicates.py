"""Messages that are sent again: the memory of those sent lately, and sendings that broke off. No hub."""

import asyncio
import time
from typing import Any, cast

import pytest

from agents.core.ask_starter import AskingUser
from agents.links.channel.driving import ActingFor
from gateway.service import open_messages
from gateway.service.frame_log import FrameLog, begin_note
from gateway.service.message_router import FollowReceipts, MessageRouter, SentMessage
from gateway.service.messages import FrameSender, NewMessage
from gateway.service.open_messages import MessageIdentity, OpenMessages, RecentMessages, identity_of
from gateway.service.seat import NO_SESSION
from gateway.wire.errors import FrameRefused, GatewayErrorCode
from gateway.wire.frames import Envelope, Json

WITHIN_S = 10
SENDER = FrameSender(1, "owner", "alpha", 1)
MESSAGE = Envelope(
    type="message", content={"role": "user", "content": "hi"}, metadata={}, id="m-1", agent="beta", extra={}
)


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def message(
    number: int, text: str = "hi", agent: str = "beta", *, seat: str = "alpha", has_id: bool = True
) -> MessageIdentity:
    content = {"role": "user", "content": text}
    frame_id = f"m-{number}" if has_id else ""
    envelope = Envelope(type="message", content=content, metadata={}, id=frame_id, agent=agent, extra={})
    return identity_of(envelope, "owner", seat)


def answer(text: str) -> Json:
    return {"type": "message", "content": text, "metadata": {"correlationId": "c-1", "parentId": "m-1"}}


def test_the_same_id_recipient_and_content_of_a_sender_is_a_repetition_for_five_minutes() -> None:
    clock = Clock()
    recent = RecentMessages(clock)
    first = recent.add(message(1))
    assert recent.find(message(1)) is first
    assert recent.find(message(1, seat="gamma")) is None
    assert recent.find(message(1, "other")) is None
    assert recent.find(message(1, agent="gamma")) is None
    clock.now = open_messages.KEPT_S + 1
    assert recent.find(message(1)) is None


def test_answers_are_repeated_with_the_id_of_who_asks_again() -> None:
    recent = RecentMessages(Clock())
    first = recent.add(message(1))
    recent.keep(first, answer("so"))
    (again,) = first.answers_to("c-2")
    assert (again["content"], again["metadata"]) == ("so", {"correlationId": "c-2", "parentId": "m-1"})


def test_a_sender_fills_only_its_own_part_of_a_bounded_memory() -> None:
    recent = RecentMessages(Clock())
    quiet = recent.add(message(1, seat="quiet"))
    for number in range(open_messages.MAX_OF_SENDER + 1):
        recent.add(message(number))
    assert recent.find(message(0)) is None
    assert recent.find(message(1)) is not None
    assert recent.find(message(1, seat="quiet")) is quiet
    for sender in range(open_messages.MOST // open_messages.MAX_OF_SENDER + 1):
        for number in range(open_messages.MAX_OF_SENDER):
            recent.add(message(number, seat=f"s-{sender}"))
    assert recent.find(message(1, seat="quiet")) is None


def test_an_answer_without_room_is_not_kept_and_an_error_says_so() -> None:
    recent = RecentMessages(Clock())
    first = recent.add(message(1))
    recent.keep(first, answer("x" * (open_messages.MAX_BYTES - 200)))
    second = recent.add(message(2))
    recent.keep(second, answer("y" * 400))
    (error,) = second.answers_to("c-3")
    assert (error["content"]["reason"], error["metadata"]["correlationId"]) == ("already_answered", "c-3")


def test_a_message_that_was_not_sent_may_be_sent_again() -> None:
    recent = RecentMessages(Clock())
    first = recent.add(message(1))
    recent.keep(first, answer("x" * (open_messages.MAX_BYTES - 200)))
    recent.drop(first)
    assert recent.find(message(1)) is None
    again = recent.add(message(1))
    recent.drop(first)
    assert recent.find(message(1)) is again
    recent.keep(again, answer("y" * 400))
    assert len(again.answers_to("c-4")[0]["content"]) == 400


def test_answers_to_messages_without_an_id_take_no_room() -> None:
    recent = RecentMessages(Clock())
    without = message(1, has_id=False)
    recent.keep(recent.add(without), answer("x" * (open_messages.MAX_BYTES - 200)))
    first = recent.add(message(1))
    recent.keep(first, answer("y" * 400))
    assert len(first.answers_to("c-5")[0]["content"]) == 400


class Router:
    """Begins messages, and fails with each; `hangs`: until it is cancelled."""

    def __init__(self, failure: Exception | None) -> None:
        self.recent = RecentMessages(time.monotonic)
        self.begun: list[Envelope] = []
        self.has_begun = asyncio.Event()
        self._failure = failure

    async def send(self, message: NewMessage, key: str, follow: FollowReceipts | None) -> SentMessage:
        """See `MessageRouter.send`."""
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

    messages = OpenMessages(cast("MessageRouter", router), router.recent, say)
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
