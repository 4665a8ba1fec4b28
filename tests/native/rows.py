"""People, sessions, agents and turns of one hub's database, and clients that carry real credentials."""

import itertools
import json
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone
from rest_framework.test import APIClient

from accounts.authn import COOKIE
from accounts.models import ClientGrant, Credential, User
from accounts.tokens import get_or_create_local_user, mint
from agents.core.registration import AgentRegistration
from agents.links.channel.driving import RegisteredAgent, register_agents
from agents.models import Agent, Connection, DailyUsage, Process, Session, Turn
from kit.ids import unguessable

Kind = Credential.Kind
_numbers = itertools.count(1)


@dataclass(frozen=True)
class Person:
    """A user with a token of each kind."""

    user: User
    session: str
    app: str
    channel: str


def person(login: str, **fields: Any) -> Person:
    """A user, made when needed."""
    user = get_or_create_local_user(login)
    for name, value in fields.items():
        setattr(user, name, value)
    if fields:
        user.save()
    return Person(user, *(mint(user, kind, "test").token for kind in (Kind.SESSION, Kind.APP, Kind.CHANNEL)))


def api(token: str | None) -> APIClient:
    """A program that calls the REST API with this Bearer token."""
    client = APIClient()
    if token is not None:
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return client


def browser(token: str | None = None, **options: Any) -> Client:
    """A browser, signed in when it has the token of a session."""
    client = Client(**options)
    if token is not None:
        client.cookies[COOKIE] = token
    return client


def make_client_grant(user: User, **fields: Any) -> ClientGrant:
    """The grant of a user to a client that refreshes its tokens; no token of the grant is known."""
    texts = {"app_name": "an agent", "scopes": "ask read"} | fields
    digests = {name: unguessable() for name in ("client_digest", "family_digest", "digest")}
    expires_at = timezone.now() + timedelta(days=90)
    return ClientGrant.objects.create(user=user, expires_at=expires_at, **digests, **texts)


def make_session(owner: User, name: str = "helper", **fields: Any) -> Session:
    return Session.objects.create(owner=owner, routing_name=name, **fields)


def make_agent(owner: User, slug: str = "helper", status: str = "published", **fields: Any) -> Agent:
    """An agent on a session of its own."""
    handle = f"{owner.login}/{slug}"
    agent = Agent(session=make_session(owner, slug), owner=owner, handle=handle, handle_key=handle.lower())
    for name, value in {"name": slug.title(), **fields}.items():
        setattr(agent, name, value)
    agent.set_status(status)
    agent.save()
    return agent


def connect(session: Session, **process: Any) -> None:
    """Put a session online, held by a process that beats."""
    credential = mint(session.owner, Kind.CHANNEL, "socket").credential
    holder = Process.objects.create(id=f"p{next(_numbers)}", host="here", pid=1, **process)
    Connection.objects.create(session=session, process=holder, credential=credential)


def registration(person: Person, session: Session | None = None) -> AgentRegistration:
    """The registration of an agent with a person's channel token, as a session that is known or a new one."""
    return AgentRegistration(
        user_id=person.user.pk,
        credential_id=person.user.credentials.get(kind="channel", name="test").pk,
        session_id=str(session.public_id) if session else None,
        routing_name=None if session else "new",
        host="here",
        cwd="/",
        os_user="",
        pid=1,
        channel_version="t",
    )


def register_agent(registration: AgentRegistration, *, process_id: str) -> RegisteredAgent:
    """Register one agent, or raise the reason why it may not connect."""
    [outcome] = register_agents([registration], process_id=process_id)
    if not isinstance(outcome, RegisteredAgent):
        raise outcome
    return outcome


def spend(agent: Agent, queries: int, *, days_ago: int = 0) -> None:
    day = timezone.now().date() - timedelta(days=days_ago)
    DailyUsage.objects.create(agent=agent, day=day, queries=queries)


def make_turn(agent: Agent, caller: User | None, outcome: str | None = "completed", **fields: Any) -> Turn:
    """One ask, settled unless `outcome` is None."""
    now = timezone.now()
    settled = {"settled_at": now} if outcome else {"claim_until": now + timedelta(seconds=60)}
    defaults = {"surface": "a2a", "question": "how are you?", "asked_at": now, "chat_id": f"c{next(_numbers)}"}
    values = {**defaults, **settled, **fields}
    return Turn.objects.create(agent=agent, session=agent.session, caller=caller, outcome=outcome, **values)


def patch(person: Person, agent: Agent, **body: Any) -> Any:
    """Change an agent; as escaped JSON, which can say what UTF-8 cannot."""
    url = f"/api/v1/agents/{agent.pk}"
    return api(person.session).patch(url, json.dumps(body), content_type="application/json")


def names(items: Iterable[dict[str, Any]], key: str = "handle") -> list[Any]:
    return [item[key] for item in items]
