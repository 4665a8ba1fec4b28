"""Archiving, pruning and deleting sessions."""

from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agents.models import Agent, Attachment, Blob, Connection, Event, File, Process, Session, Turn
from agents.transcript import session_deletion
from agents.transcript.announcements import CloseAgent, RecheckAccess
from agents.transcript.session_deletion import delete_sessions
from tests.native.rows import (
    Person,
    api,
    connect,
    make_agent,
    make_session,
    make_turn,
    names,
    register_agent,
    registration,
    spend,
)
from tests.native.transcripts import (
    Told,
    add_events,
    add_file,
    add_messages,
    ago,
    attach,
    lend,
    post_escaped,
    request_permission,
    use_tokens,
)

SESSIONS = "/api/v1/sessions"


def post(person: Person, path: str, body: Any = None) -> Any:
    return post_escaped(api(person.session), f"{SESSIONS}/{path}", body or {})


def delete(person: Person, session: Session, query: str = "?hard=true") -> Any:
    return api(person.session).delete(f"{SESSIONS}/{session.public_id}{query}")


def test_archiving_takes_a_session_off_the_list_once(alice: Person, session: Session) -> None:
    first = api(alice.session).post(f"{SESSIONS}/{session.public_id}/archive").json()  # it needs no body
    assert first.pop("archivedAt").endswith("Z")
    assert first == {"ok": True, "alreadyArchived": False, "sessionId": str(session.public_id)}
    again = post(alice, f"{session.public_id}/archive").json()
    assert again["alreadyArchived"] is True
    session.refresh_from_db()
    assert again["archivedAt"][:19] == session.archived_at.isoformat()[:19]
    assert api(alice.session).get(SESSIONS).json()["items"] == []


def test_an_archived_session_comes_back_with_its_agent(alice: Person, session: Session) -> None:
    post(alice, f"{session.public_id}/archive")
    Process.objects.create(id="p", host="here", pid=1)
    register_agent(registration(alice, session), process_id="p")
    (shown,) = api(alice.session).get(SESSIONS).json()["items"]
    assert (shown["id"], shown["archivedAt"]) == (str(session.public_id), None)


# Deleting.


def test_deleting_tells_in_numbers_what_went(alice: Person, bob: Person, carol: Person, agent: Agent) -> None:
    session = agent.session
    other = make_session(alice.user, "other")
    add_events(session, 3)
    add_messages(session, 2)
    lend(session, bob.user)
    lend(session, carol.user)
    add_file(session, b"only here")
    add_file(session, b"both")
    add_file(session, b"gone", deleted_at=ago(1))
    shared = add_file(other, b"both")
    request_permission(session)
    use_tokens(session, 4)
    spend(agent, 2)
    make_turn(agent, bob.user, released_at=timezone.now())
    make_turn(agent, bob.user)
    make_turn(agent, bob.user, None)
    answer = delete(alice, session)
    assert answer.status_code == 200
    assert answer.json() == {
        "ok": True,
        "sessionId": str(session.public_id),
        "deleted": True,
        "blobsSwept": 1,
        "bytesFreed": 9,
        "events": 3,
        "opMessages": 2,
        "shares": 2,
        "files": 3,
        "permissionRequests": 1,
        "tokenUsage": 4,
        "turns": 3,
        "agents": 1,
    }
    assert list(Session.objects.all()) == [other]
    assert [file.pk for file in File.objects.all()] == [shared.pk]
    assert [blob.size for blob in Blob.objects.all()] == [4]
    assert not Agent.objects.exists()
    assert not Turn.objects.exists()
    assert delete(alice, session).status_code == 404


def test_deleting_is_said_aloud_or_archiving_is_meant(alice: Person, session: Session) -> None:
    for query in ["", "?hard=false"]:
        answer = delete(alice, session, query)
        assert answer.status_code == 400, query
        assert answer.json()["error"] == "validation_failed", query
        assert "archive" in answer.json()["message"], query
        assert Session.objects.exists(), query


def test_an_ask_from_a_deleted_session_stays_in_the_log_of_the_asked(alice: Person, bob: Person) -> None:
    source, agent = make_session(alice.user), make_agent(bob.user)
    turn = make_turn(agent, alice.user, source_session=source)
    assert delete(alice, source).json()["turns"] == 0
    turn.refresh_from_db()
    assert turn.source_session is None


def test_many_rows_go_in_batches_and_only_those_of_the_session(
    alice: Person, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_deletion, "ROWS_AT_ONCE", 10)
    session, other = make_session(alice.user), make_session(alice.user, "other")
    add_events(session, 35)
    kept = add_events(other, 2)
    with CaptureQueriesContext(connection) as queries:
        assert delete(alice, session).json()["events"] == 35
    deletions = [one["sql"] for one in queries if one["sql"].startswith('DELETE FROM "agents_event"')]
    assert len(deletions) == 5, "four batches, and what came meanwhile"
    assert [event.pk for event in Event.objects.order_by("pk")] == [event.pk for event in kept]


