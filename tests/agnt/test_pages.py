"""The pages of a network: they are its owner's alone; bookings, revenue, log and rules."""

import re
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from django.test import Client
from django.utils import timezone

from agnt.models import Network, UsageEvent
from agnt.service.keys import mint_key
from tests.agnt.desk_pages import NETWORK, make_booking, text_of
from tests.agnt.network_rows import make_interaction, make_venue
from tests.native.rows import Person, browser

PAGES = ("", "/venues", "/venues/new", "/venues/import", "/keys", "/bookings", "/revenue", "/log", "/rules")


def test_pages_make_no_network(page: Client) -> None:
    assert {page.get(NETWORK + path).status_code for path in PAGES} == {200}
    assert not Network.objects.exists()


def senders_in(page: Client, path: str, senders: Iterable[str]) -> set[str]:
    """The senders among these that a list shows, its filters aside."""
    shown = page.get(NETWORK + path).content.decode()
    table = re.sub(r"<form class=\"filter\".*?</form>", "", shown, flags=re.S)
    return {sender for sender in senders if sender in table}


def test_an_owner_acts_on_a_booking(page: Client, network: Network) -> None:
    booking = make_booking(make_venue(network.owner))
    own = f"{NETWORK}/bookings/{booking.public_id}"
    for wanted, after in (
        ("completed", "pending"),
        ("unknown", "pending"),
        ("confirmed", "confirmed"),
        ("no_show", "no_show"),
    ):
        before = booking.status
        assert page.post(own, {"status": wanted})["Location"] == own
        booking.refresh_from_db()
        assert booking.status == after
        assert ("Nothing is changed" in text_of(page.get(own))) is (after == before)


def test_a_list_offers_what_is_possible_and_is_come_back_to(page: Client, network: Network) -> None:
    booking = make_booking(make_venue(network.owner), user_note="window seat", party_size=2)
    listed = page.get(f"{NETWORK}/bookings?status=pending").content.decode()
    assert 'name="list" value="status=pending"' in listed
    assert re.findall(r'name="status" value="(\w+)"', listed) == ["confirmed", "cancelled"]
    sent = {"status": "confirmed", "list": "status=pending&x=\r\nSet-Cookie: y"}
    back = page.post(f"{NETWORK}/bookings/{booking.public_id}", sent)["Location"]
    assert back == f"{NETWORK}/bookings?status=pending&x=%0D%0ASet-Cookie%3A+y#bookings"
    assert "No booking like this." in text_of(page.get(f"{NETWORK}/bookings?status=pending"))


def test_bookings_are_found_by_status_venue_key_and_sender(page: Client, network: Network) -> None:
    key = mint_key(network.owner, "Trips").key
    make_booking(make_venue(network.owner), key=key, sender="concierge", status="confirmed")
    make_booking(make_venue(network.owner, "the-lawn"))
    for query, found in (
        ("status=confirmed", {"concierge"}),
        ("venue=lawn", {"my_agent_001"}),
        (f"key={key.public_id}", {"concierge"}),
        ("from=my_agent_001", {"my_agent_001"}),
        ("key=none&status=none", {"concierge", "my_agent_001"}),
    ):
        assert senders_in(page, f"/bookings?{query}", ("concierge", "my_agent_001")) == found, query


def test_revenue_is_summed_by_day_customer_key_and_venue(page: Client, network: Network) -> None:
    venue, key, now = make_venue(network.owner), mint_key(network.owner, "Trips").key, timezone.now()
    for number, customer in enumerate(["trips", "trips", "concierge"]):
        of = {"key": key if number else None, "customer": customer, "booking": make_booking(venue)}
        at = now - timedelta(days=8 * (number == 0))
        UsageEvent.objects.create(network=network, amount_cents=25, at=at, **of)
    week, month = (text_of(page.get(f"{NETWORK}/revenue?days={days}")) for days in (7, 30))
    assert "Last 7 days: $0.50, 2 bookings" in week
    assert "Last 30 days: $0.75, 3 bookings" in month
    assert "trips $0.50 2 concierge $0.25 1" in month
    assert "Trips $0.50 2 a key that is gone $0.25 1" in text_of(page.get(f"{NETWORK}/revenue?days=30&by=key"))
    assert "La-Brisa $0.75 3" in text_of(page.get(f"{NETWORK}/revenue?days=30&by=venue"))
    assert "$0.50" in text_of(page.get(NETWORK))


def test_the_log_is_filtered_by_what_a_row_has(page: Client, network: Network) -> None:
    key, venue, now = mint_key(network.owner, "Trips").key, make_venue(network.owner), timezone.now()
    rows: dict[str, dict[str, Any]] = {
        "searcher": {"intent": "booking.search", "status": "ok"},
        "booker": {"intent": "booking.confirm", "status": "circuit_open", "metadata": {"dropped": ["x"]}},
        "repeater": {"intent": "booking.confirm", "status": "duplicate", "key": key},
        "earlier": {"intent": "network.ping", "status": "ok", "at": now - timedelta(days=3)},
    }
    rows["booker"]["venue"] = venue
    for sender, fields in rows.items():
        make_interaction(network, sender=sender, **fields)
    day = (now - timedelta(days=3)).date().isoformat()
    for query, found in (
        ("", set(rows)),
        ("status=ok", {"searcher", "earlier"}),
        ("status=errors", {"booker"}),
        ("status=circuit_open", {"booker"}),
        ("intent=booking.confirm", {"booker", "repeater"}),
        (f"key={key.public_id}", {"repeater"}),
        ("from=searcher", {"searcher"}),
        ("venue=brisa", {"booker"}),
        (f"day={day}", {"earlier"}),
        ("day=yesterday&status=unknown", set(rows)),
    ):
        assert senders_in(page, f"/log?{query}", rows) == found, query
    assert "dropped x" in text_of(page.get(f"{NETWORK}/log"))


def test_a_day_of_the_log_is_one_of_the_visitors_zone(page: Client, network: Network) -> None:
    at = timezone.now().replace(hour=23) - timedelta(days=2)
    make_interaction(network, at, sender="night_owl")
    day, next_day = at.date().isoformat(), (at + timedelta(days=1)).date().isoformat()
    for query, is_found in (
        (f"day={day}", True),
        (f"day={day}&tz=Asia/Makassar", False),
        (f"day={next_day}&tz=Asia/Makassar", True),
    ):
        assert bool(senders_in(page, f"/log?{query}", ["night_owl"])) is is_found, query


def test_the_rules_of_a_network_are_saved(page: Client, alice: Person) -> None:
    rules = {"requires_signature": "on", "accepts_hops": "on", "interactions_kept_days": "30"}
    answer = page.post(f"{NETWORK}/rules", rules)
    assert answer.status_code == 302
    network = Network.objects.get(owner=alice.user)
    assert (network.is_strict, network.requires_signature, network.accepts_hops) == (False, True, True)
    assert network.interactions_kept_days == 30
    assert page.post(f"{NETWORK}/rules", {"interactions_kept_days": "0"}).status_code == 400


def test_the_desk_and_the_documentation_lead_to_the_pages(page: Client) -> None:
    assert f'href="{NETWORK}"' in page.get("/desk").content.decode()
    assert 'href="/demos/agnt/"' in browser().get("/docs").content.decode()
    assert browser().get("/demos/agnt/").status_code == 200
