"""Rules, bookings, usage and interactions of a network over REST."""

import uuid
from datetime import UTC, datetime, timedelta
from typing import Any

from django.utils import timezone

from agnt.models import Booking, Network
from agnt.service.bookings import STATUS_RULES
from agnt.service.networks import find_network, get_or_create_network
from tests.agnt.network_rows import DAY, count_calls, make_booking, make_interaction, make_key, make_venue
from tests.native.rows import Person, api

NETWORK = "/api/v1/network"
RULES = {"strict": True, "requiresSignature": False, "acceptsHops": False, "interactionsKeptDays": 7}


def get(person: Person, address: str = "", **query: Any) -> Any:
    answer = api(person.session).get(NETWORK + address, query)
    assert answer.status_code == 200, answer.content
    return answer.json()


def patch(person: Person, address: str, **body: Any) -> Any:
    return api(person.session).patch(NETWORK + address, body, format="json")


def test_rules_are_read_and_changed_one_by_one(alice: Person, bob: Person) -> None:
    assert get(alice) == RULES
    assert find_network(alice.user) is None, "reading makes none"
    wanted = {"strict": False, "requiresSignature": True, "acceptsHops": True, "interactionsKeptDays": 30}
    for number, (name, value) in enumerate(wanted.items(), start=1):
        changed = {**RULES, **dict(list(wanted.items())[:number])}
        assert patch(alice, "", **{name: value}).json() == changed
        assert get(alice) == changed
    assert patch(alice, "").json() == wanted
    assert get(bob) == RULES


def test_a_rule_that_is_wrong_is_a_400(alice: Person) -> None:
    wrong = {"strict": None, "acceptsHops": "via", "owner": 1, "venuesVersion": 1}
    bodies = [{name: value} for name, value in wrong.items()]
    for body in (*bodies, *({"interactionsKeptDays": days} for days in (0, 401, 1.5))):
        assert patch(alice, "", **body).status_code == 400, body
    assert not Network.objects.exists()


def test_a_booking_is_listed_read_and_moved_along(alice: Person) -> None:
    venue, key = make_venue(alice.user), make_key(alice.user).key
    booking = make_booking(venue, key, slot_time="19:30", party_size=2, user_note="window")
    [shown] = get(alice, "/bookings")["items"]
    assert shown == get(alice, f"/bookings/{booking.public_id}")
    assert (shown["venueId"], shown["keyId"]) == (str(venue.public_id), str(key.public_id))
    assert (shown["venueSlug"], shown["slotId"]) == ("la-brisa", None)
    assert (shown["slotTime"], shown["partySize"]) == ("19:30", 2)
    assert (shown["status"], shown["chargedUsd"], shown["userNote"]) == ("pending", "0.25", "window")
    while actions := shown["actions"]:
        answer = patch(alice, f"/bookings/{booking.public_id}", status=actions[0])
        assert (answer.status_code, answer.json()["status"]) == (200, actions[0])
        shown = answer.json()
    booking.refresh_from_db()
    assert booking.status == shown["status"] != "pending"
    same = patch(alice, f"/bookings/{booking.public_id}", status=shown["status"])
    assert same.status_code == 200, "again is fine"


def test_a_status_that_a_booking_cannot_get_is_a_409_and_one_that_none_gets_a_400(alice: Person) -> None:
    booking = make_booking(make_venue(alice.user), make_key(alice.user).key)
    late = next(status for status, rule in STATUS_RULES.items() if Booking.Status.PENDING not in rule.before)
    answer = patch(alice, f"/bookings/{booking.public_id}", status=late)
    assert (answer.status_code, answer.json()["message"]) == (409, "the booking is pending")
    for body in ({"status": "pending"}, {"status": "paid"}, {"status": None}, {"status": late, "x": 1}):
        assert patch(alice, f"/bookings/{booking.public_id}", **body).status_code == 400
    unchanged = patch(alice, f"/bookings/{booking.public_id}")
    assert unchanged.json()["status"] == "pending", "nothing to change is fine"
    booking.refresh_from_db()
    assert booking.status == "pending"


def test_bookings_are_filtered(alice: Person) -> None:
    now = timezone.now()
    beach, bar = make_venue(alice.user, "beach"), make_venue(alice.user, "bar")
    one, two = make_key(alice.user, "one").key, make_key(alice.user, "two").key
    old = make_booking(beach, one, now - 2 * DAY, status="cancelled", sender="old")
    new = make_booking(bar, two, now)

    def found(**query: Any) -> list[str]:
        return [item["id"] for item in get(alice, "/bookings", **query)["items"]]

    assert found() == [str(new.public_id), str(old.public_id)]
    assert found(limit=1, offset=1) == [str(old.public_id)]
    for query in (
        {"status": "cancelled"},
        {"venueId": str(beach.public_id)},
        {"keyId": str(one.public_id)},
        {"sender": "old"},
        {"until": (now - DAY).isoformat()},
    ):
        assert found(**query) == [str(old.public_id)], query
    assert found(since=(now - DAY).isoformat()) == [str(new.public_id)]
    assert found(venueId=str(uuid.uuid4())) == []
    for wrong in ({"status": "paid"}, {"venueId": "x"}, {"since": "yesterday"}, {"sender": "a\0"}):
        assert api(alice.session).get(f"{NETWORK}/bookings", wrong).status_code == 400


