"""Frames about proposals on their way to the processes that hold the clients they are for."""

from collections.abc import Collection

import msgspec
from django.db import transaction
from msgspec import Struct

from agents.transcript.announcements import SurfaceMessage, send_after_commit
from gateway.models import Proposal
from gateway.service.channels import find_watching
from gateway.service.seats.seats import SeatConnection, load_connected
from gateway.wire.frame_types import proposal_channel
from gateway.wire.frames import Json

SURFACE = "gateway.triad"


class ProposalNews(Struct, frozen=True):
    """A frame about a proposal. Each client that it is for gets it once, also if it is named in several ways.

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

    Their seats are found after it, too: one that is taken at that moment is found, or finds the decision itself.
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


def _make_news(
    proposal: Proposal,
    frame: Json,
    *,
    connections: tuple[int, ...] = (),
    channels: tuple[str, ...] = (),
    agent: str = "",
    proposer: int = 0,
) -> ProposalNews:
    return ProposalNews(
        owner_id=proposal.owner_id,
        proposal_id=proposal.pk,
        type_name=frame["type"],
        frame=msgspec.Raw(msgspec.json.encode(frame)),
        connections=connections,
        channels=channels,
        agent=agent,
        proposer=proposer,
    )


def _send(news: ProposalNews, processes: Collection[str]) -> None:
    body = SurfaceMessage(SURFACE, msgspec.Raw(msgspec.json.encode(news)))
    send_after_commit([(process_id, body) for process_id in processes])
