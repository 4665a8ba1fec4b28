"""Lending sessions to others, and what they then see."""

from typing import Any

import pytest

from agents.models import Session, Share
from agents.transcript.announcements import RecheckAccess
from tests.native.rows import Person, api, connect, make_agent, make_session, names
from tests.native.transcripts import ROLES, Told, ago, attach, lend, post_escaped

SESSIONS = "/api/v1/sessions"


def share(person: Person, session: Session, login: Any, role: Any) -> Any:
    body = {"login": login, "role": role}
    return post_escaped(api(person.session), f"{SESSIONS}/{session.public_id}/shares", body)


def unshare(person: Person, session: Session, login: str) -> Any:
    return api(person.session).delete(f"{SESSIONS}/{session.public_id}/shares/{login}")


def test_a_share_says_whose_it_is_in_what_role(alice: Person, bob: Person, session: Session) -> None:
    answer = share(alice, session, "BOB", "prompter")
    assert answer.status_code == 201
    assert answer.json() == {
        "ok": True,
        "sessionId": str(session.public_id),
        "login": "bob",
        "userLogin": "bob",
        "role": "prompter",
    }
    listed = api(alice.session).get(f"{SESSIONS}/{session.public_id}/shares").json()
    assert listed["total"] == 1
    (shown,) = listed["items"]
    assert shown.pop("createdAt").endswith("Z")
    assert shown == {"login": "bob", "userLogin": "bob", "role": "prompter", "sharedByLogin": "alice"}


def test_sharing_again_changes_the_role(alice: Person, bob: Person, session: Session) -> None:
    for role, status in [("viewer", 201), ("approver", 200), ("viewer", 200)]:
        answer = share(alice, session, "bob", role)
        assert (answer.status_code, answer.json()["role"]) == (status, role)
        assert Share.objects.get().role == role


@pytest.mark.parametrize(
    ("login", "role", "status", "code"),
    [
        ("unknown", "viewer", 404, "not_found"),
        ("Alice", "viewer", 400, "validation_failed"),
        ("bob", "owner", 400, "validation_failed"),
        ("bob", None, 400, "validation_failed"),
        (None, "viewer", 400, "validation_failed"),
        ("b\0b", "viewer", 400, "validation_failed"),
        ("\ud800", "viewer", 400, "validation_failed"),
        (["bob"], "viewer", 400, "validation_failed"),
    ],
)
def test_what_is_no_share_is_refused(
    alice: Person, bob: Person, session: Session, login: Any, role: Any, status: int, code: str
) -> None:
    answer = share(alice, session, login, role)
    assert (answer.status_code, answer.json()["error"]) == (status, code)
    assert status == 400 or answer.json()["message"] == "no user has the login unknown"
    assert not Share.objects.exists()


def test_taking_back_tells_how_many_there_were(alice: Person, bob: Person, session: Session) -> None:
    lend(session, bob.user)
    expected = {"ok": True, "sessionId": str(session.public_id), "login": "bob", "userLogin": "bob"}
    assert unshare(alice, session, "Bob").json() == {**expected, "removed": 1}
    assert unshare(alice, session, "bob").json() == {**expected, "removed": 0}
    assert api(bob.session).get(f"{SESSIONS}/{session.public_id}").status_code == 404


def test_taking_back_from_an_unknown_user_is_fine(alice: Person) -> None:
    for login in ["unknown", "%00", "a%0Ab"]:
        answer = unshare(alice, make_session(alice.user), login)
        assert (answer.status_code, answer.json()["removed"]) == (200, 0), login


@pytest.mark.django_db(transaction=True)
def test_who_loses_something_stops_watching(alice: Person, bob: Person, told: Told, session: Session) -> None:
    watching = attach(session, bob.user)
    expected = (watching.process_id, RecheckAccess(session.pk, bob.user.pk))
    share(alice, session, "bob", "viewer")
    share(alice, session, "bob", "approver")
    assert told.addressed == []
    share(alice, session, "bob", "prompter")
    assert told.addressed == [expected]
    unshare(alice, session, "bob")
    assert told.addressed == [expected, expected]
    unshare(alice, session, "bob")
    assert told.addressed == [expected, expected]


@pytest.mark.parametrize("role", ROLES)
def test_a_shared_session_is_listed_beside_ones_own_with_ones_role(alice: Person, bob: Person, role: str) -> None:
    lent = make_session(alice.user, "lent", last_seen_at=ago(1))
    make_session(alice.user, "private")
    make_session(bob.user, "own", last_seen_at=ago(2))
    lend(lent, bob.user, role)
    body = api(bob.session).get(SESSIONS).json()
    shown = [(one["routingName"], one["startedByLogin"], one["role"]) for one in body["items"]]
    assert shown == [("@lent", "alice", role), ("@own", "bob", "owner")]
    assert body["total"] == 2
    assert api(bob.session).get(f"{SESSIONS}/{lent.public_id}").json()["role"] == role


def test_the_filters_hold_for_shared_sessions_too(alice: Person, bob: Person) -> None:
    for name in ("online", "offline", "archived"):
        session = make_session(alice.user, name, archived_at=ago(1) if name == "archived" else None)
        lend(session, bob.user)
        if name == "online":
            connect(session)

    def listed(query: str) -> set[str]:
        return set(names(api(bob.session).get(f"{SESSIONS}?{query}").json()["items"], "routingName"))

    assert listed("") == {"@online", "@offline"}
    assert listed("connected=true") == {"@online"}
    assert listed("archived=true") == {"@online", "@offline", "@archived"}


@pytest.mark.parametrize(("access", "shown"), [("public", "alice/helper"), ("private", None)])
def test_a_sharee_sees_the_handle_of_an_agent_they_may_ask(
    alice: Person, bob: Person, access: str, shown: str | None
) -> None:
    agent = make_agent(alice.user, access=access)
    lend(agent.session, bob.user)
    path = f"{SESSIONS}/{agent.session.public_id}"
    assert api(bob.session).get(path).json()["agentHandle"] == shown
    assert api(alice.session).get(path).json()["agentHandle"] == "alice/helper"
