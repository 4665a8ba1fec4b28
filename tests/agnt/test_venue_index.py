"""The index of venues: what it finds, in which order, and that it is as quick as lists and searches need."""

import time
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec

from agnt.models import Venue
from agnt.payloads import Search, VenueList
from agnt.venue_index import ANSWERS_KEPT, FOUND_FOR, VenueIndex

NOW = datetime(2026, 4, 12, 12, tzinfo=UTC)
MANY = 10_000
WORDS = ("sunset", "dinner", "beach", "rooftop", "garden", "quiet", "live", "music", "seafood", "warung")


def venue(slug: str, **fields: Any) -> Venue:
    return Venue(slug=slug, name=fields.pop("name", slug), public_id=uuid.uuid4(), **fields)


def slugs(found: Any) -> list[str]:
    return [one["slug"] for one in msgspec.json.decode(found.venues)]


def test_each_word_may_be_in_any_field_and_no_word_goes_across_two() -> None:
    index = VenueIndex(
        1,
        [
            venue("a", name="La Brisa", description="Sunset Dinner", category="beach club"),
            venue("b", name="Straße", description="dinner", category="beach"),
            venue("c", name="Ärger", description="a\nb", category=""),
        ],
    )
    for query, expected in (
        ("dinner", ["a", "b"]),
        ("DINNER brisa", ["a"]),
        ("beach dinner", ["a", "b"]),
        ("strasse", ["b"]),
        ("ÄRGER", ["c"]),
        ("brisasunset", []),
        ("dinnerbeach", []),
        ("  ", ["a", "b", "c"]),
        ("clubstra", []),
    ):
        assert slugs(index.search(Search(query=query), NOW)) == expected, query


def test_a_place_is_a_part_of_the_area_or_the_city() -> None:
    index = VenueIndex(1, [venue("a", area="Canggu", city="Badung"), venue("b", area="Ubud", city="50%_x")])
    for location, expected in (
        ("cang", ["a"]),
        ("bad", ["a"]),
        ("ud", ["b"]),
        ("u", ["a", "b"]),
        ("CangguBadung", []),
        ("canggu badung", []),
        ("%", ["b"]),
        ("_", ["b"]),
    ):
        assert slugs(index.list_venues(VenueList(location=location))) == expected, location


def test_a_search_is_kept_five_minutes_with_its_end() -> None:
    index = VenueIndex(1, [venue("a")])
    first = index.search(Search(), NOW)
    assert first.expires_at == NOW + FOUND_FOR
    assert index.search(Search(), NOW + timedelta(seconds=299)) is first
    later = index.search(Search(), NOW + timedelta(seconds=300))
    assert later.expires_at == NOW + 2 * FOUND_FOR


def test_the_number_of_kept_answers_is_bounded() -> None:
    index = VenueIndex(1, [venue("a")])
    for number in range(3 * ANSWERS_KEPT):
        index.search(Search(query=str(number)), NOW)
        index.list_venues(VenueList(location=str(number)))
    assert len(index._searches) <= ANSWERS_KEPT
    assert len(index._lists) <= ANSWERS_KEPT


def test_an_empty_network_has_nothing() -> None:
    index = VenueIndex(1, [])
    assert slugs(index.search(Search(query="x"), NOW)) == slugs(index.list_venues(VenueList())) == []


def test_ten_thousand_venues_are_searched_in_time() -> None:
    made = [
        venue(
            f"v{number}",
            name=f"Venue {number}",
            description=" ".join(WORDS[(number * step) % 10] for step in (1, 3, 7)) + " ☕ " * 10,
            area=f"Area {number % 100}",
            city="Badung",
            referral_fee_pct=Decimal("7.00"),
        )
        for number in range(MANY)
    ]
    index = VenueIndex(1, made)
    queries = [Search(query=f"venue {9_000 + number}", location="badung") for number in range(40)]
    queries += [Search(query=f"nowhere-{number}") for number in range(40)]
    queries += [Search(query=word, location=f"area {number}") for number, word in enumerate(WORDS)]
    took = []
    for query in queries:
        began = time.process_time()
        index.search(query, NOW)
        took.append(time.process_time() - began)
    assert sorted(took)[int(len(took) * 0.95)] < 0.02
    assert slugs(index.search(queries[0], NOW)) == ["v9000"]


def test_frequent_words_are_found_in_each_venue_that_has_them() -> None:
    made = [venue(f"v{number}", name="even" if number % 2 else "odd") for number in range(2_000)]
    index = VenueIndex(1, [*made, venue("last", name="even rare")])
    assert slugs(index.search(Search(query="even", limit=25), NOW)) == [f"v{2 * nth + 1}" for nth in range(25)]
    assert slugs(index.search(Search(query="even rare"), NOW)) == ["last"]
    assert slugs(index.search(Search(query="odd rare"), NOW)) == []
