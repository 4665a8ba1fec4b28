"""Sessions and oneself over REST."""

from datetime import timedelta

import pytest
from django.utils import timezone

from accounts.paging import MAX_LIMIT
from agents.core import presence
from agents.models import Process, Session
from kit.clock import iso
from tests.native.rows import Person, api, connect, make_agent, make_session, names

SESSIONS = "/api/v1/sessions"
FIELDS = {
    *("id", "routingName", "startedByLogin", "role", "host", "cwd", "channelVersion", "startedAt", "lastSeenAt"),
    *("archivedAt", "connected", "agentHandle", "managedBy", "autoStart", "autoEnter", "extraFlags"),
    "preserveSessionId",
}


def test_me_is_the_holder_of_the_credential(alice: Person, staff: Person) -> None:
    me = api(alice.session).get("/api/v1/me").json()
    assert set(me) == {"id", "githubLogin", "avatarUrl", "isAdmin", "createdAt"}
    assert (me["id"], me["githubLogin"], me["avatarUrl"], me["isAdmin"]) == (alice.user.pk, "alice", None, False)
    assert me["createdAt"].endswith("Z")
    assert api(staff.app).get("/api/v1/me").json()["isAdmin"] is True


def test_a_session_shows_what_it_registered_with_and_null_for_what_it_did_not_say(alice: Person) -> None:
    said = {"host": "box", "cwd": "/srv", "channel_version": "0.0.42"}
    session, silent = make_session(alice.user, "notes", **said), make_session(alice.user)
    shown, unsaid = (api(alice.session).get(f"{SESSIONS}/{one.public_id}").json() for one in (session, silent))
    assert (shown["id"], shown["routingName"]) == (str(session.public_id), "@notes")
    assert set(shown) == FIELDS
    assert (shown["startedByLogin"], shown["role"]) == ("alice", "owner")
    assert (shown["host"], shown["cwd"], shown["channelVersion"]) == ("box", "/srv", "0.0.42")
    assert (shown["connected"], shown["agentHandle"], shown["archivedAt"]) == (False, None, None)
    assert (unsaid["host"], unsaid["cwd"], unsaid["channelVersion"]) == (None, None, None)


@pytest.mark.parametrize(("status", "handle"), [("published", "alice/notes"), ("draft", None)])
def test_a_session_names_its_agent_once_published(alice: Person, status: str, handle: str | None) -> None:
    agent = make_agent(alice.user, "notes", status)
    assert api(alice.session).get(f"{SESSIONS}/{agent.session.public_id}").json()["agentHandle"] == handle


def test_the_list_has_ones_own_sessions_last_seen_first_in_pages(alice: Person, bob: Person) -> None:
    for hours in (1, 0, 2):
        make_session(alice.user, f"s{hours}", last_seen_at=timezone.now() - timedelta(hours=hours))
    make_session(bob.user, "foreign")
    body = api(alice.session).get(SESSIONS).json()
    assert (names(body["items"], "routingName"), body["total"]) == (["@s0", "@s1", "@s2"], 3)
    body = api(alice.session).get(f"{SESSIONS}?limit=1&offset=1").json()
    assert (names(body["items"], "routingName"), body["total"]) == (["@s1"], 3)


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


def test_a_list_of_more_rows_than_are_read_at_once_holds_each_once_in_order(alice: Person) -> None:
    now = timezone.now()
    Session.objects.bulk_create(
        Session(owner=alice.user, routing_name=f"s{number}", last_seen_at=now - timedelta(minutes=number))
        for number in range(2 * MAX_LIMIT + 3)
    )
    body = api(alice.session).get(SESSIONS).json()
    wanted = [f"@s{number}" for number in range(2 * MAX_LIMIT + 3)]
    assert (names(body["items"], "routingName"), body["total"]) == (wanted, len(wanted))
    body = api(alice.session).get(f"{SESSIONS}?limit={MAX_LIMIT + 1}&offset={MAX_LIMIT}").json()
    assert names(body["items"], "routingName") == wanted[MAX_LIMIT : 2 * MAX_LIMIT + 1]


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
