"""Sends proposals, votes and decisions to their recipients, which may be connected to any process."""

import asyncio
from collections.abc import Collection, Coroutine
from dataclasses import dataclass, field
from typing import Any, Protocol
from weakref import WeakValueDictionary

import msgspec
from django.db import transaction
from msgspec import Struct

from agents.transcript.announcements import SurfaceMessage, send_after_commit
from gateway import limits
from gateway.models import Proposal
from gateway.service import proposal_reads
from gateway.service.pushes import Channels, SeatConnection, Subscriber, find_watching, load_connected
from gateway.wire.channels import proposal_channel
from gateway.wire.frames import Json
from gateway.wire.protocol import GatewayProtocol
from kit.async_db import DbCalls
from kit.newest import NewestEntries

SURFACE = "gateway.triad"
CALLS_AT_ONCE = 4  # of all clients of this process


class ProposalNews(Struct, frozen=True):
    """A frame about a proposal.

    Each client gets the news once, also if several of its names are among the recipients.

    `proposal_id`: the row. `connections`: of seats that get it. `channels`: their subscribers get it; of those who
    asked for some agents, only if `agent` is one of them. `proposer`: the connection of the proposer's seat, which
    looks for its decisions itself; 0: it is none, or not there.
    """

    owner_id: int
    proposal_id: int
    type_name: str
    frame: msgspec.Raw
    connections: tuple[int, ...] = ()
    channels: tuple[str, ...] = ()
    agent: str = ""
    proposer: int = 0


def send_to_seats(proposal: Proposal, frame: Json, seats: Collection[SeatConnection]) -> None:
    """Send a proposal to seats after the commit."""
    _send(
        _make_news(proposal, frame, connections=tuple(one.connection_id for one in seats)),
        {one.process_id for one in seats},
    )


def send_to_subscribers(proposal: Proposal, frame: Json, agent: str) -> None:
    """Send a vote to the subscribers of the proposal's channel after the commit."""
    _send(
        _make_news(proposal, frame, channels=_channels_of(proposal), agent=agent),
        set(find_watching(proposal.owner_id)),
    )


def send_to_steward(proposal: Proposal, frame: Json) -> None:
    """Send a proposal to the agent that breaks its tie, after the commit: see `send_decision`."""
    transaction.on_commit(
        lambda: send_to_seats(proposal, frame, load_connected(proposal.owner_id, [proposal.steward]))
    )


def send_decision(proposal: Proposal, frame: Json) -> None:
    """Send a decision to proposer, members, steward and subscribers after the commit.

    The seats are looked up after the decision: a seat that is taken at that moment is found, or finds the decision
    itself.
    """
    transaction.on_commit(lambda: _send_decision(proposal, frame))


def _send_decision(proposal: Proposal, frame: Json) -> None:
    named = {*proposal.members, proposal.steward, proposal.proposer} - {""}
    seats = {one.name: one for one in load_connected(proposal.owner_id, named)}
    proposer = seats.get(proposal.proposer) if proposal.awaits_decision else None
    if proposal.proposer not in {*proposal.members, proposal.steward}:
        seats.pop(proposal.proposer, None)
    news = _make_news(
        proposal,
        frame,
        connections=tuple(one.connection_id for one in seats.values()),
        channels=_channels_of(proposal),
        proposer=proposer.connection_id if proposer else 0,
    )
    processes = {one.process_id for one in seats.values()} | set(find_watching(proposal.owner_id))
    processes |= {proposal.home, proposer.process_id if proposer else ""} - {""}
    _send(news, processes)


def _channels_of(proposal: Proposal) -> tuple[str, ...]:
    return tuple(proposal_channel(name) for name in (proposal.key, proposal.alias) if name)


def _make_news(proposal: Proposal, frame: Json, **recipients: Any) -> ProposalNews:
    raw = msgspec.Raw(msgspec.json.encode(frame))
    return ProposalNews(proposal.owner_id, proposal.pk, frame["type"], raw, **recipients)


def _send(news: ProposalNews, processes: Collection[str]) -> None:
    body = SurfaceMessage(SURFACE, msgspec.Raw(msgspec.json.encode(news)))
    send_after_commit([(process_id, body) for process_id in processes])


class Participant(Subscriber, Protocol):
    """The interface of a client to the triad, see `gateway.service.client.TeamClient`."""

    protocol: GatewayProtocol

    @property
    def is_over(self) -> bool:
        """True if it is sent nothing any more."""

    async def send_frame(self, frame: Json) -> None:
        """Send a frame."""

    def start(self, work: Coroutine[Any, Any, None], name: str) -> None:
        """Go on with something while further frames are read."""


