"""What happens in one process to an ask that waits, while others send it again or too many wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from a2a_bridge.calls import Call, Caller, Waiting
from a2a_bridge.dialects.dialect import Operation
from a2a_bridge.dialects.hub import HUB
from a2a_bridge.requests import Send
from a2a_bridge.sends import take_send
from a2a_bridge.services import Services
from a2a_bridge.tasks.record import Message, Role
from a2a_bridge.tasks.run import TaskRun
from accounts.authn import Identity
from agents.core import line
from agents.core.errors import Busy
from agents.core.line import MOST_WAITING
from agents.core.post import Join
from agents.core.types import Ask, SettledTurn
from agents.transcript.pieces import Part
from hub.wiring import House, build
from kit.async_db import db_call
from tests.contracts.house import COMPLETED, Published, ask, beating, published, user

pytestmark = [pytest.mark.django_db(transaction=True)]
SEND = Send(message=Message("m", Role.USER, (Part(text="what?"),)), question="what?")


@asynccontextmanager
async def at_work() -> AsyncIterator[tuple[House, Published]]:
    """A hub, and an agent with a line that is at work for alice; afterwards nothing waits."""
    house = build()

    def prepare() -> tuple[Published, Ask]:
        beating(house.process_id)
        agent = published(queue_max=3, queue_wait_s=60)
        return agent, ask(agent)

    agent, first = await db_call(prepare)()
    turn = await house.ledger.admit(first)
    yield house, agent
    await house.ledger.settle(turn, COMPLETED)
    await house.dispatcher.drain(0)
    house.ledger.close()


async def call_of(agent: Published, key: str = "") -> Call:
    bob = await db_call(user)("bob")
    identity = Identity(1, "session", "", bob.pk, "bob", is_staff=False, is_stale=False)
    return Call(caller=Caller(identity, agent.ref), dialect=HUB, operation=Operation.SEND, request=SEND, key=key)


async def sent(services: Services, call: Call) -> TaskRun:
    waiting = await take_send(services, call, SEND)
    assert isinstance(waiting, Waiting)
    assert isinstance(waiting.run, TaskRun)
    return waiting.run


async def test_an_ask_that_another_process_joins_keeps_its_place() -> None:
    async with at_work() as (house, agent):
        call = await call_of(agent)
        run = await sent(house.bridge.runner.operations.services, call)
        assert (run.is_in_line, run.outlives_followers) == (True, False)
        await house.take(Join(run.task.chat_id))
        await asyncio.sleep(0.1)
        assert (run.outlives_followers, run.feed is None) == (True, False)


@pytest.mark.parametrize("key", ["", "k"])
async def test_an_ask_that_waits_and_comes_again_is_followed_by_both(key: str) -> None:
    async with at_work() as (house, agent):
        services, call = house.bridge.runner.operations.services, await call_of(agent, key)
        run, same = await sent(services, call), await sent(services, call)
        assert same is run
        assert (run.is_in_line, run.outlives_followers, run.feed) == (True, False, None)


async def test_an_ask_whose_key_comes_again_elsewhere_keeps_its_place() -> None:
    async with at_work() as (house, agent):
        run = await sent(house.bridge.runner.operations.services, await call_of(agent, "k"))
        await house.take(Join(run.task.chat_id, tells=False))
        await asyncio.sleep(0.1)
        assert (run.outlives_followers, run.feed) == (True, None)


async def test_beyond_the_most_that_may_wait_here_an_ask_is_decided_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert MOST_WAITING == 512
    async with at_work() as (house, agent):

        def asks() -> list[Ask]:
            return [replace(ask(agent, name), queues=True) for name in ("bob", "carol")]

        async def settled(_: SettledTurn) -> None:
            return None

        bob, carol = await db_call(asks)()
        monkeypatch.setattr(line, "MOST_WAITING", 1)
        assert (await house.dispatcher.ask(bob, settled)).in_line
        await asyncio.sleep(0)  # it waits from now on
        with pytest.raises(Busy):
            await house.dispatcher.ask(carol, settled)
        assert house.dispatcher.queued == 1
