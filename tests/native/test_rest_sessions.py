"""Sessions and oneself over REST."""

from datetime import timedelta

import pytest
from django.utils import timezone

from agents.core import presence
from agents.models import Process, Session
from kit.clock import iso
from tests.native.rows import Person, api, connect, make_agent, make_session, names

SESSIONS = "/api/v1/sessions"
FIELDS = {
    "id",
    "routingName",
    "startedByLogin",
    "role",
    "host",
    "cwd",
    "channelVersion",
    "startedAt",
    "lastSeenAt",
    "archivedAt",
    "connected",
    "agentHandle",
    "managedBy",
    "autoStart",
    "autoEnter",
    "extraFlags",
    "preserveSessionId",
}


def test_me_is_the_holder_of_the_credential(alice: Person, staff: Person) -> None:
    me = api(alice.session).get("/api/v1/me").json()
    assert set(me) == {"id", "githubLogin", "avatarUrl", "isAdmin", "createdAt"}
    assert (me["id"], me["githubLogin"], me["avatarUrl"], me["isAdmin"]) == (alice.user.pk, "alice", None, False)
    assert me["createdAt"].endswith("Z")
    assert api(staff.app).get("/api/v1/me").json()["isAdmin"] is True


def test_a_session_shows_all_it_registered_with(alice: Person) -> None:
    session = make_session(alice.user, "notes", host="box", cwd="/srv", channel_version="0.0.42")
    shown = api(alice.session).get(f"{SESSIONS}/{session.public_id}").json()
    assert set(shown) == FIELDS
    assert (shown["id"], shown["routingName"]) == (str(session.public_id), "@notes")
    assert (shown["startedByLogin"], shown["role"]) == ("alice", "owner")
    assert (shown["host"], shown["cwd"], shown["channelVersion"]) == ("box", "/srv", "0.0.42")
    assert (shown["connected"], shown["agentHandle"], shown["archivedAt"]) == (False, None, None)
    assert shown["lastSeenAt"].endswith("Z")


def test_what_an_agent_did_not_say_of_itself_is_null(alice: Person) -> None:
    shown = api(alice.session).get(f"{SESSIONS}/{make_session(alice.user).public_id}").json()
    assert (shown["host"], shown["cwd"], shown["channelVersion"]) == (None, None, None)


@pytest.mark.parametrize(("status", "handle"), [("published", "alice/notes"), ("draft", None)])
def test_a_session_names_its_agent_once_published(alice: Person, status: str, handle: str | None) -> None:
    agent = make_agent(alice.user, "notes", status)
    assert api(alice.session).get(f"{SESSIONS}/{agent.session.public_id}").json()["agentHandle"] == handle


def test_the_list_has_ones_own_sessions_last_seen_first(alice: Person, bob: Person) -> None:
    now = timezone.now()
    make_session(alice.user, "older", last_seen_at=now - timedelta(hours=1))
    make_session(alice.user, "newer", last_seen_at=now)
    make_session(bob.user, "foreign")
    body = api(alice.session).get(SESSIONS).json()
    assert names(body["items"], "routingName") == ["@newer", "@older"]
    assert body["total"] == 2


def test_offline_sessions_are_listed_unless_only_connected_ones_are_asked_for(alice: Person) -> None:
    make_session(alice.user, "offline")
    connect(make_session(alice.user, "online"))
    assert api(alice.session).get(SESSIONS).json()["total"] == 2
    connected = api(alice.session).get(f"{SESSIONS}?connected=true").json()
    assert names(connected["items"], "routingName") == ["@online"]
    assert names(connected["items"], "connected") == [True]


def test_the_list_without_a_limit_holds_every_session_and_the_connected_come_first(alice: Person) -> None:
    connect(make_session(alice.user, "worker", last_seen_at=timezone.now() - timedelta(days=3)))
    for number in range(3):
        make_session(alice.user, f"spare{number}")
    Session.objects.bulk_create(
        Session(owner=alice.user, routing_name=f"old{number}", last_seen_at=timezone.now() - timedelta(hours=1))
        for number in range(1001)
    )
    Process.objects.update(beat_at=timezone.now())
    for path in (SESSIONS, "/api/v1/peers"):
        items = api(alice.session).get(path).json()["items"]
        assert len(items) == 1005, path
        assert "@worker" in names(items, "routingName")
    assert names(api(alice.session).get(f"{SESSIONS}?limit=1").json()["items"], "routingName") == ["@worker"]
    assert len(api(alice.session).get(f"{SESSIONS}?limit=10").json()["items"]) == 10


def test_when_a_session_was_seen_moves_while_it_is_connected(alice: Person) -> None:
    then = timezone.now() - timedelta(hours=1)
    session = make_session(alice.user, last_seen_at=then)
    connect(session)
    path = f"{SESSIONS}/{session.public_id}"
    for beat_at in (then + timedelta(minutes=30), then + timedelta(minutes=40)):
        Process.objects.update(beat_at=beat_at)
        assert api(alice.session).get(path).json()["lastSeenAt"] == iso(beat_at)
    presence.remove_processes(Process.objects.all())
    assert api(alice.session).get(path).json()["lastSeenAt"] == iso(then + timedelta(minutes=40))


def test_archived_sessions_are_left_out_unless_asked_for(alice: Person) -> None:
    make_session(alice.user, "kept")
    make_session(alice.user, "archived", archived_at=timezone.now())
    assert names(api(alice.session).get(SESSIONS).json()["items"], "routingName") == ["@kept"]
    everything = api(alice.session).get(f"{SESSIONS}?archived=true").json()["items"]
    assert set(names(everything, "routingName")) == {"@kept", "@archived"}


def test_the_list_comes_in_pages(alice: Person) -> None:
    for number in range(3):
        make_session(alice.user, f"s{number}", last_seen_at=timezone.now() - timedelta(hours=number))
    body = api(alice.session).get(f"{SESSIONS}?limit=1&offset=1").json()
    assert (names(body["items"], "routingName"), body["total"]) == (["@s1"], 3)
