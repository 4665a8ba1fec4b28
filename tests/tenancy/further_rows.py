"""Rows that only rules `BY_HAND` name: groups, threads, saved questions, tasks of the Agent Protocol; and tokens.

Also bookings by a customer of several networks.

`test_foreign_hands.py` asks for them by each address that names one.
"""

from datetime import timedelta
from typing import Any

from django.utils import timezone

from a2a_bridge.models import StoredTask, Thread, ThreadTask
from a2a_bridge.wire.task import State
from accounts.group_invitations import invite_to_group
from accounts.groups import create_group
from accounts.invitations import invite
from accounts.models import Credential, Group, User
from accounts.oauth.clients import register
from accounts.oauth.grants import begin_device_grant, grant_refreshing
from accounts.scim_tokens import make_scim_token
from accounts.tokens import TokenLimits, mint
from agents.models import Agent, RemoteCard, RemoteServer, Session
from agnt.models import Booking, Invoice, UsageEvent, Venue
from agnt.service.keys import mint_key
from evaluations.models import EvaluationRun, QuestionSet, SavedQuestion
from gateway.models import ProtocolArtifact, ProtocolStep, ProtocolTask
from webhooks.wire import new_signing_secret

Kind = Credential.Kind
A_DAY = timedelta(days=1)
CUSTOMER = "of several networks"
REDIRECT = "http://127.0.0.1:8765/"
Names = dict[str, Any]


def further_rows(owner: User, agent: Agent, name: str, secret: str) -> Names:
    """A row of each further kind, by the names used in addresses. `secret`: a canary, in each text."""
    names = {"chat_id": f"chat-{agent.session_id}", "ask_id": f"chat-{agent.session_id}"}
    names |= _group(owner, f"group-{name}", secret) | _saved_questions(agent, name, secret)
    names |= _order(owner, secret)
    names |= _protocol_task(owner, secret) | {"remote_id": _remote_agent(owner, f"far-{name}", secret).pk}
    return names | {"thread_id": str(_thread(owner, agent, name, secret).public_id)}


def _thread(owner: User, agent: Agent, name: str, secret: str) -> Thread:
    """A thread with one task; a job deletes those without."""
    now = timezone.now()
    began = {"title": secret, "began_at": now, "last_asked_at": now}
    thread = Thread.objects.create(caller=owner, agent=agent, context_id=secret, **began)
    kept = {
        "state": State.COMPLETED,
        "has_ended": True,
        "is_indexed": True,
        "updated_at": now,
        "home": "",
        "chat_id": "",
    }
    kept |= dict.fromkeys(("seq", "snapshot_seq", "snapshot_bytes", "events_bytes", "schema_version"), 1)
    told = {"handle": agent.handle, "context_id": secret, "snapshot": "{}"}
    task = StoredTask.objects.create(id=f"task-thread-{name}", caller=owner, **told, **kept)
    ThreadTask.objects.create(
        thread=thread, task=task, asked_at=now, whose=str(owner.pk), question=secret, answer=secret
    )
    return thread


def _order(owner: User, secret: str) -> Names:
    """A booking in the newest venue, charged to its customer, and the key that made it."""
    minted = mint_key(owner, secret, scope="booking", customer=CUSTOMER)
    of_network = {"network": minted.key.network, "key": minted.key}
    venue = Venue.objects.filter(network=minted.key.network).latest("pk")
    invoice = Invoice.objects.filter(network=minted.key.network).latest("pk")
    booking = Booking.objects.create(**of_network, venue=venue, sender=secret, user_note=secret)
    charge = {"customer": CUSTOMER, "amount_cents": 25, "at": timezone.now(), "invoice": invoice}
    UsageEvent.objects.create(**of_network, booking=booking, **charge)
    return {"order_id": str(booking.public_id), "order key": minted.token, "order secret": minted.secret}


def _group(owner: User, slug: str, secret: str) -> Names:
    group = create_group(slug, secret, made_by=owner)
    invited = invite_to_group(group, "member", by=owner)
    return {
        "group_slug": slug,
        "group_invitation_id": invited.invitation.pk,
        "group_link": invited.url.rpartition("/")[2],
    }


