"""The index of venues: what it finds, in which order, and that it is as quick as lists and searches need."""

import time
import uuid
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from agnt.models import Venue
from agnt.service.venues.index import FOUND_FOR, MOST_EXPIRIES, SearchExpiries, VenueIndex
from agnt.service.venues.texts import TERMS_PER_VENUE, VenueTexts
from agnt.wire.payloads import Search, VenueList

NOW = datetime(2026, 4, 12, 12, tzinfo=UTC)
MANY = 10_000
WORDS = ("sunset", "dinner", "beach", "rooftop", "garden", "quiet", "live", "music", "seafood", "warung")


def venue(slug: str, **fields: Any) -> Venue:
    return Venue(slug=slug, name=fields.pop("name", slug), public_id=uuid.uuid4(), **fields)


def index_of(*venues: Venue) -> VenueIndex:
    return VenueIndex(1, 1, venues, SearchExpiries())


def slugs(found: Any) -> list[str]:
    return [one["slug"] for one in msgspec.json.decode(found.venues)]


def test_each_word_may_be_in_any_field_and_no_word_goes_across_two() -> None:
    index = index_of(
        venue("a", name="La Brisa", description="Sunset Dinner", category="beach club"),
        venue("b", name="Straße", description="dinner", category="beach"),
        venue("c", name="Ärger", description="a\nb", category=""),
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
    index = index_of(venue("a", area="Canggu", city="Badung"), venue("b", area="Ubud", city="50%_x"))
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
    index = index_of(venue("a"))
    assert index.search(Search(), NOW).expires_at == NOW + FOUND_FOR
    assert index.search(Search(), NOW + timedelta(seconds=299)).expires_at == NOW + FOUND_FOR
    assert index.search(Search(limit=1), NOW + timedelta(seconds=299)).expires_at > NOW + FOUND_FOR
    assert index.search(Search(), NOW + timedelta(seconds=300)).expires_at == NOW + 2 * FOUND_FOR


def test_a_search_after_a_change_has_an_end_of_its_own() -> None:
    expiries = SearchExpiries()
    first = VenueIndex(1, 1, [], expiries).search(Search(), NOW)
    for network_id, version in ((1, 2), (2, 1)):
        other = VenueIndex(network_id, version, [], expiries).search(Search(), NOW + timedelta(seconds=1))
        assert other.expires_at > first.expires_at


def test_the_number_of_kept_ends_is_bounded() -> None:
    index = index_of(venue("a"))
    for number in range(MOST_EXPIRIES + 1):
        index.search(Search(query=str(number)), NOW)
    assert len(index._expiries._expiries) == 1


def test_an_empty_network_has_nothing() -> None:
    index = index_of()
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
    index = index_of(*made)
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
    index = index_of(*made, venue("last", name="even rare"))
    assert slugs(index.search(Search(query="even", limit=25), NOW)) == [f"v{2 * nth + 1}" for nth in range(25)]
    assert slugs(index.search(Search(query="even rare"), NOW)) == ["last"]
    assert slugs(index.search(Search(query="odd rare"), NOW)) == []


def test_parts_of_many_terms_are_looked_for_in_one_venue_after_the_other() -> None:
    """There may be more venues in the terms of a part than there are venues."""
    index = index_of(
        *(
            venue(f"v{nth}", name=" ".join(f"aa{(8 * nth + step) % 256}" for step in range(8)))
            for nth in range(1024)
        )
    )
    assert slugs(index.search(Search(query="aa", limit=3), NOW)) == ["v0", "v1", "v2"]
    assert slugs(index.search(Search(query="aa255"), NOW))[:2] == ["v31", "v63"]


def test_texts_of_too_many_terms_are_searched_without_them() -> None:
    most = TERMS_PER_VENUE * 108  # of eight venues
    others = [["a"]] * 7

    def texts_of(count: int) -> VenueTexts:
        return VenueTexts(
            [[" ".join(["needle", *(f"w{number}" for number in range(count - 1))])], *others], str.split
        )

    assert texts_of(most - 1).find_bitmap("needle") == 1
    assert texts_of(most).find_bitmap("needle") is None
    words = " ".join(f"word{number}" for number in range(2 * most))
    index = index_of(venue("a", description=words))
    assert slugs(index.search(Search(query=f"word{2 * most - 1}"), NOW)) == ["a"]
    assert slugs(index.search(Search(query=f"word{2 * most}"), NOW)) == []


LETTERS = st.sampled_from("abß ☕寿")
FIELD = st.text(LETTERS, max_size=6)
MADE = st.lists(st.tuples(FIELD, FIELD, st.sampled_from(["", "a", "bar"])), max_size=40)


@given(made=MADE, query=st.text(LETTERS, max_size=8), location=FIELD, category=st.sampled_from(["", "a", "b"]))
def test_it_finds_what_a_look_at_each_venue_finds(
    made: list[tuple[str, str, str]], query: str, location: str, category: str
) -> None:
    venues = [venue(f"v{nth}", name=one[0], area=one[1], category=one[2]) for nth, one in enumerate(made)]
    index = index_of(*venues)

    def has_words(one: Venue) -> bool:
        fields = [one.name.casefold(), one.category.casefold()]
        return all(any(word in field for field in fields) for word in query.casefold().split())

    in_place = [one for one in venues if location.casefold() in one.area.casefold()]
    expected = [one.slug for one in in_place if has_words(one)]
    assert slugs(index.search(Search(query=query, location=location, limit=25), NOW)) == expected[:25]
    listed = [one.slug for one in in_place if one.category == category or not category]
    assert slugs(index.list_venues(VenueList(location=location, category=category))) == listed
