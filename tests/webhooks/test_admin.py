"""Webhooks in the admin: one's own, never a secret, and deliveries to send again."""

from typing import Any

import pytest
from django.test import Client

from tests.native.rows import Person, browser
from tests.webhooks.subscriptions import fresh, happen, lease_due, subscribed
from webhooks.models import Delivery

pytestmark = pytest.mark.django_db
SUBSCRIPTIONS = "/admin/webhooks/subscription/"
DELIVERIES = "/admin/webhooks/delivery/"


def text(client: Client, path: str) -> str:
    answer = client.get(path)
    assert answer.status_code == 200, (path, answer.status_code)
    return answer.content.decode()


def replay(client: Client, *rows: Delivery) -> Any:
    chosen = {"action": "replay", "_selected_action": [row.pk for row in rows]}
    return client.post(DELIVERIES, chosen, follow=True)


def test_each_sees_their_own_and_staff_all(alice: Person, bob: Person, staff: Person) -> None:
    mine = subscribed(alice.user, "https://mine.example/").subscription
    subscribed(bob.user, "https://theirs.example/")
    happen(alice.user, type="agent.denied")
    happen(bob.user, type="file.uploaded")
    page = text(browser(alice.session), SUBSCRIPTIONS)
    assert "mine.example" in page
    assert "theirs.example" not in page
    assert "file.uploaded" not in text(browser(alice.session), DELIVERIES)
    assert "theirs.example" in text(browser(staff.session), SUBSCRIPTIONS)
    assert browser(bob.session).get(f"{SUBSCRIPTIONS}{mine.pk}/change/").status_code == 302
    foreign = Delivery.objects.get(type="agent.denied")
    assert browser(bob.session).get(f"{DELIVERIES}{foreign.pk}/change/").status_code == 302


def test_no_page_shows_a_secret_or_lets_anything_be_changed(alice: Person, staff: Person) -> None:
    made = subscribed(alice.user)
    happen(alice.user)
    sealed = fresh(made.subscription).secret
    for client in (browser(alice.session), browser(staff.session)):
        for path in (SUBSCRIPTIONS, f"{SUBSCRIPTIONS}{made.subscription.pk}/change/", DELIVERIES):
            page = text(client, path)
            assert made.secret not in page
            assert sealed not in page
            assert 'name="_save"' not in page
        assert client.get(f"{SUBSCRIPTIONS}?secret__startswith=g").status_code in (302, 400)
        assert client.get(f"{DELIVERIES}?subscription__secret__startswith=g").status_code in (302, 400)


def test_chosen_deliveries_are_sent_again(alice: Person, bob: Person) -> None:
    for person in (alice, bob):
        subscribed(person.user)
    happen(alice.user)
    happen(alice.user)
    happen(bob.user)
    Delivery.objects.update(status="failed", next_attempt_at=None, attempts=7)
    mine, unchosen, theirs = Delivery.objects.order_by("pk")
    assert "1 queued." in replay(browser(alice.session), mine, theirs).content.decode()
    statuses = [Delivery.objects.get(pk=one.pk).status for one in (mine, unchosen, theirs)]
    assert statuses == ["pending", "failed", "failed"]


def test_what_is_being_sent_is_left_alone(alice: Person) -> None:
    subscribed(alice.user)
    happen(alice.user)
    lease_due()
    assert "0 queued." in replay(browser(alice.session), Delivery.objects.get()).content.decode()


def test_a_delivery_shows_what_became_of_it(alice: Person) -> None:
    subscribed(alice.user)
    happen(alice.user, payload={"text": "<script>alert(1)</script>"})
    one = Delivery.objects.get()
    Delivery.objects.update(last_error="the connection failed")
    page = text(browser(alice.session), f"{DELIVERIES}{one.pk}/change/")
    assert one.event_id in page
    assert "the connection failed" in page
    assert "<script>alert(1)" not in page
