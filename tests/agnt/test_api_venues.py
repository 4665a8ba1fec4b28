"""Venues over REST: made, listed, changed, deleted; bad input, names that are taken, and other owners'."""

import uuid
from typing import Any

import pytest

from agents.models import Agent
from agnt.models import Network, Venue
from agnt.service.keys import derive_venue_secrets
from agnt.service.networks import find_network
from tests.agnt.network_rows import make_booking, make_key, make_venue
from tests.native.rows import Person, api, make_agent, names

VENUES = "/api/v1/network/venues"
WHOLE = {
    "slug": "la-brisa",
    "name": "La Brisa",
    "agentId": "agent:la-brisa",
    "description": "On the beach.\nSunsets.",
    "category": "beach club",
    "area": "Echo Beach",
    "city": "Canggu",
    "tags": ["sunset", "seafood"],
    "priceRange": "$$$",
    "referralFeePct": "7.50",
    "priorityRank": 5,
    "active": True,
}


def post(person: Person, **body: Any) -> Any:
    return api(person.session).post(VENUES, {"slug": "one", "name": "One", **body}, format="json")


def patch(person: Person, venue: Venue | str, **body: Any) -> Any:
    public_id = venue.public_id if isinstance(venue, Venue) else venue
    return api(person.session).patch(f"{VENUES}/{public_id}", body, format="json")


def listed(person: Person, **query: Any) -> list[Any]:
    answer = api(person.session).get(VENUES, query)
    assert answer.status_code == 200, answer.content
    return names(answer.json()["items"], "slug")


def version(person: Person) -> int:
    return Network.objects.get(owner=person.user).venues_version


def test_a_venue_is_made_with_its_network_read_and_found_again(alice: Person) -> None:
    assert find_network(alice.user) is None
    answer = post(alice, **WHOLE)
    assert answer.status_code == 201, answer.content
    made = answer.json()
    assert {name: made[name] for name in WHOLE} == WHOLE
    assert (made["agent"], made["url"]) == (None, None)
    assert uuid.UUID(made["id"]) == Venue.objects.get().public_id
    assert api(alice.session).get(f"{VENUES}/{made['id']}").json() == made
    assert api(alice.session).get(VENUES).json() == {"items": [made], "total": 1}


def test_a_venue_has_defaults(alice: Person) -> None:
    made = post(alice).json()
    assert (made["referralFeePct"], made["priorityRank"], made["active"], made["tags"]) == ("7.00", 0, True, [])


def test_without_a_network_there_are_no_venues(alice: Person) -> None:
    assert api(alice.session).get(VENUES).json() == {"items": [], "total": 0}
    assert api(alice.session).get(f"{VENUES}/{uuid.uuid4()}").status_code == 404
    assert find_network(alice.user) is None


WRONG: dict[str, list[Any]] = {
    "slug": ["", "with blanks", "-first", "x" * 81, str(uuid.UUID(int=7)), "a\0b"],
    "name": ["   ", "two\nlines", None],
    "agentId": ["network:agnt", "Network:other", "with blanks"],
    "description": ["\x07", "x" * 4001],
    "category": ["x" * 81],
    "city": ["a\tb"],
    "tags": ["one", ["a;b"], ["x" * 41], [str(number) for number in range(21)]],
    "priceRange": ["$" * 17],
    "referralFeePct": ["100.01", "-1", "7.005", "NaN"],
    "priorityRank": [1_000_001, 1.5],
    "active": ["perhaps"],
    "agent": ["@alice/unknown", "\0"],
    "url": ["ftp://venue.example/", "https://user:pass@venue.example/", "https://127.0.0.1/", "not a url"],
    "venueId": ["1"],
}


def test_a_field_that_is_wrong_is_a_400_that_names_it(alice: Person) -> None:
    venue = make_venue(alice.user, "there")
    for field, value in ((field, value) for field, values in WRONG.items() for value in values):
        for answer in (post(alice, **{field: value}), patch(alice, venue, **{field: value})):
            assert answer.status_code == 400, (field, value)
            assert answer.json()["message"].startswith(field), answer.json()
    assert [one.slug for one in Venue.objects.all()] == ["there"]
    assert version(alice) == 0


@pytest.mark.parametrize("body", [b"[]", b'"x"', b"{", b'{"slug": "a", "slug": "b"}', b'{"name": "\\ud800"}'])
def test_a_body_that_is_no_object_is_a_400(alice: Person, body: bytes) -> None:
    answer = api(alice.session).generic("POST", VENUES, body, content_type="application/json")
    assert answer.status_code == 400, answer.content


def test_slugs_are_unique_in_any_case_and_agent_ids_in_a_network(alice: Person, bob: Person) -> None:
    assert post(alice, slug="Beach", agentId="agent_1").status_code == 201
    assert post(bob, slug="beach", agentId="agent_1").status_code == 201
    for body, field in (({"slug": "bEACH"}, "slug"), ({"slug": "other", "agentId": "agent_1"}, "agentId")):
        answer = post(alice, **body)
        assert (answer.status_code, answer.json()["error"]) == (409, "conflict")
        assert answer.json()["message"].startswith(field)
    other = post(alice, slug="other").json()["id"]
    assert patch(alice, other, slug="BEACH").status_code == 409
    assert patch(alice, other, agentId="agent_1").status_code == 409
    assert patch(alice, other, slug="OTHER").json()["slug"] == "OTHER"


def test_what_a_body_names_is_changed_and_the_rest_stays(alice: Person) -> None:
    made = post(alice, **WHOLE).json()
    before = version(alice)
    changed = patch(alice, made["id"], name="New", agentId=None, active=False).json()
    assert {**made, "name": "New", "agentId": None, "active": False} == {**changed, "updatedAt": made["updatedAt"]}
    assert version(alice) == before + 1
    assert patch(alice, made["id"], name="New").status_code == 200
    assert version(alice) == before + 1, "nothing changed"


