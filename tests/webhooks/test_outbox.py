"""Each subscription to an event gets a row, in the transaction that caused the event."""

import json
import threading
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.db import connection, transaction

from kit.clock import db_now
from tests.native.rows import Person
from tests.webhooks.subscriptions import fresh, happen, happening, only_delivery, subscribed
from webhooks.models import Delivery
from webhooks.service import outbox
from webhooks.service.outbox import record
from webhooks.service.subscriptions import unsubscribe

pytestmark = [pytest.mark.deliveries, pytest.mark.django_db]
NAMES = ("chat.event", "tail.event")
DESK = "6f1c2b1e-8f0a-4d4c-9a43-6a3f0c3b1d11"


def test_an_event_is_queued_for_its_audience_alone(alice: Person, bob: Person) -> None:
    subscribed(alice.user)
    subscribed(bob.user)
    before = db_now()
    assert happen(alice.user, payload={"text": "hi"}) == 1
    one = only_delivery()
    assert (one.subscription.owner, one.type, one.status, one.attempts) == (alice.user, "chat.event", "pending", 0)
    assert json.loads(one.payload) == {"text": "hi"}
    assert one.event_id.startswith("evt_")
    assert abs(one.next_attempt_at - one.queued_at) < timedelta(seconds=1)
    assert abs((one.queued_at - before).total_seconds()) < 60
    assert one.next_attempt_at <= db_now()


def test_the_names_it_is_subscribed_to_decide(alice: Person) -> None:
    for events, happened, is_told in (
        ("chat.event", "chat.event", True),
        ("chat.event", "chat.events", False),
        ("tail.event", "chat.event", False),
        ("permission.requested chat.event", "chat.event", True),
        ("*", "agent.denied", True),
        ("agent.reply", "agent.replied", True),
        ("agent.replied", "agent.replied", True),
        ("agent.reply", "agent.denied", False),
        ("chat.*", "chat.event", False),
        ("of.the.future", "chat.event", False),
    ):
        one = subscribed(alice.user, events=events).subscription
        assert happen(alice.user, type=happened) == is_told, (events, happened)
        unsubscribe(one.pk)


def test_both_filters_have_to_fit(alice: Person) -> None:
    session, name = {"session_id": DESK}, {"routing_name": "@desk"}
    both = session | name
    other_session, other_name = both | {"session_id": DESK.replace("6", "7")}, both | {"routing_name": "@other"}
    for filters, where, is_told in (
        ({}, both, True),
        (session, both, True),
        (session, other_session, False),
        (name, both, True),
        (name, other_name, False),
        (both, other_name, False),
        (both, both, True),
        (session, {}, False),
        (name, {}, False),
    ):
        one = subscribed(alice.user, **filters).subscription
        assert happen(alice.user, **where) == is_told, (filters, where)
        unsubscribe(one.pk)


def test_a_suspended_subscriber_hears_nothing(alice: Person) -> None:
    one = subscribed(alice.user).subscription
    one.status = "unhealthy"
    one.save()
    assert happen(alice.user) == 1  # an unhealthy subscription still hears
    alice.user.is_active = False
    alice.user.save()
    assert happen(alice.user) == 0


def test_many_things_to_many_are_queued_in_few_statements(
    alice: Person, bob: Person, django_assert_num_queries: Any
) -> None:
    for _ in range(3):
        subscribed(alice.user)
    subscribed(bob.user, events="tail.event")
    many = [happening(alice.user, bob.user, type=name, payload={"n": n}) for n in range(10) for name in NAMES]
    with django_assert_num_queries(2):
        assert record(many) == 10 * 2 * 3 + 10
    assert Delivery.objects.values("event_id").distinct().count() == Delivery.objects.count() == 70
    numbers = [json.loads(one.payload)["n"] for one in Delivery.objects.order_by("pk")]
    assert numbers == sorted(numbers)


def test_hundreds_are_queued_too(alice: Person) -> None:
    subscribed(alice.user)
    assert record([happening(alice.user)] * 450) == Delivery.objects.count() == 450


def test_without_subscriptions_it_costs_one_query(
    alice: Person, bob: Person, django_assert_num_queries: Any
) -> None:
    subscribed(bob.user)
    with django_assert_num_queries(1):
        assert happen(alice.user) == 0
    with django_assert_num_queries(0):
        assert happen() == record([]) == 0


HOSTILE: list[tuple[Any, Any]] = [
    ("\0", "\0"),
    ("\ud800 half", "? half"),
    ([float("nan"), float("inf")], [None, None]),
    (["\udfff", float("nan")], ["?", None]),
    (2**80, 2**80),
    ("\u2028 </script> ü 𝄞", "\u2028 </script> ü 𝄞"),
    (msgspec.Raw(b'{"is":"text already"}'), {"is": "text already"}),
    ([msgspec.Raw(b"[1]"), "\ud800"], [[1], "?"]),
]


def test_whatever_the_payload_holds_is_queued(alice: Person, subtests: pytest.Subtests) -> None:
    subscribed(alice.user)
    for given, told in HOSTILE:
        with subtests.test(given=given):
            assert happen(alice.user, payload={"text": given}) == 1
            assert json.loads(Delivery.objects.latest("pk").payload) == {"text": told}


@pytest.mark.django_db(transaction=True)
def test_a_transaction_that_fails_queues_and_wakes_nothing(alice: Person) -> None:
    woken: list[int] = []
    outbox.on_queued(waker := lambda: woken.append(Delivery.objects.count()))
    try:
        subscribed(alice.user)
        with transaction.atomic():
            assert happen(alice.user) == 1
            transaction.set_rollback(True)
        assert (Delivery.objects.count(), woken) == (0, [])
        with transaction.atomic():
            happen(alice.user)
            assert woken == []
        assert woken == [1]
    finally:
        outbox._commit_callbacks.remove(waker)


@pytest.mark.django_db(transaction=True)
def test_deleting_a_subscription_never_breaks_who_records(alice: Person) -> None:
    """The other side of the race would fail its commit, and with it a whole batch of asks."""
    one = subscribed(alice.user).subscription
    recorded, gone = threading.Event(), threading.Event()

    def delete() -> None:
        assert recorded.wait(10)
        unsubscribe(one.pk)
        gone.set()
        connection.close()

    thread = threading.Thread(target=delete)
    thread.start()
    with transaction.atomic():
        assert happen(alice.user) == 1
        recorded.set()
        assert not gone.wait(0.3)  # it waits for us
        assert fresh(one)
    thread.join(60)
    assert gone.is_set()
    assert Delivery.objects.count() == 0
