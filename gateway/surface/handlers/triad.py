"""Proposals and votes (section 12)."""

import msgspec

from gateway.models import Proposal, Vote
from gateway.service import proposal_reads, proposals
from gateway.service.client import TeamClient
from gateway.service.proposal_reads import acknowledge, carry
from gateway.surface.handlers.team import get_team
from gateway.wire.errors import FrameRefused, bad_content, missing
from gateway.wire.frame_types import is_id
from gateway.wire.frames import Envelope, Json, new_id

MAX_TEXT_BYTES = 16_384
LISTED = 50
MAX_LISTED = 100


async def take_proposal(client: TeamClient, envelope: Envelope) -> None:
    """Store a proposal, and acknowledge it with its state."""
    owner_id, content, triad = get_team(client, envelope), envelope.content, client.gateway.triad
    deadline = content.get("deadline")
    deadline_ms = None if deadline is None else round(deadline)
    key = envelope.correlation_id or envelope.id or new_id()
    given = Proposal(
        key=key,
        alias=envelope.id if envelope.id != key else "",
        proposer=client.sender.name,
        awaits_decision=client.seat is not None,
        home="" if client.seat is not None else triad.process_id,
        text=_read_text(content, "proposal"),
        reasoning=_read_text(content, "reasoning"),
        category=content.get("category", ""),
        carried=carry(envelope),
    )
    if len(msgspec.json.encode(given.carried)) > MAX_TEXT_BYTES:
        raise _too_large("content")
    proposal = await triad.call(proposals.propose, owner_id, given, deadline_ms)
    await client.reply(envelope, "response", {"result": acknowledge(proposal)})
    if client.seat is None:
        await triad.await_decision(proposal.pk, client)


async def take_vote(client: TeamClient, envelope: Envelope) -> None:
    """Count a vote, and acknowledge it with the state of the proposal."""
    owner_id, content = get_team(client, envelope), envelope.content
    names = tuple(filter(None, dict.fromkeys((content.get("proposalId", ""), envelope.correlation_id))))
    if not names:
        field = "content.proposalId"
        raise missing(f"{field} is missing", field=field)
    given = Vote(
        voter=client.seat_name,
        vote=content["vote"],
        reasoning=_read_text(content, "reasoning"),
        confidence=content.get("confidence"),
    )
    proposal = await client.gateway.triad.call(proposals.cast_vote, owner_id, names, given)
    await client.reply(envelope, "response", {"result": acknowledge(proposal) | {"vote": given.vote}})


async def get_proposal(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """A proposal with its votes. `proposalId`: one of its ids."""
    owner_id = get_team(client, envelope)
    name = params.get("proposalId")
    if name is None:
        raise missing("proposalId is missing", field="content.params.proposalId")
    if not isinstance(name, str) or not is_id(name):
        raise _bad_parameter("proposalId", "want the id of a proposal")
    return {"proposal": await client.gateway.triad.call(proposal_reads.show_one, owner_id, name)}


async def list_proposals(client: TeamClient, envelope: Envelope, params: Json) -> Json:
    """The latest proposals. `state`: only those in it; `limit`: at most so many."""
    owner_id = get_team(client, envelope)
    state, limit = params.get("state", ""), params.get("limit", LISTED)
    if state not in ("", *Proposal.State.values):
        raise _bad_parameter("state", f"want one of {', '.join(Proposal.State.values)}")
    if not isinstance(limit, int) or isinstance(limit, bool) or not 1 <= limit <= MAX_LISTED:
        raise _bad_parameter("limit", f"want a number from 1 to {MAX_LISTED}")
    return {"proposals": await client.gateway.triad.call(proposal_reads.show_latest, owner_id, state, limit)}


def _read_text(content: Json, name: str) -> str:
    """A text of a frame that is stored.

    Raises:
        FrameRefused: 2005 `too_large`.
    """
    text: str = content.get(name, "")
    if len(text.encode()) > MAX_TEXT_BYTES:
        raise _too_large(f"content.{name}")
    return text


def _too_large(field: str) -> FrameRefused:
    return bad_content(f"{field}: want at most {MAX_TEXT_BYTES} bytes", field=field, reason="too_large")


def _bad_parameter(name: str, wanted: str) -> FrameRefused:
    return bad_content(f"{name}: {wanted}", field=f"content.params.{name}")
