"""Webhooks in the admin: one's own, never a secret, and deliveries to send again."""

import pytest

from tests.native.admin import act
from tests.native.desk import text
from tests.native.rows import Person, browser
from tests.webhooks.subscriptions import fresh, happen, lease_due, subscribed
from webhooks.models import Delivery

pytestmark = pytest.mark.django_db
SUBSCRIPTIONS = "/admin/webhooks/subscription/"
DELIVERIES = "/admin/webhooks/delivery/"


def test_staff_see_the_webhooks_of_all(alice: Person, staff: Person) -> None:
    subscribed(alice.user, "https://hers.example/")
    assert "hers.example" in text(browser(staff.session), SUBSCRIPTIONS)


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
    assert "1 queued." in act(browser(alice.session), DELIVERIES, "replay", mine, theirs).content.decode()
    statuses = [Delivery.objects.get(pk=one.pk).status for one in (mine, unchosen, theirs)]
    assert statuses == ["pending", "failed", "failed"]
    lease_due()
    being_sent = act(browser(alice.session), DELIVERIES, "replay", mine)
    assert "0 queued." in being_sent.content.decode()


def test_a_delivery_shows_what_became_of_it(alice: Person) -> None:
    subscribed(alice.user)
    happen(alice.user, payload={"text": "<script>alert(1)</script>"})
    one = Delivery.objects.get()
    Delivery.objects.update(last_error="the connection failed")
    page = text(browser(alice.session), f"{DELIVERIES}{one.pk}/change/")
    assert one.event_id in page
    assert "the connection failed" in page
    assert "<script>alert(1)" not in page
