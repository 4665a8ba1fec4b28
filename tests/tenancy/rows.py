"""Two tenants' worldly goods, as rows; run as a program of its own against a hub's database.

Each text in here, but those of stan, carries a canary that names its readers: `canary-viewer` every user whom the
session is shared with, `canary-approver` approvers, `canary-guest` whom the limited agent answers, `canary-owner`
the owner alone.
"""

import hashlib
import json
import sys
from datetime import timedelta
from typing import Any

import django

django.setup()

from django.db import transaction  # noqa: E402
from django.utils import timezone  # noqa: E402

from a2a_bridge.models import AnswerShare  # noqa: E402
from accounts.models import Credential, User  # noqa: E402
from accounts.tokens import TokenLimits, get_or_create_local_user, mint  # noqa: E402
from agents.models import (  # noqa: E402
    Agent,
    AgentGrant,
    Blob,
    CallerBlock,
    Event,
    FailureGroup,
    File,
    OpMessage,
    PermissionRequest,
    Session,
    Share,
    TokenUsage,
    Turn,
)
from agnt.models import Booking, Breaker, Cancellation, Interaction, Invoice, KeyUsage, Network, UsageEvent, Venue  # noqa: E402
from agnt.service.keys import mint_key  # noqa: E402
from gateway.models import (  # noqa: E402
    EnvelopeKey,
    FrameRecord,
    Letter,
    Proposal,
    TeamAgent,
    Vote,
)
from tests.native.rows import make_client_grant  # noqa: E402
from tests.tenancy.callers import LIMITED  # noqa: E402
from tests.tenancy.further_rows import further_rows, stranger_tokens, surface_tokens  # noqa: E402
from tests.tenancy.rights import EVERYTHING, FURTHER, WEBHOOK  # noqa: E402
from webhooks.models import Delivery, Subscription  # noqa: E402
from webhooks.service.sending import seal_secret  # noqa: E402
from webhooks.wire import new_signing_secret  # noqa: E402

Kind = Credential.Kind
SHAREES = {"vera": "viewer", "pia": "prompter", "anna": "approver", "blake": "prompter", "sue": "approver"}
LATER = timedelta(days=1)
Names = dict[str, Any]


def canary(owner: User, who: str) -> str:
    """A word that only they may read."""
    return f"{'canary' if owner.login in ('olga', 'gus') else 'mine'}-{who}"


def make_users() -> dict[str, str]:
    """The tokens of all callers, by caller."""
    users = {
        name: get_or_create_local_user(name) for name in ("olga", "gus", "stan", "gwen", "root", "zoe", *SHAREES)
    }
    CallerBlock.objects.create(owner=users["olga"], caller=users["blake"])
    for user in users.values():  # with the owner's number, by which tables.py tells whose rows of networks are
        service = User.objects.create(login=f"agnt-{user.login}", is_service=True)
        Network.objects.create(pk=user.pk, owner=user, service_user=service)
    User.objects.filter(login="root").update(is_staff=True)
    tokens = {name: mint(user, Kind.SESSION, canary(user, "owner")).token for name, user in users.items()}
    tokens["olga app"] = mint(users["olga"], Kind.APP, "canary-owner").token
    for caller in LIMITED.values():
        limits = TokenLimits((caller.scope,) if caller.scope else (), caller.only_agent)
        user = users[caller.token.partition(" ")[0]]
        tokens[caller.token] = mint(user, Kind.APP, canary(user, "owner"), limits=limits).token
    for name, user in users.items():
        tokens[f"{name} channel"] = mint(user, Kind.CHANNEL, canary(user, "owner")).token
    for name, fields in {
        "revoked": {"revoked_at": timezone.now()},
        "expired": {"expires_at": timezone.now()},
    }.items():
        minted = mint(users["olga"], Kind.SESSION, name)
        Credential.objects.filter(pk=minted.credential.pk).update(**fields)
        tokens[name] = minted.token
    return tokens