@dataclass(frozen=True, slots=True)
class SeatHere:
    """A seat of this process. `sending`: while its decisions are sent, so that none is sent twice.

    `proposed`: rows of the latest proposals that it was sent.
    """

    client: Participant
    owner_id: int
    name: str
    sending: asyncio.Lock = field(default_factory=asyncio.Lock)
    proposed: NewestEntries[int, None] = field(default_factory=lambda: NewestEntries(limits.OPEN_PROPOSALS.most))

    def note_proposal(self, proposal_id: int) -> bool:
        """Note that a proposal is sent to the seat; False: the seat has had it before."""
        if proposal_id in self.proposed:
            return False
        self.proposed[proposal_id] = None
        return True


class Triad:
    """Knows the seats of this process, and the clients without a seat that await decisions.

    `call`: reads or writes rows of proposals.
    """

    def __init__(self, process_id: str, channels: Channels) -> None:
        self.process_id = process_id
        self._channels = channels
        self._seats: dict[int, SeatHere] = {}  # by the id of the connection
        self._awaiting: WeakValueDictionary[int, Participant] = WeakValueDictionary()  # by the row of the proposal
        self.call = DbCalls(CALLS_AT_ONCE)

    def enter(self, client: Participant, connection_id: int, owner_id: int, name: str) -> None:
        """Add the seat of an agent, and send it the proposals it may vote on and the decisions on its own
        proposals.
        """
        self._seats[connection_id] = seat = SeatHere(client, owner_id, name)
        client.start(self._catch_up(seat), "proposals")

    def leave(self, connection_id: int) -> None:
        """Remove the seat of an agent."""
        self._seats.pop(connection_id, None)

    async def await_decision(self, proposal_id: int, client: Participant) -> None:
        """Send a client without a seat the decision once it is there."""
        self._awaiting[proposal_id] = client
        # The decision may have been made before the line above, so that this process missed the news of it.
        frame = await self.call(proposal_reads.find_decision, proposal_id)
        if frame is not None and self._awaiting.pop(proposal_id, None) is client:
            await client.send_frame(frame)

    def take(self, body: msgspec.Raw) -> None:
        """News from another process, or from a thread of this one."""
        news = msgspec.json.decode(body, type=ProposalNews)
        if news.type_name == "proposal":
            self._take_proposal(news)
            return
        told: set[Subscriber] = set()
        if (proposer := self._seats.get(news.proposer)) is not None:
            told.add(proposer.client)
            proposer.client.start(self._send_decisions(proposer), "decisions")
        if news.type_name == "decision" and (waiting := self._awaiting.pop(news.proposal_id, None)) is not None:
            told.add(waiting)
            frame: Json = msgspec.json.decode(news.frame)
            waiting.start(waiting.send_frame(frame), "decision")
        for client in self._find_clients(news):
            if client not in told:
                told.add(client)
                client.push(news.type_name, bytes(news.frame))

    def _take_proposal(self, news: ProposalNews) -> None:
        for connection_id in news.connections:
            seat = self._seats.get(connection_id)
            if seat is not None and seat.note_proposal(news.proposal_id):
                seat.client.push(news.type_name, bytes(news.frame))

    def _find_clients(self, news: ProposalNews) -> list[Subscriber]:
        found: list[Subscriber] = [self._seats[pk].client for pk in news.connections if pk in self._seats]
        for channel in news.channels:
            found += self._channels.find_subscribers(news.owner_id, channel, news.agent)
        return found

    async def _catch_up(self, seat: SeatHere) -> None:
        if not await self.call(proposal_reads.is_any_awaited, seat.owner_id):
            return
        await self._send_decisions(seat)
        for one in await self.call(proposal_reads.load_open, seat.owner_id, seat.name):
            if seat.client.protocol.may_push("proposal") and seat.note_proposal(one.proposal_id):
                await seat.client.send_frame(one.frame)

    async def _send_decisions(self, seat: SeatHere) -> None:
        """Send the proposer its decisions, and record that afterwards: a crash sends a decision twice, but loses
        none.
        """
        async with seat.sending:
            awaited = await self.call(proposal_reads.load_decisions, seat.owner_id, seat.name)
            for one in awaited:
                await seat.client.send_frame(one.frame)
            # A frame for a closed connection is for the next connection that takes the seat.
            if awaited and not seat.client.is_over:
                await self.call(proposal_reads.end_waits, [one.proposal_id for one in awaited])