def test_usage_and_revenue_by_day_count_each_utc_day_once(alice: Person, bob: Person) -> None:
    last = datetime(2026, 3, 10, 23, 59, 59, 999_999, tzinfo=UTC)
    venue, one, two = make_venue(alice.user), make_key(alice.user, "1").key, make_key(alice.user, "2").key
    for moment, key in ((last, one), (last + timedelta(microseconds=1), one), (last - DAY, two)):
        make_booking(venue, key, moment)
    count_calls(one, 5, last)
    count_calls(two, 7, last)
    count_calls(one, 9, last - 2 * DAY)
    make_booking(make_venue(bob.user), make_key(bob.user).key, last)
    days = {"first": "2026-03-08", "last": "2026-03-10"}
    shown = get(alice, "/usage", **days)
    assert [tuple(day.values()) for day in shown["items"]] == [
        ("2026-03-08", 9, 0, "0.00"),
        ("2026-03-09", 0, 1, "0.25"),
        ("2026-03-10", 12, 1, "0.25"),
    ]
    assert (shown["calls"], shown["bookings"], shown["revenueUsd"]) == (21, 2, "0.50")
    of_key = get(alice, "/usage", keyId=str(two.public_id), **days)
    assert (of_key["calls"], of_key["bookings"]) == (7, 1)
    for stranger in (str(one.public_id), str(uuid.uuid4())):
        assert api(bob.session).get(f"{NETWORK}/usage", {"keyId": stranger}).status_code == 404


def test_usage_has_the_last_thirty_days_unless_asked_otherwise(alice: Person) -> None:
    shown = get(alice, "/usage")
    assert len(shown["items"]) == 30
    assert shown["revenueUsd"] == "0.00"
    assert len(get(alice, "/usage", first="2024-01-01", last="2024-12-31")["items"]) == 366
    for wrong in (
        {"first": "2024-01-01", "last": "2025-01-01"},
        {"first": "2024-01-02", "last": "2024-01-01"},
        {"last": "9999-12-31"},
        {"last": "0001-01-01"},
        {"first": "today"},
        {"keyId": "x"},
    ):
        assert api(alice.session).get(f"{NETWORK}/usage", wrong).status_code == 400, wrong


def test_interactions_are_read_in_parts_newest_first(alice: Person, bob: Person) -> None:
    network, now = get_or_create_network(alice.user), timezone.now()
    made = [make_interaction(network, now - timedelta(seconds=number // 2)) for number in range(5)]
    make_interaction(get_or_create_network(bob.user))
    wanted = [row.pk for row in sorted(made, key=lambda row: (row.at, row.pk), reverse=True)]
    seen: list[int] = []
    query: dict[str, Any] = {"limit": 2}
    while True:
        part = get(alice, "/interactions", **query)
        assert len(part["items"]) <= 2
        seen += [item["id"] for item in part["items"]]
        if part["next"] is None:
            break
        query["before"] = part["next"]
    assert seen == wanted


def test_interactions_are_filtered_and_name_what_they_are_about(alice: Person, bob: Person) -> None:
    venue, key = make_venue(alice.user), make_key(alice.user).key
    booking, now = make_booking(venue, key), timezone.now()
    about = {"key": key, "venue": venue, "booking": booking, "sender": "agent_7", "metadata": {"userAgent": "x"}}
    one = make_interaction(venue.network, now - DAY, intent="booking.confirm", status="circuit_open", **about)
    make_interaction(venue.network, now)
    for query in (
        {"keyId": str(key.public_id)},
        {"venueId": str(venue.public_id)},
        {"sender": "agent_7"},
        {"intent": "booking.confirm"},
        {"status": "circuit_open"},
        {"until": (now - DAY / 2).isoformat()},
    ):
        [shown] = get(alice, "/interactions", **query)["items"]
        assert shown["id"] == one.pk, query
    assert (shown["keyId"], shown["bookingId"]) == (str(key.public_id), str(booking.public_id))
    assert (shown["venueId"], shown["metadata"]) == (str(venue.public_id), {"userAgent": "x"})
    assert get(bob, "/interactions", keyId=str(key.public_id)) == {"items": [], "next": None}
    for wrong in ({"before": "x"}, {"before": "9-9-9"}, {"limit": 501}, {"keyId": "x"}, {"since": "x"}):
        answer = api(alice.session).get(f"{NETWORK}/interactions", wrong)
        assert answer.status_code == 400, wrong