def owner_rows(owner: User, name: str, has: str) -> Names:
    """A session with everything in it, and its owner's tokens, by the names in addresses. `has`: what else."""
    channel = mint(owner, Kind.CHANNEL, canary(owner, "owner")).credential
    last_came_with = Credential.objects.filter(user=owner, kind=Kind.CHANNEL).earliest("pk")
    session = Session.objects.create(
        owner=owner, routing_name=name, cwd="/" + canary(owner, "viewer"), credential=last_came_with
    )
    agent = _agent(session, f"pub-{name}")
    spare = Session.objects.create(owner=owner, routing_name=f"spare-{name}", cwd="/" + canary(owner, "owner"))
    names = {"public_id": str(session.public_id), "spare_id": str(spare.public_id), "agent_id": agent.pk}
    names |= {"owner": owner.login, "slug": agent.slug, "peer": f"{owner.login}/{session.routing_name}"}
    names |= {"token_id": channel.pk, "credential_id": channel.pk, "login": "blake", **_transcript(session, agent)}
    ended = mint(owner, Kind.SESSION, canary(owner, "owner")).credential
    names |= {"client_grant_id": make_client_grant(owner, app_name=canary(owner, "owner")).pk}
    names |= {"prefix": ended.digest[:16], "desktop": "d1", "metric": "events.total", "kind": "budget"}
    names |= {"given": "v1", "has": has}
    key = EnvelopeKey.objects.create(
        owner=owner, key_id=f"key-{session.pk}", name=canary(owner, "owner"), secret=""
    )
    names |= {"key_id": key.key_id}
    names |= _team(owner, f"seat-{name}")
    names |= {"share_id": _shared_answer(owner, agent, name).pk}
    names |= _network(owner, f"venue-{name}")
    names |= _webhook(owner) if WEBHOOK in has else {}
    return names | (further_rows(owner, agent, name, canary(owner, "owner")) if FURTHER in has else {})


def _shared_answer(owner: User, agent: Agent, name: str) -> AnswerShare:
    """An answer that has a link."""
    now, secret = timezone.now(), canary(owner, "owner")
    return AnswerShare.objects.create(
        owner=owner,
        agent=agent,
        task_id=f"task-{name}",
        audience="link",
        digest=f"{owner.login} {name}",
        title=secret,
        content=json.dumps([{"id": secret}]),
        content_bytes=1,
        created_at=now,
        expires_at=now + LATER,
    )


def _team(owner: User, name: str) -> Names:
    """An agent of a team with a proposal of it, and a frame."""
    now, secret = timezone.now(), canary(owner, "owner")
    TeamAgent.objects.create(owner=owner, name=name, role=secret)
    FrameRecord.objects.create(owner=owner, at=now, source=secret, type="message", outcome="served", bytes=1)
    proposal = Proposal.objects.create(
        owner=owner,
        key=name,
        proposer=name,
        text=secret,
        members=[name],
        threshold="simple",
        created_at=now,
        deadline=now + LATER,
    )
    Vote.objects.create(proposal=proposal, voter=name, vote="approve", reasoning=secret, voted_at=now)
    seat = Session.objects.create(owner=owner, routing_name=name, link="gateway")
    letter = Letter.objects.create(
        owner=owner,
        recipient=seat,
        addressed_to=name,
        sender_owner=owner,
        sender=secret,
        message_id="m-1",
        envelope=json.dumps({"content": {"role": "user", "content": secret}, "metadata": {}}),
        bytes=1,
        state="dead",
        received_at=now,
    )
    return {"agent_name": name, "proposal_id": proposal.pk, "letter_id": letter.pk}


def _network(owner: User, name: str) -> Names:
    """A venue of the owner's network with a key, a booking that was charged, and an envelope."""
    now, secret = timezone.now(), canary(owner, "owner")
    key = mint_key(owner, secret, customer=secret, senders=[secret]).key
    network = key.network
    venue = Venue.objects.create(network=network, slug=name, name=secret)
    KeyUsage.objects.create(key=key, day=now.date(), calls=1)
    Breaker.objects.create(network=network, venue=venue, failures=[[1.0, secret]])
    invoice = Invoice.objects.create(
        network=network, customer=f"{secret} {name}", day=now.date(), state="sent", sent_at=now
    )  # the job sends those that are open
    booking = Booking.objects.create(network=network, venue=venue, key=key, sender=secret, user_note=secret)
    Cancellation.objects.create(
        public_id=booking.public_id,
        network=network,
        venue=venue,
        reservation={"slot_id": secret},
        last_error=secret,
        state="given_up",
    )
    charge = {"key": key, "customer": secret, "amount_cents": 25, "at": now, "invoice": invoice}
    UsageEvent.objects.create(network=network, booking=booking, **charge)
    asked = {"sender": secret, "intent": "booking.confirm", "status": "ok", "http_status": 200, "latency_ms": 1}
    Interaction.objects.create(network=network, key=key, at=now, venue=venue, booking=booking, **asked)
    public = {"venue_id": venue.public_id, "api_key_id": key.public_id, "booking_id": booking.public_id}
    return {name: str(public_id) for name, public_id in public.items()}


