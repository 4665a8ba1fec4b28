"""Bookings: what a confirm writes, and which statuses an owner can give them."""

from functools import partial

import pytest
from django.db import connection, transaction
from django.test.utils import CaptureQueriesContext

from agnt.models import Booking, Network, UsageEvent
from agnt.service.bookings import (
    STATUS_RULES,
    StatusRefused,
    change_status,
    list_actions,
    list_bookings,
    record_booking,
)
from tests.agnt import network_rows
from tests.agnt.network_rows import booked, network_of, order_of, venue_of
from tests.racing import at_once
from tests.webhooks.subscriptions import subscribed
from webhooks.models import Delivery

pytestmark = pytest.mark.django_db
network = network_rows.network
Status = Booking.Status
ALLOWED = {
    ("pending", "confirmed"),
    ("pending", "cancelled"),
    ("confirmed", "cancelled"),
    ("confirmed", "completed"),
    ("confirmed", "no_show"),
}


def types() -> list[str]:
    return list(Delivery.objects.order_by("pk").values_list("type", flat=True))


def test_a_confirm_writes_a_pending_booking_with_one_charge_of_25_cents(network: Network) -> None:
    venue = venue_of(network)
    booking = booked(
        network, venue=venue, slot_id="s1", slot_time="19:30", party_size=2, user_note="window", customer="acme"
    )
    stored = Booking.objects.get()
    assert stored.pk == booking.pk
    assert (stored.status, stored.venue, stored.sender, stored.slot_id) == ("pending", venue, "my_agent_001", "s1")
    assert (stored.slot_time, stored.party_size, stored.user_note) == ("19:30", 2, "window")
    charge = UsageEvent.objects.get()
    assert (charge.booking_id, charge.amount_cents, charge.customer) == (stored.pk, 25, "acme")
    assert (charge.network, charge.key_id, charge.invoice_id) == (network, stored.key_id, None)
    assert charge.at == stored.created_at


def test_an_order_takes_few_statements(network: Network) -> None:
    subscribed(network.owner)
    order = order_of(network)
    with transaction.atomic(), CaptureQueriesContext(connection) as captured:
        record_booking(order, network.owner_id, "acme")
    statements = [one["sql"].split(" (")[0] for one in captured.captured_queries]
    assert len(statements) <= 4, statements
    assert UsageEvent.objects.count() == Delivery.objects.count() == 1


def test_nothing_of_a_confirm_stays_when_its_transaction_fails(network: Network) -> None:
    subscribed(network.owner)
    order = order_of(network)

    def confirm() -> None:
        with transaction.atomic():
            record_booking(order, network.owner_id, "acme")
            raise RuntimeError("the answer cannot be stored")

    with pytest.raises(RuntimeError):
        confirm()
    assert not Booking.objects.exists()
    assert not UsageEvent.objects.exists()
    assert not Delivery.objects.exists()


def test_an_owner_moves_a_booking_along_the_documented_states(network: Network, subtests: pytest.Subtests) -> None:
    subscribed(network.owner)
    pairs = [(before, after) for before in Status.values for after in STATUS_RULES]
    for before, after in pairs:
        with subtests.test(before=before, after=after):
            booking = booked(network)
            Booking.objects.filter(pk=booking.pk).update(status=before)
            Delivery.objects.all().delete()
            if (before, after) in ALLOWED:
                changed = change_status(booking, after)
                assert (changed.status, types()) == (after, [f"booking.{after}"])
                assert changed.updated_at > booking.updated_at
            elif before == after:
                assert change_status(booking, after).status == before
                assert not types()
            else:
                with pytest.raises(StatusRefused) as refused:
                    change_status(booking, after)
                assert refused.value.status == before
                assert not types()
            booking.refresh_from_db()
            assert booking.status == (after if (before, after) in ALLOWED else before)
    assert UsageEvent.objects.count() == len(pairs)  # the charges stay


def test_a_booking_that_was_deleted_since_it_was_found_is_not_changed(network: Network) -> None:
    booking = booked(network, venue=venue_of(network), customer="acme")
    UsageEvent.objects.all().delete()
    Booking.objects.all().delete()
    with pytest.raises(StatusRefused):
        change_status(booking, Status.CONFIRMED)


def test_a_page_offers_what_is_possible(subtests: pytest.Subtests) -> None:
    booking = booked(network_of("ana"))
    assert list_actions(booking) == [Status.CONFIRMED, Status.CANCELLED]
    booking.status = Status.CONFIRMED
    assert list_actions(booking) == [Status.CANCELLED, Status.COMPLETED, Status.NO_SHOW]
    for ended in (Status.CANCELLED, Status.COMPLETED, Status.NO_SHOW):
        with subtests.test(ended=ended):
            booking.status = ended
            assert not list_actions(booking)
    assert Status.PENDING not in STATUS_RULES
    with pytest.raises(ValueError, match="pending"):
        change_status(booking, Status.PENDING)


def test_a_booking_of_another_network_is_not_listed() -> None:
    mine, theirs = booked(network_of("ana")), booked(network_of("bo"))
    assert list(list_bookings(mine.network.owner)) == [mine]
    assert list(list_bookings(theirs.network.owner)) == [theirs]


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("rivals", [[Status.COMPLETED, Status.NO_SHOW], [Status.CANCELLED] * 2])
def test_of_two_changes_at_once_one_stands_and_both_know_which(network: Network, rivals: list[Status]) -> None:
    subscribed(network.owner)
    booking = booked(network)
    change_status(booking, Status.CONFIRMED)
    Delivery.objects.all().delete()

    def act(status: Status) -> str:
        try:
            return change_status(booking, status).status
        except StatusRefused as refused:
            return refused.status

    seen = at_once(*(partial(act, status) for status in rivals))
    assert seen == [Booking.objects.get().status] * 2
    assert types() == [f"booking.{seen[0]}"]
