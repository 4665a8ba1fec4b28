"""An ask that waits in one process, while other requests send it again or too many asks wait."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from msgspec.structs import replace

from a2a_bridge.service.calls import AgentCaller, AwaitedAnswer, Call
from a2a_bridge.service.run import TaskRun
from a2a_bridge.service.sends import take_send
from a2a_bridge.service.services import Services
from a2a_bridge.wire.dialects.dialect import Operation
from a2a_bridge.wire.dialects.hub import HUB
from a2a_bridge.wire.requests import Send
from a2a_bridge.wire.task import Message, Role
from accounts.authn import Identity
from agents.core import ask_queue
from agents.core.ask_queue import MAX_QUEUED
from agents.core.errors import Busy
from agents.core.post import JoinTurn
from agents.core.types import Ask
from agents.core.waiting import RunningTurn
from agents.transcript.pieces import Part
from hub.wiring import HubServices
from kit.async_db import db_call
from lab.waiting import eventually
from tests.contracts.rows import COMPLETED, Published, ask, live_process, published, settling, user

pytestmark = [pytest.mark.django_db(transaction=True)]
SEND = Send(message=Message("m", Role.USER, (Part(text="what?"),)), question="what?")


@asynccontextmanager
async def busy_agent() -> AsyncIterator[tuple[HubServices, Published]]:
    """A hub, and an agent with a line that is at work for alice; afterwards nothing waits."""
    hub_services = HubServices()

    def prepare() -> tuple[Published, Ask]:
        live_process(hub_services.process_id)
        agent = published(queue_max=3, queue_wait_s=60)
        return agent, ask(agent)

    agent, first = await db_call(prepare)()
    turn = await hub_services.ledger.admit(first)
    yield hub_services, agent
    await settling(hub_services.ledger, turn, COMPLETED)
    await hub_services.dispatcher.drain(0)
    hub_services.ledger.close()


async def call_of(agent: Published, key: str = "") -> Call:
    bob = await db_call(user)("bob")
    identity = Identity(1, "session", "", bob.pk, "bob", is_staff=False, is_stale=False)
    return Call(
        caller=AgentCaller(identity, agent.ref), dialect=HUB, operation=Operation.SEND, request=SEND, key=key
    )


async def sent(services: Services, call: Call) -> TaskRun:
    waiting = await take_send(services, call, SEND)
    assert isinstance(waiting, AwaitedAnswer)
    assert isinstance(waiting.run, TaskRun)
    return waiting.run


async def test_an_ask_that_another_process_joins_keeps_its_place() -> None:
    async with busy_agent() as (hub_services, agent):
        call = await call_of(agent)
        run = await sent(hub_services.bridge.runner.operations.services, call)
        assert (run.is_admitted, run.outlives_followers) == (False, False)
        await hub_services.take(JoinTurn(run.task.chat_id))

        async def is_followed() -> bool:
            return run.feed is not None

        await eventually(is_followed, "the other process can follow it")
        assert run.outlives_followers


@pytest.mark.parametrize("key", ["", "k"])
async def test_an_ask_that_waits_and_comes_again_is_followed_by_both(key: str) -> None:
    async with busy_agent() as (hub_services, agent):
        services, call = hub_services.bridge.runner.operations.services, await call_of(agent, key)
        run, same = await sent(services, call), await sent(services, call)
        assert same is run
        assert (run.is_admitted, run.outlives_followers, run.feed) == (False, False, None)


async def test_an_ask_whose_key_comes_again_elsewhere_keeps_its_place() -> None:
    async with busy_agent() as (hub_services, agent):
        run = await sent(hub_services.bridge.runner.operations.services, await call_of(agent, "k"))
        await hub_services.take(JoinTurn(run.task.chat_id, tells=False))

        async def is_kept() -> bool:
            return run.outlives_followers

        await eventually(is_kept, "it keeps its place")
        assert run.feed is None


async def test_beyond_the_most_that_may_wait_here_an_ask_is_decided_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert MAX_QUEUED == 512
    async with busy_agent() as (hub_services, agent):

        def asks() -> list[Ask]:
            return [replace(ask(agent, name), queues=True) for name in ("bob", "carol")]

        bob, carol = await db_call(asks)()
        monkeypatch.setattr(ask_queue, "MAX_QUEUED", 1)
        assert not (await hub_services.dispatcher.ask(RunningTurn(bob))).is_admitted
        await asyncio.sleep(0)  # it waits from now on
        with pytest.raises(Busy):
            await hub_services.dispatcher.ask(RunningTurn(carol))
        assert hub_services.dispatcher.queued == 1