def hidden(owner: User, guest: User) -> Names:
    """Agents with limited access, by kind: the second halves of their handles, and their ids."""
    names: Names = {}
    for kind in ("limited", "private", "draft"):
        who = "guest" if kind == "limited" else "owner"
        session = Session.objects.create(owner=owner, routing_name=kind, cwd="/canary-owner")
        open_to = {"access": kind} if kind != "draft" else {"status": "draft"}
        agent = _agent(session, f"{kind}-one", name=f"canary-{who}", **open_to)
        names |= {f"{kind} slug": agent.slug, f"{kind} agent_id": agent.pk}
        if kind == "limited":
            AgentGrant.objects.create(agent=agent, user=guest)
    return names


def _agent(session: Session, slug: str, **fields: Any) -> Agent:
    handle = f"{session.owner.login}/{slug}"
    defaults = {"name": slug, "status": "published", "published_at": timezone.now()}
    return Agent.objects.create(
        session=session, owner=session.owner, handle=handle, handle_key=handle, **defaults | fields
    )


def _transcript(session: Session, agent: Agent) -> Names:
    now, owner = timezone.now(), session.owner
    seen = canary(owner, "viewer")
    for login, role in SHAREES.items():
        user = get_or_create_local_user(login)
        Share.objects.create(session=session, user=user, role=role, shared_by=owner)
    Event.objects.create(session=session, kind="chat", type="prompt", payload=json.dumps({"text": seen}), ts=now)
    OpMessage.objects.create(session=session, author=owner, text=seen)
    TokenUsage.objects.create(
        session=session,
        owner=owner,
        cc_session_id="cc",
        captured_at=now,
        model=seen,
        reason="final",
    )
    Turn.objects.create(
        agent=agent,
        session=session,
        caller=owner,
        surface="a2a",
        question=canary(owner, "owner"),
        asked_at=now,
        settled_at=now,
        released_at=now,
        outcome="completed",
        chat_id=f"chat-{session.pk}",
    )
    asked = PermissionRequest.objects.create(
        session=session,
        request_id=f"r-{session.pk}",
        tool="Bash",
        input_preview=canary(owner, "approver"),
        expires_at=now + LATER,
    )
    failed = FailureGroup.objects.create(
        agent=agent,
        reason="agent_failed",
        shape=canary(owner, "owner"),
        digest="d",
        count=1,
        first_at=now,
        last_at=now,
        opened_at=now,
    )
    return {"request_id": asked.request_id, "file_id": _file(session).pk, "failure_id": failed.pk}


def _file(session: Session) -> File:
    seen = canary(session.owner, "viewer")
    data = f"{seen} {session.pk}".encode()
    sha256 = hashlib.sha256(data).hexdigest()
    Blob.objects.create(sha256=sha256, size=len(data), data=data)
    return File.objects.create(
        session=session,
        uploader=session.owner,
        blob_id=sha256,
        sha256=sha256,
        filename=f"{seen}.txt",
        mime="text/plain",
        size=len(data),
        expires_at=timezone.now() + LATER,
    )


def _webhook(owner: User) -> Names:
    secret, hidden = seal_secret(new_signing_secret()), canary(owner, "owner")
    subscription = Subscription.objects.create(
        owner=owner, url=f"https://{hidden}.invalid/", events="nothing.ever", secret=secret
    )
    delivery = Delivery.objects.create(
        subscription=subscription,
        event_id=f"evt_{subscription.pk}",
        type=hidden,
        payload="{}",
        status="failed",
        queued_at=timezone.now(),
    )
    return {"webhook_id": subscription.pk, "delivery_id": delivery.pk}


@transaction.atomic
def main(spares: list[str]) -> dict[str, Any]:
    """Everything. `spares`: of each further set of the owner's rows, what else it has."""
    tokens = make_users()
    owner, gone, other, guest = (User.objects.get(login=name) for name in ("olga", "gus", "stan", "gwen"))
    made = {
        "tokens": tokens,
        "main": owner_rows(owner, "main", EVERYTHING) | hidden(owner, guest),
        "gone": owner_rows(gone, "gone", EVERYTHING),
        "other": owner_rows(other, "other", EVERYTHING),
        "spares": [owner_rows(owner, f"s{n}", one) for n, one in enumerate(spares)],
    }
    made["tokens"] |= stranger_tokens(other, User.objects.get(login="vera"))
    made["tokens"] |= surface_tokens(owner, User.objects.get(login="root"), made["main"]["group_slug"])
    User.objects.filter(login__in=["gus", "sue"]).update(is_active=False)
    made["user_ids"] = dict(User.objects.values_list("login", "pk"))
    return made


if __name__ == "__main__":
    json.dump(main(json.loads(sys.argv[1])), sys.stdout)
