"""The drift check: bookings without a charge, charges without a confirm; and what is deleted by age."""

import asyncio
import logging
from datetime import timedelta
from typing import Any

import pytest
from prometheus_client import CollectorRegistry, generate_latest

from agnt import jobs
from agnt.models import Booking, Interaction, KeyUsage, Network, SeenEnvelope, SeenSignature, UsageEvent
from agnt.service.figures import find_drift, report_drift
from hub.monitoring.figures import hub_figures
from hub.monitoring.metrics import HubWide
from kit.clock import db_now
from lab.callers import bearer
from lab.hub_process import StartHub
from lab.hub_storage import MakeStorage
from tests.agnt import network_rows
from tests.agnt.network_rows import booked, network_of
from tests.agnt.wire import add_venue, envelope, error_of, mint, new_login, program, result_of

pytestmark = pytest.mark.django_db
network = network_rows.network


def interaction(network: Network, **fields: Any) -> Interaction:
    details = {"at": db_now(), "intent": "booking.confirm", "status": "ok", "http_status": 200, "latency_ms": 3}
    return Interaction.objects.create(network=network, **details | fields)


def confirmed(network: Network) -> Booking:
    """The rows that one transaction of a confirm writes."""
    booking = booked(network)
    interaction(network, booking=booking)
    return booking


def shown() -> list[str]:
    made = CollectorRegistry(auto_describe=False)
    made.register(HubWide(hub_figures()))
    lines = generate_latest(made).decode().splitlines()
    return [line for line in lines if line.startswith(("agnt_metering", "agnt_charges", "agnt_open"))]


def test_confirms_with_their_charges_are_no_drift(network: Network) -> None:
    for _ in range(3):
        confirmed(network)
    assert report_drift() == 0
    assert shown() == [
        'agnt_metering_drift{kind="uncharged"} 0.0',
        'agnt_metering_drift{kind="unconfirmed"} 0.0',
        "agnt_charges_last_hour 3.0",
        "agnt_open_invoices 0.0",
    ]


def test_a_booking_without_a_charge_is_shown_and_named(network: Network, caplog: pytest.LogCaptureFixture) -> None:
    confirmed(network)
    booking = confirmed(network)
    UsageEvent.objects.filter(booking=booking).delete()
    assert shown()[0] == 'agnt_metering_drift{kind="uncharged"} 1.0'
    with caplog.at_level(logging.ERROR):
        assert jobs.check_metering() == 1
    (record,) = caplog.records
    assert record.message == "agnt.metering_drift"
    assert (record.kind, record.bookings) == ("uncharged", str(booking.public_id))  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "fields", [{"status": "duplicate"}, {"status": "internal_error"}, {"intent": "venue.list"}]
)
def test_a_charge_without_a_successful_confirm_is_shown(network: Network, fields: dict[str, str]) -> None:
    confirmed(network)
    interaction(network, booking=booked(network), **fields)
    assert shown()[1] == 'agnt_metering_drift{kind="unconfirmed"} 1.0'
    assert jobs.check_metering() == 1


def test_what_waits_for_its_bill_is_dated(network: Network) -> None:
    assert find_drift().oldest_unbilled_s == 0
    booked(network, at=db_now() - timedelta(hours=30))
    found = find_drift()
    assert 30 * 3600 <= found.oldest_unbilled_s < 31 * 3600
    assert found.charged_last_hour == 0


def test_envelopes_and_signatures_go_when_their_time_is_over(network: Network) -> None:
    for number, minutes in enumerate((-1, 1)):
        expires_at = db_now() + timedelta(minutes=minutes)
        SeenEnvelope.objects.create(
            network=network, sender="a", intent="network.ping", timestamp=str(number), expires_at=expires_at
        )
        SeenSignature.objects.create(network=network, signature=str(number), expires_at=expires_at)
    assert jobs.forget_seen() == 2
    assert [one.timestamp for one in SeenEnvelope.objects.all()] == ["1"]
    assert [one.signature for one in SeenSignature.objects.all()] == ["1"]


def test_interactions_go_when_their_network_keeps_them_no_longer(network: Network) -> None:
    other = network_of("bo")
    Network.objects.filter(pk=other.pk).update(interactions_kept_days=30)
    for one in (network, other):
        interaction(one, at=db_now() - timedelta(days=8))
        interaction(one, at=db_now() - timedelta(days=6))
    assert jobs.forget_interactions() == 1
    assert network.interactions.count() == 1
    assert other.interactions.count() == 2


def test_a_network_keeps_no_more_interactions_than_the_most(network: Network) -> None:
    for minutes in range(5):
        interaction(network, at=db_now() - timedelta(minutes=minutes), sender=str(minutes))
    assert jobs.forget_interactions(most=3) == 2
    assert sorted(one.sender for one in network.interactions.all()) == ["0", "1", "2"]


def test_counts_of_keys_go_by_their_day(network: Network) -> None:
    key = network.keys.get()
    today = db_now().date()
    for days in (0, 400, 402):
        KeyUsage.objects.create(key=key, day=today - timedelta(days=days), calls=1)
    assert jobs.forget_usage(401) == 1
    assert KeyUsage.objects.count() == 2


def test_money_is_never_deleted_by_age(network: Network) -> None:
    booked(network, at=db_now() - timedelta(days=4_000))
    jobs.forget_seen()
    jobs.forget_interactions()
    jobs.forget_usage(1)
    assert (Booking.objects.count(), UsageEvent.objects.count()) == (1, 1)


@pytest.mark.slow
async def test_a_hub_counts_what_it_answers_and_charges(make_storage: MakeStorage, start_hub: StartHub) -> None:
    hub, login = start_hub(make_storage("embedded")), new_login()
    asking = program(hub, await asyncio.to_thread(mint, hub, login))
    add_venue(hub, login, "la-brisa")
    async with asking.client:
        sent = envelope("booking.confirm", {"venue_id": "la-brisa"})
        for _ in range(2):
            assert result_of(await asking.post(sent))["status"] == "pending"
        assert result_of(await asking.send("venue.list"))["count"] == 1
        assert error_of(await asking.send("make.up")) == "unknown_intent"
        assert error_of(await asking.post(envelope(), bearer("agnt_live_" + "0" * 32))) == "unauthorized"
        lines = (await asking.client.get("/metrics")).text.splitlines()
    assert {
        'a2a_requests_total{intent="booking.confirm",status="ok",tier="pro"} 1.0',
        'a2a_requests_total{intent="booking.confirm",status="duplicate",tier="pro"} 1.0',
        'a2a_requests_total{intent="venue.list",status="ok",tier="pro"} 1.0',
        'a2a_requests_total{intent="other",status="unknown_intent",tier="pro"} 1.0',
        'a2a_requests_total{intent="network.ping",status="unauthorized",tier="none"} 1.0',
        "a2a_metered_events_total 1.0",
        "agnt_charges_last_hour 1.0",
    } <= set(lines)
