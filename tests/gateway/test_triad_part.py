"""The part of a process that brings news of proposals to its clients: who gets what, and once."""

import asyncio
from collections.abc import Coroutine
from typing import Any

import msgspec
import pytest

from accounts.tokens import get_or_create_local_user
from agents.core.post import LocalPost
from agents.models import Process
from gateway.models import Proposal
from gateway.service.pushes import Channels
from gateway.service.triad import ProposalNews, Triad
from gateway.wire.frames import Json
from gateway.wire.protocol import GatewayProtocol
from kit.async_db import db_call
from kit.clock import db_now

pytestmark = pytest.mark.django_db(transaction=True)

DECISION = {"type": "decision", "content": {"proposalId": "p"}}
PROPOSAL = {"type": "proposal", "content": {"proposalId": "p"}}
VOTE = {"type": "vote", "content": {"proposalId": "p"}}


class Listener:
    """A client that keeps what it is sent."""

    def __init__(self) -> None:
        self.protocol = GatewayProtocol(lambda: 0.0, 1000)
        self.got: list[str] = []
        self.is_over = False
        self.tasks: list[asyncio.Task[None]] = []

    def push(self, type_name: str, frame: bytes) -> None:
        assert msgspec.json.decode(frame)["type"] == type_name
        self.got.append(type_name)

    async def send_frame(self, frame: Json) -> None:
        self.got.append(f"said {frame['type']}")

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        self.tasks.append(asyncio.create_task(work, name=name))

    async def settle(self) -> list[str]:
        await asyncio.gather(*self.tasks)
        return self.got


def news_of(owner_id: int, frame: Json, **fields: Any) -> msgspec.Raw:
    raw = msgspec.Raw(msgspec.json.encode(frame))
    news = ProposalNews(owner_id, fields.pop("proposal_id", 7), frame["type"], raw, **fields)
    return msgspec.Raw(msgspec.json.encode(news))


async def make_proposal(owner_id: int, **fields: Any) -> Proposal:
    """A proposal whose deadline is now."""
    now = db_now()
    given = {"owner_id": owner_id, "key": "p", "text": "?", "created_at": now, "deadline": now}
    return await db_call(Proposal.objects.create)(**given, **fields)


@pytest.fixture
def owner() -> int:
    return get_or_create_local_user("owner").pk


@pytest.fixture
def channels() -> Channels:
    Process.objects.create(id="here", host="host", pid=1)
    return Channels("here", LocalPost(), is_alone=True)


async def test_a_client_that_is_addressed_in_several_ways_gets_one_frame(channels: Channels, owner: int) -> None:
    triad, member = Triad("here", channels), Listener()
    for name in ("triad:p", "triad:alias"):
        await channels.subscribe(owner, name, member)
    triad.enter(member, 5, owner, "alpha")
    await member.settle()
    triad.take(news_of(owner, DECISION, connections=(5, 6), channels=("triad:p", "triad:alias")))
    assert await member.settle() == ["decision"]
    await channels.leave(member)
    triad.take(news_of(owner, DECISION, connections=(5,), channels=("triad:p",)))
    assert await member.settle() == ["decision"] * 2
    triad.leave(5)
    triad.take(news_of(owner, DECISION, connections=(5,)))
    assert await member.settle() == ["decision"] * 2


async def test_subscribers_get_votes_of_their_own_team_and_agents(channels: Channels, owner: int) -> None:
    triad, own, narrowed, stranger = Triad("here", channels), Listener(), Listener(), Listener()
    other = await db_call(get_or_create_local_user)("other")
    await channels.subscribe(owner, "triad:p", own)
    await channels.subscribe(owner, "triad:p", narrowed, ("beta",))
    await channels.subscribe(other.pk, "triad:p", stranger)
    triad.take(news_of(owner, VOTE, channels=("triad:p",), agent="alpha"))
    triad.take(news_of(owner, DECISION, channels=("triad:p",)))
    assert (own.got, narrowed.got, stranger.got) == (["vote", "decision"], ["decision"], [])


async def test_a_client_without_a_seat_gets_the_decision_once(channels: Channels, owner: int) -> None:
    triad, operator = Triad("here", channels), Listener()
    await channels.subscribe(owner, "triad:p", operator)
    await triad.await_decision(7, operator)
    triad.take(news_of(owner, VOTE))
    triad.take(news_of(owner, DECISION, channels=("triad:p",)))
    assert await operator.settle() == ["said decision"]


async def test_a_member_is_sent_a_proposal_once(channels: Channels, owner: int) -> None:
    """News of it may cross with the look that a seat has at open proposals when it is taken."""
    triad, member, other = Triad("here", channels), Listener(), Listener()
    made = await make_proposal(owner, proposer="steward", members=["alpha"])
    triad.enter(member, 5, owner, "alpha")
    assert await member.settle() == ["said proposal"]
    news = news_of(owner, PROPOSAL, connections=(5, 6), proposal_id=made.pk)
    triad.take(news)
    triad.enter(other, 6, owner, "alpha")
    triad.take(news)
    assert await other.settle() == ["proposal"]
    assert await member.settle() == ["said proposal"]


async def test_a_decision_waits_for_the_next_seat_when_the_connection_is_over(
    channels: Channels, owner: int
) -> None:
    triad, lost, back = Triad("here", channels), Listener(), Listener()
    decided = {"state": Proposal.State.APPROVED, "decided_at": db_now(), "awaits_decision": True}
    await make_proposal(owner, proposer="alpha", members=["beta"], **decided)
    lost.is_over = True
    triad.enter(lost, 5, owner, "alpha")
    await lost.settle()
    triad.enter(back, 6, owner, "alpha")
    assert await back.settle() == ["said decision"]
    triad.enter(back, 7, owner, "alpha")
    assert await back.settle() == ["said decision"]
