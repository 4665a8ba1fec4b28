"""`staff.acted`: what staff do reaches the webhooks of administrators that name the event, and no others."""

import json
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.db import transaction

from accounts.audit_log import name_rows, record_act, record_reading
from accounts.models import User
from agents.models import Agent
from tests.native.rows import Person, api, browser, make_agent, person
from tests.webhooks.subscriptions import subscribed
from webhooks.models import Delivery, Subscription
from webhooks.service.subscriptions import ONLY_STAFF
from webhooks.wire import STAFF_ACTED

pytestmark = pytest.mark.django_db
WEBHOOKS = "/api/v1/webhooks"
HERE = "http://127.0.0.1:9/hook"


@pytest.fixture
def chief(db: None) -> Person:
    """An administrator, whose webhook gets the event."""
    chief = person("chief", is_staff=True)
    subscribed(chief.user, events=STAFF_ACTED)
    return chief


def told() -> list[dict[str, Any]]:
    """The payloads that are queued, oldest first."""
    rows = Delivery.objects.filter(type=STAFF_ACTED).order_by("pk")
    return [json.loads(row.payload) for row in rows]


def test_each_act_of_the_staff_is_told_as_the_log_has_it(alice: Person, staff: Person, chief: Person) -> None:
    record_act(staff.user, User, name_rows([alice.user]), "suspended")
    record_reading(staff.user, User, "the team's pages", alice.user)
    listed = api(staff.app).get("/api/v1/admin/log").json()["items"]
    assert told() == listed[::-1]
    assert [(one["act"], one["what"]) for one in told()] == [
        ("changed", "suspended"),
        ("read", "the team's pages"),
    ]


def test_what_django_logs_itself_is_told(alice: Person, staff: Person, chief: Person) -> None:
    client, agent = browser(staff.session), make_agent(alice.user)
    client.post(f"/admin/accounts/user/{alice.user.pk}/change/", {})
    posted = {"action": "delete_selected", "_selected_action": agent.pk, "post": "yes"}
    assert client.post("/admin/agents/agent/", posted).status_code == 302
    assert [(one["act"], one["kind"]) for one in told()] == [
        ("changed", "accounts.user"),
        ("deleted", "agents.agent"),
    ]


def test_acts_of_others_are_not_told_but_giving_up_the_rights_is(
    alice: Person, staff: Person, chief: Person
) -> None:
    record_act(alice.user, Agent, [("1", "@alice/helper")], "unpublish")
    assert told() == []
    answer = api(staff.app).patch("/api/v1/admin/accounts/root", {"isStaff": False}, format="json")
    assert answer.status_code == 200
    assert [(one["what"], one["actorIsStaff"]) for one in told()] == [("took staff rights away", False)]


def test_only_webhooks_that_name_it_and_whose_owner_is_of_the_staff_now(
    alice: Person, staff: Person, chief: Person
) -> None:
    subscribed(chief.user, events="*")
    former = subscribed(alice.user).subscription  # of a user who was of the staff when the webhook was made
    Subscription.objects.filter(pk=former.pk).update(events=f"{STAFF_ACTED} chat.event")
    record_act(staff.user, User, name_rows([alice.user]), "suspended")
    assert len(told()) == 1
    for changed in ({"is_staff": False}, {"is_staff": True, "is_active": False}):
        User.objects.filter(pk=chief.user.pk).update(**changed)
        record_act(staff.user, User, name_rows([alice.user]), "reinstated")
    assert len(told()) == 1


def test_an_act_that_is_rolled_back_is_not_told(alice: Person, staff: Person, chief: Person) -> None:
    with transaction.atomic():
        record_act(staff.user, User, name_rows([alice.user]), "suspended")
        transaction.set_rollback(True)
    assert told() == []
    assert not LogEntry.objects.exists()


def test_only_administrators_subscribe(alice: Person, staff: Person) -> None:
    body = {"url": HERE, "events": ["chat.event", STAFF_ACTED]}
    refused = api(alice.app).post(WEBHOOKS, body, format="json")
    assert refused.status_code == 400
    assert ONLY_STAFF in refused.json()["message"]
    made = api(alice.app).post(WEBHOOKS, {**body, "events": ["*"]}, format="json").json()
    changed = api(alice.app).patch(f"{WEBHOOKS}/{made['id']}", {"events": [STAFF_ACTED]}, format="json")
    assert changed.status_code == 400
    form = {"url": HERE, "events": [STAFF_ACTED]}
    for path in ("/webhooks", f"/webhooks/{made['id']}/edit"):
        answer = browser(alice.session).post(path, form)
        assert answer.status_code == 400
        assert ONLY_STAFF.capitalize() in answer.content.decode()
    assert [one.events for one in Subscription.objects.all()] == ["*"]
    assert api(staff.app).post(WEBHOOKS, body, format="json").status_code == 201
    assert browser(staff.session).post("/webhooks", form).status_code == 200


def test_without_such_a_webhook_an_act_costs_one_query(
    alice: Person, staff: Person, django_assert_num_queries: Any
) -> None:
    record_act(staff.user, User, name_rows([alice.user]), "suspended")
    # A savepoint around each of two functions, the entry, and the look for webhooks.
    with django_assert_num_queries(6):
        record_act(staff.user, User, name_rows([alice.user]), "suspended")
