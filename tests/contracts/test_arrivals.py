"""Agents of one owner that connect at the same time: which go in one transaction, and when."""

import asyncio
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest
from django.db import IntegrityError

from agents.core.post import LocalPost
from agents.core.registration import AgentRegistration, MayNotConnect
from agents.core.waiting import WaitingTurns
from agents.links.channel.arrivals import Arrivals, Register
from agents.links.channel.driving import RegisteredAgent, register_agents
from agents.links.sockets import SocketLink
from agents.models import Connection
from kit.account_pace import STORED, AccountPaces
from kit.async_db import db_call
from tests.contracts.rows import HOME, live_process
from tests.contracts.test_lifecycle import coming, registered

REGISTER = partial(register_agents, process_id=HOME)

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.ledger]


@pytest.fixture(autouse=True)
def _home() -> None:
    live_process()


def make_arrivals(bytes_a_second: int = 0, register: Register = REGISTER) -> Arrivals:
    def never(_: object) -> None:
        raise AssertionError

    link = SocketLink(process_id=HOME, post=LocalPost(), waiting=WaitingTurns(never))
    return Arrivals(link, AccountPaces(bytes_a_second), register)


async def test_agents_of_one_owner_that_come_at_once_go_in_few_transactions() -> None:
    arrivals = make_arrivals()
    registrations = await db_call(lambda: [coming() for _ in range(13)])()
    gone = {5, 6}
    came = (arrivals.register(one, partial(gone.__contains__, at)) for at, one in enumerate(registrations))
    arrived = await asyncio.gather(*came)
    assert {number for number, one in enumerate(arrived) if one is None} == gone
    times = await db_call(lambda: Counter(Connection.objects.values_list("connected_at", flat=True)))()
    assert sorted(times.values()) == [1, 10]


async def test_agents_beyond_the_pace_of_their_owner_wait_until_several_go_together() -> None:
    batches: list[int] = []

    def refuse(some: Sequence[AgentRegistration]) -> list[Exception]:
        batches.append(len(some))  # at once: while a slow transaction goes on, the pace allows further agents
        return [MayNotConnect("busy", "later") for _ in some]

    arrivals = make_arrivals(10 * STORED, refuse)
    registrations = await db_call(lambda: [coming() for _ in range(20)])()
    arriving = (arrivals.register(one, lambda: False) for one in registrations)
    refused = await asyncio.gather(*arriving, return_exceptions=True)
    assert {type(one) for one in refused} == {MayNotConnect}
    assert sum(batches) == 20
    assert len(batches) <= 7  # ten at once, one, and then two or three in each quarter of a second


async def test_a_new_session_counts_for_more_than_one_that_comes_back() -> None:
    arrivals = make_arrivals(3 * STORED)
    known = await db_call(registered)()
    back, new = await db_call(coming)(known.public_id), await db_call(coming)()
    pace = arrivals.paces.of_connections(back.user_id)
    await arrivals.register(back, lambda: False)
    assert not pace.is_behind
    await arrivals.register(new, lambda: False)
    assert pace.is_behind


async def test_a_session_that_comes_twice_at_once_is_taken_over_by_the_later_one() -> None:
    arrivals = make_arrivals()
    known = await db_call(registered)()
    same = await db_call(coming)(known.public_id)
    came = await asyncio.gather(*(arrivals.register(same, lambda: False) for _ in range(3)))
    found = [one.registered for one in came if one is not None]
    evicted = [one.evicted.connection_id for one in found if one.evicted is not None]
    assert evicted == [known.connection_id, *(one.connection_id for one in found[:-1])]
    assert len(evicted) == 3


async def test_an_agent_that_cannot_be_registered_leaves_the_line_to_others() -> None:
    arrivals = make_arrivals()
    good = await db_call(coming)()
    bad = replace(good, credential_id=0)
    came = (arrivals.register(one, lambda: False) for one in (bad, good, bad, good))
    failed, *others = await asyncio.gather(*came, return_exceptions=True)
    assert isinstance(failed, IntegrityError)
    assert [type(one) for one in others] == [RegisteredAgent, IntegrityError, RegisteredAgent]
    assert await db_call(Connection.objects.count)() == 2
