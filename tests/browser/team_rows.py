"""A team in a hub's database: agents in every status, letters, sessions, proposals in every state, and frames."""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from accounts.models import Credential, User
from accounts.tokens import mint
from agents.models import Connection, Process, Session
from gateway.models import FrameRecord, Letter, Proposal, SessionLog, TeamAgent, Vote
from gateway.service.seat import GATEWAY_LINK

AGENTS = {
    "steward": ("orchestrator", "online"),
    "alpha": ("triad-member", "online"),
    "beta": ("triad-member", "idle"),
    "charlie": ("triad-member", "busy"),
    "explorer": ("researcher", "error"),
    "historian": ("historical", "offline"),
}
VOTES = {"alpha": "approve", "beta": "reject"}
LONG = "Move the nightly build to the new machines, and keep the old ones for a week in case that it fails again."


def make_team(login: str) -> int:
    """All of it, for one owner; the id of the open proposal."""
    owner, now = User.objects.get(login=login), timezone.now()
    seats = {name: _seat(owner, name, role, status) for name, (role, status) in AGENTS.items()}
    for number in range(3):
        _letter(seats["historian"], "queued" if number else "dead", 1800 * (number + 1))
    for name in ("alpha", "beta"):
        SessionLog.objects.create(
            owner=owner, agent=name, session_id="planning", entries=4, created_at=now, last_entry_at=now
        )
    opened = _propose(owner, LONG, "deliberating", deadline=now + timedelta(minutes=47))
    for voter, vote in VOTES.items():
        Vote.objects.create(proposal=opened, voter=voter, vote=vote, confidence=0.8, reasoning=LONG, voted_at=now)
    Vote.objects.create(proposal=opened, voter="beta", vote="approve", counts=False, voted_at=now)
    for state in ("approved", "rejected", "blocked"):
        _propose(owner, f"Use the linter of last year, {state}", state, deadline=now, decided_at=now)
    for number in range(60):
        is_refused = number % 9 == 4
        FrameRecord.objects.create(
            owner=owner,
            at=now - timedelta(seconds=7 * number),
            source="alpha" if number % 2 else "steward",
            destination="beta" if number % 3 else "*",
            type="message" if number % 3 else "broadcast",
            outcome="refused" if is_refused else "served",
            error_code=3002 if is_refused else 0,
            bytes=180 + 37 * number,
            latency_ms=number % 40,
        )
    return opened.pk


def _seat(owner: User, name: str, role: str, status: str) -> Session:
    is_there = status != "offline"
    TeamAgent.objects.create(owner=owner, name=name, role=role, status=status if is_there else "online")
    session = Session.objects.create(owner=owner, routing_name=name, link=GATEWAY_LINK)
    if is_there:
        credential = mint(owner, Credential.Kind.CHANNEL, name).credential
        process = Process.objects.order_by("-beat_at").first()
        Connection.objects.create(session=session, process=process, credential=credential)
    return session


def _letter(recipient: Session, state: str, size: int) -> None:
    owner = recipient.owner
    Letter.objects.create(
        owner=owner,
        recipient=recipient,
        sender_owner=owner,
        sender="alpha",
        message_id="m",
        envelope="{}",
        bytes=size,
        state=state,
        received_at=timezone.now(),
    )


def _propose(owner: User, text: str, state: str, **fields: Any) -> Proposal:
    return Proposal.objects.create(
        owner=owner,
        key=f"p-{text[:40]}-{state}",
        proposer="steward",
        text=text,
        reasoning="The old machines take three hours.",
        members=["alpha", "beta", "charlie"],
        threshold="simple",
        steward="steward",
        state=state,
        created_at=timezone.now(),
        **fields,
    )