def _saved_questions(agent: Agent, name: str, secret: str) -> Names:
    one = QuestionSet.objects.create(agent=agent, name=f"{secret} {name}")
    asked = SavedQuestion.objects.create(question_set=one, position=1, text=secret, expectation=secret)
    run = EvaluationRun.objects.create(
        question_set=one, cause="by_hand", card_digest="d", started_at=timezone.now(), ended_at=timezone.now()
    )
    return {"set_id": one.pk, "question_id": asked.pk, "run_id": run.pk}


def _protocol_task(owner: User, secret: str) -> Names:
    task = ProtocolTask.objects.create(owner=owner, agent="nothing", input=secret)
    step = ProtocolStep.objects.create(
        task=task, status="completed", input=secret, output=secret, agent_task_id="t", until=timezone.now()
    )
    file = {"file_name": f"{secret}.txt", "mime": "text/plain", "size": 1, "data": secret.encode()}
    artifact = ProtocolArtifact.objects.create(task=task, step=step, **file)
    return {name: str(row.public_id) for name, row in (("task", task), ("step", step), ("artifact", artifact))}


def _remote_agent(owner: User, slug: str, secret: str) -> Agent:
    """An agent on a server elsewhere, whose changed card waits for the owner."""
    session = Session.objects.create(owner=owner, routing_name=slug, link="a2a_http")
    url = f"https://{secret}.invalid/card.json"
    server = RemoteServer.objects.create(session=session, card_url=url, card_changed_at=timezone.now())
    card = {"name": secret, "url": url, "version": "1", "protocolVersion": "0.3.0"}
    RemoteCard.objects.create(
        server=server, approved=card, waiting=card | {"version": "2"}, waiting_digest="0" * 64
    )
    handle = f"{owner.login}/{slug}"
    return Agent.objects.create(session=session, owner=owner, handle=handle, handle_key=handle, name=slug)


def stranger_tokens(stranger: User, friend: User) -> Names:
    """Limited tokens of users who may do nothing, or little, with the owner's rows."""
    limits = {
        "stan reads": TokenLimits(("read",)),
        "stan asks": TokenLimits(("ask",)),
        "stan publishes": TokenLimits(("publish",)),
        "stan one agent": TokenLimits((), "stan/pub-other"),
        "stan seat": TokenLimits(("connect",), "stan/seat-other"),
    }
    tokens = {name: mint(stranger, Kind.APP, name, limits=one).token for name, one in limits.items()}
    key = mint_key(stranger, "k", scope="booking", customer=CUSTOMER)
    tokens |= {"stan key": key.token, "stan key secret": key.secret}
    return tokens | {"vera reads": mint(friend, Kind.APP, "vera", limits=TokenLimits(("read",))).token}


def surface_tokens(owner: User, staff: User, group_slug: str) -> Names:
    """Texts that open one surface, or something of the owner's, and no other."""
    group, is_agnt = Group.objects.get(account__login=group_slug), {"customer": "c", "senders": ["s"]}
    keys = {scope: mint_key(owner, scope, scope=scope, **is_agnt) for scope in ("query", "full")}
    refreshed = register({"redirect_uris": [REDIRECT], "grant_types": ["authorization_code", "refresh_token"]})
    granted = grant_refreshing(owner, refreshed, "ask read", user_agent="")
    return {
        "olga jwt reads": mint(owner, Kind.APP, "j", limits=TokenLimits(("read",), "", A_DAY, True)).token,
        "group app": mint(group.account, Kind.APP, "g", minted_by=owner).token,
        "group channel": mint(group.account, Kind.CHANNEL, "g", minted_by=owner).token,
        "agnt query": keys["query"].token,
        "agnt full": keys["full"].token,
        "agnt secret": keys["full"].secret,
        "scim": make_scim_token(by=staff).token,
        "access": granted.token,
        "refresh": granted.refresh_token,
        "device code": begin_device_grant("tv", "m")[0],
        "invitation": invite("newcomer", is_admin=False, made_by=staff).url.rpartition("/")[2],
        "webhook secret": new_signing_secret(),
    }