def test_a_venue_has_an_agent_of_its_owner(alice: Person, bob: Person) -> None:
    make_agent(alice.user, "hers", access="private")
    make_agent(alice.user, "draft", status="draft")
    for slug, access in (("open", "public"), ("his", "private")):
        make_agent(bob.user, slug, access=access)
    venue = make_venue(alice.user)
    for handle in ("@alice/draft", "Alice/Hers"):
        assert patch(alice, venue, agent=handle).json()["agent"] == f"@{handle.removeprefix('@').lower()}"
    refused = {patch(alice, venue, agent=handle).content for handle in ("@bob/open", "@bob/his", "@bob/absent")}
    assert len(refused) == 1, "absent and not hers look the same"
    assert patch(alice, venue, agent="").json()["agent"] is None
    Agent.objects.get(handle="alice/hers").soft_delete()
    assert patch(alice, venue, agent="alice/hers").status_code == 400


def test_a_venue_has_an_agent_or_a_url(alice: Person) -> None:
    make_agent(alice.user, "helper")
    venue = make_venue(alice.user)
    both = {"agent": "alice/helper", "url": "https://venue.example/a2a"}
    assert patch(alice, venue, **both).status_code == 400
    assert patch(alice, venue, url=both["url"]).json()["url"] == both["url"]
    answer = patch(alice, venue, agent=both["agent"])
    assert (answer.status_code, "agent" in answer.json()["message"]) == (400, True)
    moved = patch(alice, venue, agent=both["agent"], url="").json()
    assert (moved["agent"], moved["url"]) == ("@alice/helper", None)


def test_a_venue_is_deleted_or_deactivated_when_bookings_name_it(alice: Person) -> None:
    venue = make_venue(alice.user)
    booked = make_venue(alice.user, "booked")
    make_booking(booked, make_key(alice.user).key)
    assert api(alice.session).delete(f"{VENUES}/{venue.public_id}").status_code == 204
    answer = api(alice.session).delete(f"{VENUES}/{booked.public_id}")
    assert (answer.status_code, answer.json()["active"]) == (200, False)
    assert [(one.slug, one.is_active) for one in Venue.objects.all()] == [("booked", False)]
    assert api(alice.session).delete(f"{VENUES}/{venue.public_id}").status_code == 404
    assert version(alice) == 2


def test_venues_are_filtered_and_listed_in_their_order(alice: Person) -> None:
    make_venue(alice.user, "club", city="Canggu", is_active=False)
    make_venue(alice.user, "bar", category="bar", area="Ubud", agent_name="agent_7")
    make_venue(alice.user, "top", city="Canggu", priority_rank=9)
    found: list[tuple[dict[str, Any], str]] = [
        ({}, "top bar club"),
        ({"q": "CLU"}, "club"),
        ({"q": "agent_7"}, "bar"),
        ({"q": "%"}, ""),
        ({"category": "Bar"}, "bar"),
        ({"location": "anggu"}, "top club"),
        ({"location": "ubud"}, "bar"),
        ({"active": "false"}, "club"),
        ({"active": "true"}, "top bar"),
        ({"limit": 1, "offset": 1}, "bar"),
    ]
    assert [" ".join(listed(alice, **query)) for query, _ in found] == [slugs for _, slugs in found]


def test_a_query_that_is_wrong_is_a_400(alice: Person) -> None:
    for query in ({"limit": 0}, {"limit": "x"}, {"offset": -1}, {"active": "x"}, {"q": "a\0"}):
        assert api(alice.session).get(VENUES, query).status_code == 400, query


def test_a_network_has_no_more_venues_than_the_setting_says(alice: Person, settings: Any) -> None:
    settings.VENUES_PER_NETWORK = 2
    assert [post(alice, slug=f"v{number}").status_code for number in range(3)] == [201, 201, 429]
    settings.VENUES_PER_NETWORK = 0
    assert post(alice, slug="v3").status_code == 201


def secret_of(person: Person, venue: Venue) -> Any:
    return api(person.session).get(f"{VENUES}/{venue.public_id}/secret")


def rotate(person: Person, venue: Venue, **body: Any) -> Any:
    return api(person.session).post(f"{VENUES}/{venue.public_id}/secret", body, format="json")


def test_the_secret_of_one_venue_is_read_and_changed(alice: Person) -> None:
    one, other = make_venue(alice.user, "one"), make_venue(alice.user, "other")
    before, others = secret_of(alice, one), secret_of(alice, other).json()
    assert before["Cache-Control"] == "no-store"
    first = before.json()
    assert (first["previous"], first["previousUntil"]) == (None, None)
    second = rotate(alice, one, overlap=300).json()
    assert second["secret"] != first["secret"]
    assert (second["previous"], second["previousUntil"] is not None) == (first["secret"], True)
    assert secret_of(alice, one).json() == second
    assert secret_of(alice, other).json() == others
    one.refresh_from_db()
    assert derive_venue_secrets(one).signing.hex() == first["secret"]
    Venue.objects.filter(pk=one.pk).update(previous_until=one.created_at)  # the overlap is over
    assert secret_of(alice, one).json() == {"secret": second["secret"], "previous": None, "previousUntil": None}
    third = rotate(alice, one, overlap=0).json()
    assert (third["previous"], third["previousUntil"]) == (None, None)
    assert third["secret"] not in (first["secret"], second["secret"])
    for body in ({"overlap": 299}, {"overlap": -1}, {"overlap": 31 * 86_400}, {"secret": "mine"}):
        assert rotate(alice, one, **body).status_code == 400, body
    assert secret_of(alice, one).json() == third
