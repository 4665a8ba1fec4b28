"""Agents of one owner that take their seats at the same time are registered in one transaction."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from accounts.authn import Identity
from accounts.models import Credential
from accounts.quotas import QuotaExceeded
from agents.core.registration import MayNotConnect
from agents.links.channel.driving import RegisteredAgent
from agents.models import Connection, Process, Session
from gateway.limits import TEAM_AGENTS
from gateway.models import TeamAgent
from gateway.service.seat import GATEWAY_LINK, SeatNameTaken, seat_registration, take_seats
from tests.native.rows import Person, connect, make_session, person

pytestmark = pytest.mark.django_db
HOME = "p"


@pytest.fixture
def alice() -> Person:
    Process.objects.create(id=HOME, host="test", pid=1)
    return person("alice")


def take(owner: Person, *names: str) -> list[object]:
    """Take seats of these names, all at once."""
    credential = Credential.objects.get(user=owner.user, kind="channel", name="test")
    identity = Identity(credential.pk, "channel", "test", owner.user.pk, "alice", is_staff=False, is_stale=False)
    return [*take_seats([seat_registration(identity, name) for name in names], process_id=HOME)]


def test_each_agent_gets_its_seat_or_the_reason_why_not(alice: Person) -> None:
    [first] = take(alice, "beta")
    owner = alice.user
    TeamAgent.objects.create(owner=owner, name="idle", is_active=False)
    TeamAgent.objects.filter(name="beta").update(status=TeamAgent.Status.BUSY)
    rows = [TeamAgent(owner=owner, name=f"n{number}") for number in range(TEAM_AGENTS.most - 4)]
    TeamAgent.objects.bulk_create(rows)
    session = make_session(owner, "desk")
    connect(session)

    beta, idle, desk, *new = take(alice, "beta", "idle", "desk", "x1", "x2", "x3")

    assert isinstance(first, RegisteredAgent)
    assert isinstance(beta, RegisteredAgent)
    assert beta.registered.session_id == first.registered.session_id
    assert beta.registered.evicted is not None
    assert beta.registered.evicted.connection_id == first.registered.connection_id
    assert isinstance(idle, MayNotConnect)
    assert idle.code == "not_active"
    assert isinstance(desk, SeatNameTaken)
    assert [type(one) for one in new] == [RegisteredAgent, RegisteredAgent, QuotaExceeded]
    assert TeamAgent.objects.get(name="beta").status == TeamAgent.Status.ONLINE
    assert TeamAgent.objects.count() == TEAM_AGENTS.most
    held = Connection.objects.filter(session__link=GATEWAY_LINK).values_list("session__routing_name", flat=True)
    assert sorted(held) == ["beta", "x1", "x2"]


def test_a_seat_is_the_newest_session_of_its_name(alice: Person) -> None:
    [old] = take(alice, "beta")
    assert isinstance(old, RegisteredAgent)
    Connection.objects.all().delete()
    newer = Session.objects.create(owner=alice.user, routing_name="beta", link=GATEWAY_LINK)
    [came] = take(alice, "beta")
    assert isinstance(came, RegisteredAgent)
    assert came.registered.session_id == newer.pk != old.registered.session_id


def test_ten_make_as_many_queries_as_one(alice: Person) -> None:
    names = [f"a{number}" for number in range(11)]
    take(alice, *names)
    with CaptureQueriesContext(connection) as one:
        take(alice, names[0])
    with CaptureQueriesContext(connection) as ten:
        take(alice, *names[1:])
    assert len(ten) == len(one)
