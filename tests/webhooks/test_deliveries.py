"""The life of a delivery: leased, sent, tried again, given up, sent again."""

import time
from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from kit.clock import db_now
from kit.outbox import JITTER, LEASE, AttemptResult
from lab.receivers import receiving
from tests.native.rows import Person
from tests.racing import at_once
from tests.webhooks.subscriptions import (
    check_signed,
    deliver,
    end_lease,
    fresh,
    happen,
    lease_due,
    make_due,
    only_delivery,
    subscribed,
)
from webhooks import jobs
from webhooks.models import UNHEALTHY_AFTER, Delivery, Subscription
from webhooks.service.sending import (
    EACH_SUBSCRIPTION,
    RETRY_AFTER_S,
    send_again,
)
from webhooks.service.subscriptions import OVERLAP, roll_secret, send_test, unsubscribe
from webhooks.wire import SECRET_PREFIX

pytestmark = [pytest.mark.deliveries, pytest.mark.django_db]
FAILED = AttemptResult(is_success=False, status=500)
FINE = AttemptResult(is_success=True, status=204)


def lease_one() -> Any:
    (leased,) = lease_due()
    return leased


def fail_once() -> None:
    make_due()
    assert end_lease(lease_one(), FAILED)


def test_what_is_sent_is_what_happened_signed(alice: Person) -> None:
    with receiving() as receiver:
        made = subscribed(alice.user, receiver.url)
        happen(alice.user, type="agent.replied", payload={"reply": "ü\u2028\"'"})
        assert deliver() == 1
    (one,) = receiver.received
    sent = only_delivery()
    body = check_signed(one, made.secret)
    assert body == {
        "eventId": sent.event_id,
        "type": "agent.replied",
        "ts": body["ts"],
        "payload": {"reply": "ü\u2028\"'"},
    }
    assert body["ts"].endswith("Z")
    assert one.headers["content-type"] == "application/json"
    assert made.secret.startswith(SECRET_PREFIX)
    assert (sent.status, sent.attempts, sent.last_status, sent.last_error) == ("delivered", 1, 204, "")
    assert sent.delivered_at is not None
    assert sent.next_attempt_at is None
    assert fresh(made.subscription).last_delivery_at == sent.delivered_at
    assert deliver() == 0


def test_whatever_is_not_2xx_is_tried_again(alice: Person) -> None:
    statuses = [299, 301, 307, 400, 404, 410, 429, 500, 503]
    answers = iter(statuses)
    with receiving(lambda _: next(answers)) as receiver:
        subscribed(alice.user, receiver.url)
        for count, status in enumerate(statuses, start=1):
            happen(alice.user)
            deliver()
            one = Delivery.objects.latest("pk")
            expected = "delivered" if status == 299 else "pending"
            assert (one.status, one.attempts, one.last_status) == (expected, 1, status)
            assert len(receiver.received) == count


def test_why_nothing_came_back_is_told(alice: Person) -> None:
    with receiving() as receiver:
        url = receiver.url
    subscribed(alice.user, url)
    happen(alice.user)
    deliver()
    one = only_delivery()
    assert (one.status, one.last_status) == ("pending", None)
    assert "connection failed" in one.last_error


def test_an_address_that_became_private_gets_nothing(alice: Person, settings: Any) -> None:
    with receiving() as receiver:
        subscribed(alice.user, receiver.url)
        happen(alice.user)
        settings.WEBHOOK_ALLOW_PRIVATE = False
        deliver()
        assert receiver.received == []
    assert "private network" in only_delivery().last_error


def test_retries_come_later_and_later_and_then_no_more(alice: Person) -> None:
    one = subscribed(alice.user).subscription
    happen(alice.user)
    event_id = only_delivery().event_id
    for attempt, wait_s in enumerate(RETRY_AFTER_S, start=1):
        fail_once()
        tried = only_delivery()
        left_s = (tried.next_attempt_at - db_now()).total_seconds()
        assert wait_s * (1 - JITTER) - 5 < left_s < wait_s * (1 + JITTER)
        assert (tried.status, tried.attempts, tried.event_id) == ("pending", attempt, event_id)
        assert lease_due() == []
    assert fresh(one).status == "active"
    fail_once()
    tried = only_delivery()
    assert (tried.status, tried.attempts, tried.next_attempt_at) == ("failed", len(RETRY_AFTER_S) + 1, None)
    assert fresh(one).status == "unhealthy"
    make_due()
    assert lease_due() == []


def test_each_attempt_has_the_same_body_and_a_signature_of_its_own(alice: Person) -> None:
    with receiving(lambda _: 500) as receiver:
        made = subscribed(alice.user, receiver.url)
        happen(alice.user)
        deliver()
        time.sleep(1.1)  # the stamp counts whole seconds
        make_due()
        deliver()
        first, second = receiver.received
    assert first.body == second.body
    assert first.headers["webhook-id"] == second.headers["webhook-id"]
    assert first.headers["webhook-timestamp"] < second.headers["webhook-timestamp"]
    check_signed(first, made.secret)
    check_signed(second, made.secret)


