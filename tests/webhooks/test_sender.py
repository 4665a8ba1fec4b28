"""Which deliveries a sender takes, in which order, and how many of one owner at once."""

import threading
import time

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from kit.clock import db_now
from kit.outbox import LEASE, Sender, SendLimits
from lab.receivers import receiving
from lab.waiting import until
from tests.native.rows import Person
from tests.racing import at_once
from tests.webhooks.subscriptions import (
    deliver,
    happen,
    lease_due,
    make_due,
    only_delivery,
    subscribed,
)
from webhooks.models import Delivery
from webhooks.service.sending import (
    EACH_OWNER,
    EACH_SUBSCRIPTION,
    WebhookOutbox,
    client,
)

pytestmark = [pytest.mark.deliveries, pytest.mark.django_db]


@pytest.mark.django_db(transaction=True)
def test_a_delivery_whose_sender_died_goes_before_those_that_became_due_meanwhile(alice: Person) -> None:
    with receiving() as receiver:
        subscribed(alice.user, receiver.url)
        happen(alice.user)
        (dead,) = lease_due()
        for _ in range(3 * EACH_SUBSCRIPTION):
            happen(alice.user)
        make_due()
        Delivery.objects.filter(status="pending").update(next_attempt_at=db_now() - LEASE)
        assert deliver() == 1 + 3 * EACH_SUBSCRIPTION
    # Deliveries that are sent at once may arrive in any order.
    first = [one.headers["webhook-id"] for one in receiver.received[: 2 * EACH_SUBSCRIPTION]]
    assert dead.row.event_id in first


def test_ends_that_come_together_are_stored_together(alice: Person) -> None:
    with receiving() as receiver:
        url = receiver.url
    subscribed(alice.user, url)  # nothing listens there: each attempt fails at once
    for _ in range(3 * EACH_SUBSCRIPTION):
        happen(alice.user)
    with CaptureQueriesContext(connection) as queries:
        assert deliver() == 3 * EACH_SUBSCRIPTION
    leases = [one for one in queries if '"attempts" + 1' in one["sql"]]
    assert len(leases) <= EACH_SUBSCRIPTION  # without a moment's wait nearly one for each attempt


@pytest.mark.django_db(transaction=True)
def test_two_senders_never_take_the_same(alice: Person, bob: Person) -> None:
    for owner in (alice, bob):
        for _ in range(4):
            subscribed(owner.user)
    happen(alice.user, bob.user)
    taken = [leased.row.pk for each in at_once(*[lease_due] * 4) for leased in each]
    assert sorted(taken) == sorted(Delivery.objects.values_list("pk", flat=True))
    assert set(Delivery.objects.values_list("attempts", flat=True)) == {1}


def test_no_user_takes_more_than_a_share(alice: Person, bob: Person) -> None:
    crowd = [subscribed(alice.user).subscription for _ in range(6)]
    for _ in range(300):
        happen(alice.user)
    last = subscribed(bob.user).subscription
    happen(bob.user)
    limits = SendLimits(WebhookOutbox(client()))
    leased = lease_due(limits)
    to = [one.row.subscription_id for one in leased]
    assert max(to.count(one.pk) for one in crowd) <= EACH_SUBSCRIPTION
    assert len(to) == EACH_OWNER + 1
    assert last.pk in to
    assert lease_due(limits) == []


def test_a_slow_receiver_does_not_hold_up_the_others(alice: Person, bob: Person) -> None:
    ended = threading.Event()
    with receiving(lambda _: 200 if ended.wait(20) else 500) as slow, receiving() as quick:
        for _ in range(5):
            subscribed(alice.user, slow.url)
        subscribed(bob.user, quick.url)
        for _ in range(4):
            happen(alice.user)
        for _ in range(30):
            happen(bob.user)
        sender = threading.Thread(target=lambda: (quick.heard(30), ended.set()))
        sender.start()
        assert deliver() == 50
        sender.join(20)
        assert ended.is_set()
        assert len(slow.received) == 20


@pytest.mark.django_db(transaction=True)
def test_a_sender_that_must_stop_leaves_the_rest_to_others(alice: Person) -> None:
    ended, stopping = threading.Event(), threading.Event()

    def hang(_: object) -> int:
        stopping.set()
        ended.wait(20)
        return 200

    with receiving(hang) as slow:
        subscribed(alice.user, slow.url)
        happen(alice.user)
        began = time.monotonic()
        assert Sender(WebhookOutbox(client()), stopping).run() == 0
        assert time.monotonic() - began < 8
        assert only_delivery().status == "sending"
        ended.set()
        until(lambda: only_delivery().status == "delivered", "its thread writes the end down", within_s=30)
