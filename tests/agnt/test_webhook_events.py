"""Webhook events of bookings: who gets them, what they say, and the headers of the AGNT contract."""

import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any

import pytest

from agnt.models import Booking, Network
from agnt.service.bookings import STATUS_RULES, Status, change_status, queue_event
from agnt.service.keys import mint_key, revoke_key
from lab.receivers import Received, Receiver, receiving
from tests.agnt import network_rows
from tests.agnt.network_rows import booked, network_of, venue_of
from tests.native.rows import person
from tests.webhooks.subscriptions import check_signed, deliver, happen, subscribed, subscribed_by_key
from webhooks.models import Delivery
from webhooks.service.outbox import as_json
from webhooks.service.subscriptions import roll_secret
from webhooks.wire import BOOKING_EVENTS, sign_with_time

network = network_rows.network
SECRET = "whsec_test_1"
AT_S = 1775988123
BODY = b'{"id":"evt_1","type":"booking.confirmed","data":{"booking_id":"bk_1","status":"pending"}}'


@pytest.fixture
def receiver(settings: Any) -> Iterator[Receiver]:
    """A receiver of the owner, on this machine."""
    settings.WEBHOOK_ALLOW_PRIVATE = True
    with receiving() as found:
        yield found


def is_signed(one: Received, secret: str) -> bool:
    """True if a request passes the check of the contract's guide for receivers."""
    signed = one.headers["x-agnt-timestamp"].encode() + b"." + one.body
    expected = hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
    return one.headers["x-agnt-signature"] == expected


def test_the_signature_is_that_of_the_vector() -> None:
    signature = sign_with_time(SECRET, AT_S, BODY)
    assert signature == "76bceb12ddf77efe7ccd8fd3d4d66558101930601d8874202db0a65cc0a638bd"


def test_each_status_has_an_event_of_the_catalog() -> None:
    assert {rule.event for rule in STATUS_RULES.values()} == set(BOOKING_EVENTS)


def test_a_confirm_tells_of_a_booking_that_is_pending(network: Network, receiver: Receiver) -> None:
    mine = subscribed(network.owner, receiver.url, events="booking.confirmed")
    venue = venue_of(network)
    booking = booked(network, venue=venue, slot_time="19:30", party_size=2, user_note="my secret birthday")
    assert deliver() == 1
    (one,) = receiver.received
    body = check_signed(one, mine.secret)  # the signatures of all events are there too
    assert is_signed(one, mine.secret)
    assert (body["id"], body["type"]) == (one.headers["webhook-id"], "booking.confirmed")
    assert body["data"] == body["payload"] == {
        "booking_id": str(booking.public_id),
        "venue_id": str(venue.public_id),
        "status": "pending",
        "from": "my_agent_001",
        "slot_id": "",
        "slot_time": "19:30",
        "party_size": 2,
    }  # fmt: skip
    assert b"birthday" not in one.body


def test_each_change_of_the_owner_is_told(network: Network, receiver: Receiver) -> None:
    subscribed(network.owner, receiver.url)
    first, second, third = (booked(network) for _ in range(3))
    for booking in (first, second, third):
        change_status(booking, Status.CONFIRMED)
    change_status(first, Status.CANCELLED)
    change_status(second, Status.COMPLETED)
    change_status(third, Status.NO_SHOW)
    while deliver():
        pass
    told = [json.loads(one.body) for one in receiver.received]
    pairs = sorted((one["type"], one["data"]["status"]) for one in told)
    assert pairs == sorted(
        [("booking.confirmed", "pending"), ("booking.confirmed", "confirmed")] * 3
        + [(f"booking.{status}", status) for status in ("cancelled", "completed", "no_show")]
    )
    assert len({one["id"] for one in told}) == 9


def test_only_the_owner_of_the_network_is_told(network: Network) -> None:
    subscribed(network_of("bo").owner)
    subscribed(person("cleo").user)
    booking = booked(network)
    assert not Delivery.objects.exists()
    subscribed(network.owner, events="booking.no_show")
    subscribed(network.owner, events="booking.cancelled chat.event")
    assert queue_event(network.owner_id, booking, "booking.cancelled") == 1
    assert [one.type for one in Delivery.objects.all()] == ["booking.cancelled"]


def test_the_keys_of_the_customer_are_told(network: Network, receiver: Receiver) -> None:
    of_customer = network.keys.get().credential
    other_keys = {
        "the same customer": mint_key(network.owner, "2", tier="free", scope="full", customer="ana-pays"),
        "another customer": mint_key(network.owner, "3", scope="full", customer="other"),
        "may not book": mint_key(network.owner, "4", scope="query", customer="ana-pays"),
        "another network": mint_key(network_of("bo").owner, "5", scope="full", customer="ana-pays"),
        "revoked": mint_key(network.owner, "6", scope="full", customer="ana-pays"),
    }
    made = {name: subscribed_by_key(one.key.credential) for name, one in other_keys.items()}
    made["its own"] = subscribed_by_key(of_customer, receiver.url)
    made["the owner"] = subscribed(network.owner)
    revoke_key(other_keys["revoked"].key)
    booking = booked(network)
    told = {"its own", "the owner", "the same customer"}
    by_id = {one.subscription.pk: name for name, one in made.items()}
    assert {by_id[one.subscription_id] for one in Delivery.objects.all()} == told
    Delivery.objects.exclude(subscription=made["its own"].subscription).delete()
    assert deliver() == 1
    (one,) = receiver.received
    body = check_signed(one, made["its own"].secret)
    assert is_signed(one, made["its own"].secret)
    assert body["data"]["booking_id"] == str(booking.public_id)

    Delivery.objects.all().delete()
    revoke_key(network.keys.get(credential=of_customer))  # the booking stays the customer's
    change_status(booking, Status.CANCELLED)
    assert {by_id[one.subscription_id] for one in Delivery.objects.all()} == told - {"its own"}

    Delivery.objects.all().delete()
    of_customer.delete()
    gone = Booking.objects.get(pk=booking.pk)
    assert queue_event(network.owner_id, gone, "booking.cancelled") == 1  # to the owner


def test_without_a_webhook_of_a_key_no_key_is_looked_up(network: Network, django_assert_num_queries: Any) -> None:
    booking = booked(network)
    subscribed(network.owner)
    with django_assert_num_queries(2):
        assert queue_event(network.owner_id, booking, "booking.cancelled") == 1
    subscribed_by_key(network.keys.get().credential)
    with django_assert_num_queries(3):
        assert queue_event(network.owner_id, booking, "booking.cancelled") == 2


def test_while_two_secrets_sign_the_header_of_the_contract_has_the_newest(
    network: Network, receiver: Receiver
) -> None:
    first = subscribed(network.owner, receiver.url)
    second = roll_secret(first.subscription.pk)
    assert second is not None
    booked(network)
    deliver()
    (one,) = receiver.received
    check_signed(one, second.secret, first.secret)
    assert is_signed(one, second.secret)


def test_other_events_are_sent_as_before(network: Network, receiver: Receiver) -> None:
    subscribed(network.owner, receiver.url)
    happen(network.owner, type="chat.event", payload={"n": 1})
    deliver()
    (one,) = receiver.received
    assert not [name for name in one.headers if name.startswith("x-agnt")]
    assert list(json.loads(one.body)) == ["eventId", "type", "ts", "payload"]
    ts = json.loads(one.body)["ts"]
    event_id = one.headers["webhook-id"]
    assert one.body.decode() == (
        f'{{"eventId":"{event_id}","type":"chat.event","ts":"{ts}","payload":{as_json({"n": 1})}}}'
    )
