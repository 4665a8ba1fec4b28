"""An agent's comings and goings: events of its session, once each, and told to those who watch."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from django.db import IntegrityError, OperationalError, connection, transaction
from django.db.models import F
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from accounts.models import Credential
from accounts.tokens import mint
from agents import jobs
from agents.core import presence
from agents.core.halt_rules import halt_own_agent
from agents.core.registration import (
    AgentRegistration,
    Evicted,
    Registered,
    register_connections,
)
from agents.links.channel.driving import RegisteredAgent, register_agents
from agents.models import Agent, Attachment, Connection, Event, Process, Session, Turn
from agents.transcript.announcements import AddressedMessage, LiveFrame
from agents.transcript.session_deletion import delete_sessions
from kit import sql
from tests.carrying import carrying
from tests.contracts.rows import HOME, admitted, ask, live_process, published, user
from tests.native.rows import register_agent
from tests.racing import at_once

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.ledger]


@pytest.fixture(autouse=True)
def _home() -> None:
    live_process()


@pytest.fixture
def told() -> Iterator[list[AddressedMessage]]:
    """The announcements after commits."""
    collected: list[AddressedMessage] = []
    with carrying(collected.extend):
        yield collected


def registered(session_id: str | None = None, login: str = "alice") -> Registered:
    return register_agent(coming(session_id, login), process_id=HOME).registered


def coming(session_id: str | None = None, login: str = "alice") -> AgentRegistration:
    owner = user(login)
    return AgentRegistration(
        user_id=owner.pk,
        credential_id=mint(owner, Credential.Kind.CHANNEL, "test").credential.pk,
        session_id=session_id,
        routing_name="desk",
        host="h",
        cwd="/w",
        os_user="",
        pid=1,
        channel_version="",
    )


def tails(session_id: int) -> list[str]:
    events = Event.objects.filter(session_id=session_id).order_by("pk")
    assert {(event.kind, event.payload) for event in events} <= {("tail", "{}")}
    return [event.type for event in events]


def watch(session_id: int) -> None:
    """An operator watches, at another process."""
    process = live_process("watching")
    Attachment.objects.create(session_id=session_id, process=process, user=user("bob"))


def shown(told: list[AddressedMessage]) -> list[Any]:
    """The kinds of what watchers saw, in order."""
    found = []
    for process, message in told:
        assert process == "watching"
        assert isinstance(message, LiveFrame)
        frame = json.loads(bytes(message.frame))
        found.append(frame.get("connected", frame.get("event", {}).get("type")))
    return found


def test_a_visit_has_a_start_and_an_end() -> None:
    here = registered()
    assert tails(here.session_id) == ["SessionStart"]
    presence.remove_connection(here.connection_id)
    assert tails(here.session_id) == ["SessionStart", "SessionEnd"]
    presence.remove_connection(here.connection_id)
    assert tails(here.session_id) == ["SessionStart", "SessionEnd"]


def test_who_watches_is_shown_both(told: list[AddressedMessage]) -> None:
    first = registered()
    presence.remove_connection(first.connection_id)
    assert told == []
    watch(first.session_id)
    again = registered(first.public_id)
    presence.remove_connection(again.connection_id)
    assert shown(told) == ["SessionStart", True, "SessionEnd", False]


def test_sockets_that_close_together_cost_as_many_statements_as_two(told: list[AddressedMessage]) -> None:
    """Their rows go in one transaction, and a newer connection of one of them stays."""
    counts = []
    for number in (2, 6):
        visits = [registered(login=f"user{number}-{one}") for one in range(number)]
        newer = registered(visits[0].public_id, login=f"user{number}-0")
        with CaptureQueriesContext(connection) as queries:
            sessions = presence.remove_connections([one.connection_id for one in visits])
        counts.append(len(queries))
        assert [one.pk for one in sessions] == sorted(one.session_id for one in visits[1:])
        assert {tails(one.session_id)[-1] for one in visits[1:]} == {"SessionEnd"}
        assert [*Connection.objects.filter(pk__in=[newer.connection_id])] != []
        presence.remove_connection(newer.connection_id)
    assert counts[0] == counts[1]


def test_a_newer_connection_ends_the_older_once() -> None:
    old = registered()
    new = registered(old.public_id)
    presence.remove_connection(old.connection_id)
    assert tails(new.session_id) == ["SessionStart", "SessionEnd", "SessionStart"]
    presence.remove_connection(new.connection_id)
    assert tails(new.session_id)[3:] == ["SessionEnd"]


def test_agents_that_connect_together_are_registered_as_one_after_the_other(told: list[AddressedMessage]) -> None:
    """One takes its session over, one returns, and two are new."""
    live, left = registered(), registered()
    presence.remove_connection(left.connection_id)
    watch(live.session_id)
    together = [coming(live.public_id), coming(left.public_id), coming(), coming()]
    outcomes = register_connections(together, process_id=HOME)
    over, back, *new = (one for one in outcomes if isinstance(one, Registered))
    assert (over.session_id, back.session_id) == (live.session_id, left.session_id)
    assert over.evicted == Evicted(process_id=HOME, connection_id=live.connection_id, same_program=True)
    assert [one.evicted for one in (back, *new)] == [None] * 3
    assert [one.is_new for one in (over, back, *new)] == [False, False, True, True]
    assert len({one.routing_name for one in (over, back, *new)}) == 4
    assert Session.objects.filter(started_at=F("last_seen_at")).count() == len(new)
    connections = {one.connection_id: one.session_id for one in (over, back, *new)}
    assert dict(Connection.objects.values_list("pk", "session_id")) == connections
    visit = ["SessionStart", "SessionEnd", "SessionStart"]
    assert [tails(one.session_id) for one in (over, back, *new)] == [visit, visit, visit[:1], visit[:1]]
    assert shown(told) == ["SessionEnd", "SessionStart", True]


def test_agents_that_connect_together_cost_as_many_statements_as_one(told: list[AddressedMessage]) -> None:
    counts = []
    for number in (1, 9):
        together = [coming(login="dora") for _ in range(number)]
        for returns in (False, True):
            with CaptureQueriesContext(connection) as queries:
                arrived = register_agents(together, process_id=HOME)
            counts.append((returns, len(queries)))
            known = [one.registered for one in arrived if isinstance(one, RegisteredAgent)]
            assert [one.is_new for one in known] == [not returns] * number
            presence.remove_connections([one.connection_id for one in known])
            together = [replace(sent, session_id=one.public_id) for sent, one in zip(together, known, strict=True)]
    assert len(set(counts)) == 2


def test_of_agents_that_connect_together_those_beyond_a_limit_are_refused(settings: Any) -> None:
    live, left, halted = registered(), registered(), registered()
    presence.remove_connections([left.connection_id, halted.connection_id])
    session = Session.objects.get(pk=halted.session_id)
    halt_own_agent(published(online=False, session=session, owner=session.owner).agent)
    settings.SESSIONS_PER_OWNER, settings.SOCKETS_PER_OWNER = 4, 2
    together = [coming(halted.public_id), coming(live.public_id), coming(), coming(), coming(left.public_id)]
    outcomes = register_connections(together, process_id=HOME)
    codes = [None if isinstance(one, Registered) else one.code for one in outcomes]
    assert codes == ["halted", None, None, "quota_exceeded", "quota_exceeded"]
    assert Connection.objects.count() == 2
    assert Session.objects.filter(owner=session.owner).count() == 4


@pytest.mark.parametrize("how", ["reaped", "retired", "all retired"])
def test_the_end_of_a_process_ends_its_visits(how: str, told: list[AddressedMessage]) -> None:
    here, there = registered(), registered(login="carol")
    watch(here.session_id)
    Process.objects.create(id="other", host="test", pid=2)
    Connection.objects.filter(pk=there.connection_id).update(process_id="other")
    if how == "reaped":
        Process.objects.filter(pk=HOME).update(beat_at=timezone.now() - timedelta(seconds=21))
        assert jobs.reap()["dead"] == 1
        jobs.reap()
    elif how == "retired":
        presence.remove_process(HOME)
    else:
        Attachment.objects.all().delete()
        presence.remove_all_processes()
    assert tails(here.session_id) == ["SessionStart", "SessionEnd"]
    assert tails(there.session_id) == ["SessionStart"] + ["SessionEnd"] * (how == "all retired")
    assert shown(told) == ([] if how == "all retired" else ["SessionEnd", False])


def test_a_connection_whose_socket_no_process_holds_ends_too() -> None:
    here = registered()
    Connection.objects.update(connected_at=timezone.now() - presence.ORPHAN_AFTER * 2)
    presence.record_heartbeat(HOME, mine={here.connection_id: here.session_id}, others=[])
    assert tails(here.session_id) == ["SessionStart"]
    presence.record_heartbeat(HOME, mine={}, others=[])
    assert tails(here.session_id) == ["SessionStart", "SessionEnd"]


def test_a_passing_session_goes_with_its_socket_and_its_transcript() -> None:
    here = registered()
    presence.remove_connection(here.connection_id, delete_session=True)
    assert not Session.objects.filter(pk=here.session_id).exists()
    assert not Event.objects.exists()


def test_a_passing_session_that_carries_an_agent_stays() -> None:
    agent = published(online=False).agent
    connected = Connection.objects.create(
        session=agent.session,
        process_id=HOME,
        credential=mint(agent.owner, Credential.Kind.CHANNEL, "test").credential,
    )
    presence.remove_connection(connected.pk, delete_session=True)
    assert Agent.objects.filter(pk=agent.pk, session__isnull=False).exists()
    assert tails(agent.session_id) == ["SessionEnd"]


def test_a_passing_session_that_was_taken_up_again_stays() -> None:
    old = registered()
    new = registered(old.public_id)
    presence.remove_connection(old.connection_id, delete_session=True)
    assert Session.objects.filter(pk=new.session_id).exists()


def test_coming_back_costs_one_more_statement_and_one_to_look_for_watchers(told: list[AddressedMessage]) -> None:
    here = registered()
    presence.remove_connection(here.connection_id)
    with CaptureQueriesContext(connection) as queries:
        registered(here.public_id)
    events = [one["sql"] for one in queries if "agents_event" in one["sql"]]
    watchers = [one["sql"] for one in queries if "agents_attachment" in one["sql"]]
    assert (len(events), len(watchers)) == (1, 1)


@pytest.mark.parametrize("attempt", range(5))
def test_deleting_while_agents_come_and_go_leaves_nothing_half(attempt: int) -> None:
    first = registered()
    came: list[Registered] = []
    at_once(
        lambda: delete_sessions([first.session_id]),
        lambda: came.append(registered(first.public_id)),
        lambda: presence.remove_connection(first.connection_id),
    )
    left = set(Session.objects.values_list("pk", flat=True))
    assert left <= {came[0].session_id}
    assert set(Connection.objects.values_list("session_id", flat=True)) == left
    assert set(Event.objects.values_list("session_id", flat=True)) == left


@pytest.mark.skipif(connection.vendor != "postgresql", reason="SQLite has one writer")
def test_a_deadlock_with_a_ledger_is_tried_again() -> None:
    """Another transaction holds a turn that was asked from the session, and writes to the session before they
    commit.
    """
    source, turn = registered(), admitted(ask(published()))
    Turn.objects.filter(chat_id=turn.ask.chat_id).update(source_session_id=source.session_id)
    holding = threading.Event()

    def ledger() -> None:
        with suppress(OperationalError, IntegrityError), transaction.atomic():  # one of the two is chosen to fail
            Turn.objects.filter(chat_id=turn.ask.chat_id).update(repeats=2)
            holding.set()
            wait_for_a_lock()
            session = Session(pk=source.session_id)
            Event.objects.create(session=session, kind="chat", type="reply", payload="{}", ts=timezone.now())

    def delete() -> None:
        assert holding.wait(10)
        assert delete_sessions([source.session_id]).session_ids == {source.session_id}

    at_once(ledger, delete)


def wait_for_a_lock() -> None:
    """Wait until a transaction waits for a lock."""
    deadline = time.monotonic() + 10
    while not sql.rows("SELECT 1 FROM pg_locks WHERE NOT granted"):
        assert time.monotonic() < deadline
