"""Subscriptions that an API key owns: what is queued for them, and what is sent to them."""

from typing import Any

import pytest

from accounts.models import Credential
from kit.clock import db_now
from kit.outbox import SendLimits
from tests.native.rows import Person
from tests.webhooks.subscriptions import happen, lease_due, mint_key, only_delivery, subscribed, subscribed_by_key
from webhooks.models import Delivery
from webhooks.service.sending import EACH_KEY, EACH_SUBSCRIPTION, WebhookOutbox, client

pytestmark = [pytest.mark.deliveries, pytest.mark.django_db]


def test_a_key_is_told_of_what_names_it_alone(alice: Person, bob: Person) -> None:
    first, second, other = (mint_key(one.user) for one in (alice, alice, bob))
    for key in (first, second, other):
        subscribed_by_key(key)
    assert happen(alice.user) == 0
    assert happen(alice.user, credentials=[other.pk]) == 0  # of another user
    assert happen(alice.user, credentials=[first.pk]) == 1
    assert only_delivery().subscription.credential == first
    subscribed(alice.user)
    assert happen(alice.user, credentials=[first.pk, second.pk]) == 3


def test_credentials_are_read_only_if_a_key_wants_the_event(alice: Person, django_assert_num_queries: Any) -> None:
    key = mint_key(alice.user)
    subscribed_by_key(key, events="booking.cancelled")
    subscribed(alice.user)
    named = Credential.objects.filter(pk=key.pk).values_list("pk", flat=True)
    with django_assert_num_queries(2):
        assert happen(alice.user, type="booking.confirmed", credentials=named) == 1
    with django_assert_num_queries(3):
        assert happen(alice.user, type="booking.cancelled", credentials=named) == 2


def test_no_key_takes_more_than_a_share(alice: Person) -> None:
    """Not even with many webhooks: the owner and the other keys share the rest."""
    keys = [mint_key(alice.user) for _ in range(2)]
    for key in keys:
        for _ in range(6):
            subscribed_by_key(key)
    mine = subscribed(alice.user).subscription
    for _ in range(20):
        happen(alice.user, credentials=[key.pk for key in keys])
    limits = SendLimits(WebhookOutbox(client()))
    leased = [one.row.subscription for one in lease_due(limits)]
    assert [one.credential_id for one in leased].count(keys[0].pk) == EACH_KEY
    assert len(leased) == 2 * EACH_KEY + EACH_SUBSCRIPTION
    assert leased.count(mine) == EACH_SUBSCRIPTION
    assert lease_due(limits) == []


def test_what_waits_for_a_key_that_ended_is_not_sent(alice: Person) -> None:
    ended = {"revoked_at": db_now()}, {"expires_at": db_now()}
    for fields in ({}, *ended):
        key = mint_key(alice.user)
        subscribed_by_key(key)
        happen(alice.user, credentials=[key.pk])
        Credential.objects.filter(pk=key.pk).update(**fields)
    live = Delivery.objects.earliest("pk")
    assert [one.row for one in lease_due()] == [live]
