"""Acts of staff in the admin, and the questions that they look at, are recorded for good."""

from typing import Any

import pytest
from django.contrib.admin.models import CHANGE, DELETION, LogEntry

from accounts.audit_log import READ
from agents.models import Agent
from tests.native.admin import AGENTS, CREDENTIALS, SETTINGS, TURNS, act
from tests.native.desk import text
from tests.native.rows import Person, api, browser, make_agent, make_session, make_turn, person

pytestmark = pytest.mark.django_db

ACTS = "/admin/admin/logentry/"
USERS = "/admin/accounts/user/"


def acts() -> list[tuple[str, int, str, str]]:
    """The records: user, act, object, change."""
    return [
        (one.user.login, one.action_flag, one.object_repr, one.get_change_message())
        for one in LogEntry.objects.select_related("user").order_by("pk")
    ]


def test_a_change_a_deletion_and_an_action_are_written_down(alice: Person, staff: Person) -> None:
    agent, client = make_agent(alice.user), browser(staff.session)
    client.post(f"{AGENTS}{agent.pk}/change/", SETTINGS | {"daily_budget": "7"})
    act(client, AGENTS, "unpublish", agent)
    act(client, AGENTS, "delete_selected", agent, post="yes")
    [changed, unpublished, deleted] = acts()
    assert changed[:3] == ("root", CHANGE, "@alice/helper")
    assert "Daily budget" in changed[3]
    assert unpublished == ("root", CHANGE, "@alice/helper", "unpublish")
    assert deleted[:3] == ("root", DELETION, "@alice/helper")
    assert Agent.objects.kept().count() == 0


def test_suspending_and_revoking_are_written_down(alice: Person, staff: Person) -> None:
    client = browser(staff.session)
    client.post(f"{USERS}{alice.user.pk}/change/", {})
    act(client, CREDENTIALS, "revoke", *alice.user.credentials.all())
    assert [(who, flag) for who, flag, *_ in acts()] == [("root", CHANGE)] * 4
    assert acts()[0][2:] == ("alice", "suspended")
    assert {how for *_, how in acts()[1:]} == {"revoke"}


def test_looking_at_questions_is_written_down(alice: Person, bob: Person, staff: Person) -> None:
    turn = make_turn(make_agent(alice.user), bob.user)
    client = browser(staff.session)
    text(client, f"{TURNS}?outcome=completed")
    text(client, f"{TURNS}{turn.pk}/change/")
    act(client, TURNS, "export_csv", turn)
    named = f"turn {turn.chat_id}"
    assert acts() == [
        ("root", READ, "", "a list: outcome=completed"),
        ("root", READ, named, "a question"),
        ("root", CHANGE, named, "export_csv"),
    ]


def test_a_timeline_that_staff_read_over_rest_is_written_down(alice: Person, staff: Person) -> None:
    session = make_session(alice.user)
    assert api(staff.app).get(f"/api/v1/admin/sessions/{session.public_id}/timeline").status_code == 200
    assert acts() == [("root", READ, "@helper", "its timeline")]


def test_an_owner_reads_their_own_unnoted(alice: Person, bob: Person) -> None:
    turn = make_turn(make_agent(alice.user), bob.user)
    client = browser(alice.session)
    text(client, TURNS)
    text(client, f"{TURNS}{turn.pk}/change/")
    assert acts() == []


def test_staff_read_the_record_and_no_user_changes_it(alice: Person, staff: Person) -> None:
    act(browser(staff.session), CREDENTIALS, "revoke", *alice.user.credentials.all()[:1])
    entry = LogEntry.objects.get()
    client = browser(staff.session)
    assert "revoke" in text(client, f"{ACTS}?q=root")
    assert "root" in text(client, f"{ACTS}{entry.pk}/change/")
    refused: list[Any] = [
        client.post(f"{ACTS}{entry.pk}/change/", {"object_repr": "x"}),
        client.post(f"{ACTS}{entry.pk}/delete/", {"post": "yes"}),
        client.post(f"{ACTS}add/", {"object_repr": "x"}),
        browser(person("zoe").session).get(ACTS),
    ]
    assert [one.status_code for one in refused] == [403] * 4
    act(client, ACTS, "delete_selected", entry, post="yes")
    assert LogEntry.objects.get() == entry


def test_staff_take_one_users_data_away_and_it_is_written_down(alice: Person, staff: Person) -> None:
    client = browser(staff.session)
    exported = client.post(USERS, {"action": "export", "_selected_action": [alice.user.pk]})
    assert exported["Content-Disposition"].startswith('attachment; filename="alice-')
    assert acts() == [("root", CHANGE, "alice", "export")]
    both = act(client, USERS, "export", alice.user, staff.user)
    assert "Choose one user." in both.content.decode()


def test_many_rows_are_named_up_to_a_hundred(alice: Person, bob: Person, staff: Person) -> None:
    agent, client = make_agent(alice.user), browser(staff.session)
    turns = [make_turn(agent, bob.user) for _ in range(101)]
    act(client, TURNS, "export_csv", *turns[:100])
    act(client, TURNS, "export_csv", *turns)
    assert [one[-1] for one in acts()] == ["export_csv"] * 199 + ["export_csv (and more rows)"]