def test_the_bytes_of_a_blob_are_not_read_to_delete_it(alice: Person, session: Session) -> None:
    add_file(session)
    with CaptureQueriesContext(connection) as queries:
        assert delete(alice, session).json()["blobsSwept"] == 1
    assert not [one["sql"] for one in queries if '"agents_blob"."data"' in one["sql"]]


@pytest.mark.django_db(transaction=True)
def test_its_agent_and_those_who_watch_are_told(alice: Person, bob: Person, told: Told, session: Session) -> None:
    connect(session)
    attach(session, bob.user)
    connected = Connection.objects.get()
    watching = Attachment.objects.get()
    delete(alice, session)
    assert told.addressed == [
        (connected.process_id, CloseAgent(connected.pk, "session_deleted")),
        (watching.process_id, RecheckAccess(session.pk, bob.user.pk)),
    ]


# Pruning.


def prunable(person: Person) -> dict[str, Session]:
    """Two names that several sessions have, and one that only one has."""
    made = {
        "live": make_session(person.user, "proj", last_seen_at=ago(30)),
        "newer": make_session(person.user, "proj", last_seen_at=ago(10)),
        "archived": make_session(person.user, "proj", last_seen_at=ago(5), archived_at=ago(4)),
        "last": make_session(person.user, "notes", last_seen_at=ago(10)),
        "first": make_session(person.user, "notes", last_seen_at=ago(20)),
        "single": make_session(person.user, "single"),
    }
    connect(made["live"])
    return made


def ids(*sessions: Session) -> set[str]:
    return {str(session.public_id) for session in sessions}


def test_a_dry_run_says_what_would_go_and_deletes_nothing(alice: Person) -> None:
    made = prunable(alice)
    body = post(alice, "prune", {"dryRun": True}).json()
    assert set(body) == {"ok", "dryRun", "kept", "deleted", "blobsSwept", "bytesFreed"}
    assert (body["ok"], body["dryRun"]) == (True, True)
    assert set(names(body["kept"], "sessionId")) == ids(made["live"], made["last"])
    assert set(names(body["deleted"], "sessionId")) == ids(made["newer"], made["archived"], made["first"])
    assert set(body["kept"][0]) == {"routingName", "sessionId"}
    gone = {one["sessionId"]: one for one in body["deleted"]}
    shown = gone[str(made["archived"].public_id)]
    assert set(shown) == {"routingName", "sessionId", "lastSeenAt", "wasArchived"}
    assert (shown["routingName"], shown["wasArchived"]) == ("@proj", True)
    assert gone[str(made["first"].public_id)]["wasArchived"] is False
    assert Session.objects.count() == 6


def test_pruning_keeps_the_live_one_else_the_last_seen_and_what_others_lend(alice: Person, bob: Person) -> None:
    made, theirs = prunable(alice), prunable(bob)
    for lent in theirs.values():
        lend(lent, alice.user, "approver")
    add_file(made["first"], b"spare")
    add_events(made["newer"], 2)
    body = post(alice, "prune", {"dryRun": False}).json()
    assert body["dryRun"] is False
    assert set(names(body["deleted"], "sessionId")) == ids(made["newer"], made["archived"], made["first"])
    assert (body["blobsSwept"], body["bytesFreed"]) == (1, 5)
    left = {str(one.public_id) for one in Session.objects.all()}
    assert left == ids(made["live"], made["last"], made["single"], *theirs.values())
    assert not Event.objects.exists()
    assert post(alice, "prune", {"dryRun": False}).json()["deleted"] == []


@pytest.mark.parametrize("name", ["@notes", "notes"])
def test_pruning_may_be_of_one_name_with_or_without_its_at(alice: Person, name: str) -> None:
    made = prunable(alice)
    body = post(alice, "prune", {"dryRun": False, "routingName": name}).json()
    assert names(body["kept"], "sessionId") == [str(made["last"].public_id)]
    assert names(body["deleted"], "routingName") == ["@notes"]
    assert Session.objects.count() == 5


def test_pruning_leaves_what_carries_an_agent(alice: Person) -> None:
    agent = make_agent(alice.user, "notes")
    Session.objects.filter(pk=agent.session_id).update(last_seen_at=ago(60))
    newer = make_session(alice.user, "notes", last_seen_at=ago(1))
    spare = make_session(alice.user, "notes", last_seen_at=ago(30))
    body = post(alice, "prune", {"dryRun": False}).json()
    assert set(names(body["kept"], "sessionId")) == ids(newer, agent.session)
    assert names(body["deleted"], "sessionId") == [str(spare.public_id)]


def test_a_session_that_came_back_meanwhile_is_not_pruned(session: Session) -> None:
    connect(session)
    assert delete_sessions([session.pk], only_offline=True).session_ids == set()
    Process.objects.update(beat_at=timezone.now() - timedelta(minutes=1))
    assert delete_sessions([session.pk], only_offline=True).session_ids == {session.pk}


def test_a_prune_that_makes_no_sense_is_a_400(alice: Person) -> None:
    prunable(alice)
    for body in [{"dryRun": "maybe"}, {"routingName": "a\0b"}, {"routingName": "\ud800"}, {"routingName": ["x"]}]:
        assert post(alice, "prune", body).status_code == 400, body
        assert Session.objects.count() == 6, body