def test_twenty_failures_in_a_row_are_unhealthy_and_one_success_heals(alice: Person) -> None:
    one = subscribed(alice.user).subscription
    for number in range(UNHEALTHY_AFTER):
        assert fresh(one).status == "active", number
        happen(alice.user)
        assert end_lease(lease_one(), FAILED)
    ill = fresh(one)
    assert (ill.status, ill.consecutive_failures, ill.last_delivery_at) == ("unhealthy", 20, None)
    happen(alice.user)
    assert end_lease(lease_one(), FINE)
    well = fresh(one)
    assert (well.status, well.consecutive_failures) == ("active", 0)
    assert well.last_delivery_at is not None


def test_a_lease_that_ran_out_is_taken_again_and_the_late_word_does_not_count(alice: Person) -> None:
    subscribed(alice.user)
    happen(alice.user)
    dead = lease_one()
    assert lease_due() == []
    assert dead.until - db_now() > LEASE - timedelta(seconds=10)
    make_due()
    heir = lease_one()
    assert heir.row.event_id == dead.row.event_id
    assert not end_lease(dead, FINE)
    assert only_delivery().status == "sending"
    assert end_lease(heir, FAILED)
    assert (only_delivery().status, only_delivery().attempts) == ("pending", 2)


@pytest.mark.django_db(transaction=True)
def test_the_end_of_a_delivery_and_the_end_of_its_webhook_do_not_wait_for_each_other(alice: Person) -> None:
    """Both lock the webhook first: in a circle, PostgreSQL would fail one of them after a second."""
    for _ in range(10):
        one = subscribed(alice.user).subscription
        for _ in range(EACH_SUBSCRIPTION):
            happen(alice.user)
        ends = [partial(end_lease, leased, FAILED) for leased in lease_due()]
        assert len(ends) == EACH_SUBSCRIPTION
        at_once(partial(unsubscribe, one.pk), *ends)
        assert Delivery.objects.count() == 0


def test_a_suspended_owner_is_told_nothing_more_until_reinstated(alice: Person) -> None:
    subscribed(alice.user)
    happen(alice.user)
    alice.user.is_active = False
    alice.user.save()
    assert lease_due() == []
    alice.user.is_active = True
    alice.user.save()
    assert len(lease_due()) == 1


def test_sent_again_it_starts_over_under_its_id(alice: Person) -> None:
    subscribed(alice.user)
    happen(alice.user)
    event_id = only_delivery().event_id
    for outcome in (FINE, FAILED):
        leased = lease_one()
        assert not send_again(only_delivery())  # it is being sent
        assert only_delivery().attempts == 1
        assert end_lease(leased, outcome)
        assert send_again(only_delivery())
        again = only_delivery()
        assert (again.status, again.attempts, again.event_id) == ("pending", 0, event_id)


def test_after_a_roll_both_secrets_sign_for_a_day(alice: Person) -> None:
    with receiving() as receiver:
        old = subscribed(alice.user, receiver.url)
        new = roll_secret(old.subscription.pk)
        assert new is not None
        assert new.secret != old.secret
        happen(alice.user)
        deliver()
        left = fresh(old.subscription).previous_until - db_now()
        assert OVERLAP - timedelta(minutes=5) < left <= OVERLAP
        Subscription.objects.update(previous_until=db_now())
        happen(alice.user)
        deliver()
        during, after = receiver.received
    check_signed(during, new.secret, old.secret)
    check_signed(after, new.secret)


def test_a_secret_whose_key_is_gone_is_a_failure_that_says_so(alice: Person, settings: Any) -> None:
    one = subscribed(alice.user).subscription
    settings.SECRET_KEY = "another one altogether, since the last was lost"
    happen(alice.user)
    assert deliver() == 1
    assert "roll it" in only_delivery().last_error
    assert roll_secret(one.pk) is not None


def test_a_test_goes_to_its_one_subscription_whatever_it_wants(alice: Person) -> None:
    with receiving() as receiver:
        one = subscribed(alice.user, receiver.url, "agent.denied", routing_name="@desk").subscription
        subscribed(alice.user, receiver.url)
        Subscription.objects.update(status="unhealthy")
        event_id = send_test(one)
        deliver()
        (got,) = receiver.received
    assert got.headers["webhook-id"] == event_id
    assert only_delivery().type == "webhook.test"
    assert fresh(one).status == "active"


def test_what_is_old_and_over_is_forgotten(alice: Person) -> None:
    subscribed(alice.user)
    for _ in range(4):
        happen(alice.user)
    delivered, failed, stuck, waiting = Delivery.objects.order_by("pk")
    Delivery.objects.filter(pk=delivered.pk).update(status="delivered", next_attempt_at=None)
    Delivery.objects.filter(pk=failed.pk).update(status="failed", next_attempt_at=None)
    Delivery.objects.filter(pk=stuck.pk).update(next_attempt_at=db_now() - timedelta(days=2))
    assert jobs.retain(1) == 0
    Delivery.objects.update(queued_at=db_now() - timedelta(days=31))
    assert jobs.retain(32) == 0
    assert jobs.retain(30) == 3
    assert only_delivery() == waiting
