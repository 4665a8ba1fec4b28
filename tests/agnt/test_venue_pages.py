"""The pages of venues: their owner adds, changes, finds, imports and exports them."""

from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from agnt.models import Breaker, Cancellation, Network, Venue
from agnt.service.keys import derive_venue_secrets
from tests.agnt.desk_pages import NETWORK, export, text_of, value_of
from tests.agnt.network_rows import make_venue
from tests.native.rows import Person, make_agent

State = Cancellation.State
FIELDS = {"name": "La Brisa", "slug": "la-brisa", "referral_fee_pct": "7", "priority_rank": "0", "is_active": "on"}


def test_a_venue_is_added_changed_and_taken_out(page: Client, alice: Person) -> None:
    agent = make_agent(alice.user)
    typed = {**FIELDS, "tags": "sunset\r\ndinner", "agent": f"@{agent.handle}", "agent_name": "venue_agent"}
    assert page.post(f"{NETWORK}/venues/new", typed)["Location"] == f"{NETWORK}/venues"
    venue = Venue.objects.get()
    assert (venue.name, venue.tags) == ("La Brisa", ["sunset", "dinner"])
    assert (venue.agent, venue.is_active) == (agent, True)
    own = f"{NETWORK}/venues/{venue.public_id}"
    shown = page.get(own).content.decode()
    assert f'value="@{agent.handle}"' in shown
    assert "sunset\ndinner" in shown
    page.post(own, {**FIELDS, "name": "La Brisa Bali", "url": "https://venue.example/a2a"})
    venue.refresh_from_db()
    assert (venue.name, venue.agent, venue.url) == ("La Brisa Bali", None, "https://venue.example/a2a")
    version = Network.objects.get().venues_version
    for action, is_active in (("deactivate", False), ("activate", True)):
        assert page.post(own, {"action": action})["Location"] == own
        assert Venue.objects.get().is_active is is_active
    assert Network.objects.get().venues_version == version + 2
    assert page.post(own, {"action": "delete"})["Location"] == f"{NETWORK}/venues"
    assert not Venue.objects.exists()


@pytest.mark.parametrize("has_agent", [True, False])
def test_the_secret_of_a_venue_is_shown_and_changed(page: Client, alice: Person, *, has_agent: bool) -> None:
    asked = {"agent": make_agent(alice.user)} if has_agent else {"url": "https://venue.example/a2a"}
    venue = make_venue(alice.user, **asked)
    own, secret = f"{NETWORK}/venues/{venue.public_id}", derive_venue_secrets(venue).newest.hex()
    assert secret not in page.get(own).content.decode()
    answer = page.post(own, {"action": "secret"})
    assert answer.status_code == 200
    assert value_of(answer, "secret") == secret
    answer = page.post(own, {"action": "rotate", "overlap": "300"})
    newest = value_of(answer, "secret")
    assert newest != secret
    assert value_of(answer, "previous") == secret
    venue.refresh_from_db()
    assert derive_venue_secrets(venue).signing.hex() == secret
    assert "Until" in text_of(page.get(own))
    answer = page.post(own, {"action": "rotate", "overlap": "0"})
    venue.refresh_from_db()
    assert derive_venue_secrets(venue).signing.hex() == value_of(answer, "secret") not in (secret, newest)


def test_a_venue_that_is_not_asked_has_no_secret_on_its_page(page: Client, network: Network) -> None:
    venue = make_venue(network.owner)
    assert "Signing secret" not in text_of(page.get(f"{NETWORK}/venues/{venue.public_id}"))


def test_the_page_of_a_venue_shows_what_it_was_told_to_cancel(page: Client, network: Network) -> None:
    own, other = (make_venue(network.owner, word, url=f"https://{word}.example/a2a") for word in ("own", "other"))
    rows = {state: Cancellation.objects.create(network=network, venue=own, state=state) for state in State}
    Cancellation.objects.filter(pk=rows[State.GIVEN_UP].pk).update(attempts=78, last_error="no connection")
    address = f"{NETWORK}/venues/{own.public_id}"
    shown = text_of(page.get(address))
    for words in ("to be told", "acknowledged", "given up", "78 attempts", "no connection"):
        assert words in shown
    assert str(rows[State.ASKING].public_id) not in shown
    for venue, row, is_sent in (
        (other, State.GIVEN_UP, False),
        (own, State.TOLD, False),
        (own, State.GIVEN_UP, True),
    ):
        sent = {"action": "retry", "booking": str(rows[row].public_id)}
        said = text_of(page.post(f"{NETWORK}/venues/{venue.public_id}", sent, follow=True))
        assert ("is told again" in said) is is_sent
    given_up = Cancellation.objects.get(pk=rows[State.GIVEN_UP].pk)
    assert (given_up.state, given_up.ended_at) == (State.OWED, None)


def test_a_refused_venue_says_what_is_wrong_and_keeps_what_was_typed(
    page: Client, network: Network, subtests: pytest.Subtests
) -> None:
    make_venue(network.owner, "taken")
    for typed, said in (
        ({"slug": "no slug"}, "Want letters, digits and any of . _ -"),
        ({"slug": "TAKEN"}, "Another venue has TAKEN."),
        ({"agent": "@owner/unknown"}, "There is no such agent of yours."),
        ({"referral_fee_pct": "101"}, "Want a number from 0 to 100"),
        ({"name": ""}, "This field is required."),
    ):
        with subtests.test(typed=typed):
            answer = page.post(f"{NETWORK}/venues/new", {**FIELDS, "city": "Bali", **typed})
            assert answer.status_code == 400
            assert said in text_of(answer)
            assert 'value="Bali"' in answer.content.decode()
    assert Venue.objects.get().slug == "taken"


def test_venues_are_found_by_words_category_place_and_state(page: Client, network: Network) -> None:
    make_venue(network.owner, "la-brisa", category="restaurant", area="Canggu")
    make_venue(network.owner, "the-lawn", category="beach club", city="Bali", is_active=False)
    Breaker.objects.create(network=network, venue=Venue.objects.get(slug="la-brisa"), opened_at_s=1)
    assert "circuit open" in text_of(page.get(f"{NETWORK}/venues"))
    for query, found in (
        ("q=LAWN", {"The-Lawn"}),
        ("category=restaurant", {"La-Brisa"}),
        ("location=ali", {"The-Lawn"}),
        ("state=active", {"La-Brisa"}),
        ("state=inactive&q=brisa", set()),
        ("state=unknown", {"La-Brisa", "The-Lawn"}),
    ):
        said = text_of(page.get(f"{NETWORK}/venues?{query}"))
        assert {name for name in ("La-Brisa", "The-Lawn") if name in said} == found, query


def test_the_pages_of_a_list_keep_its_filters(page: Client, network: Network) -> None:
    for number in range(51):
        make_venue(network.owner, f"v{number}", city="Bali")
    assert "?location=Bali&amp;page=2#venues" in page.get(f"{NETWORK}/venues?location=Bali").content.decode()
    assert "1 venue" in text_of(page.get(f"{NETWORK}/venues?q=v50"))


def upload(page: Client, text: str, **fields: str) -> Any:
    file = SimpleUploadedFile("venues.csv", text.encode(), "text/csv")
    return page.post(f"{NETWORK}/venues/import", {"file": file, **fields})


@pytest.mark.django_db(transaction=True)  # another thread reads the file
def test_an_import_reports_its_wrong_rows_and_an_export_is_imported_again(page: Client) -> None:
    rows = "slug,name,priority_rank\nla-brisa,La Brisa,5\nthe-lawn,,1\n"
    answer = upload(page, rows)
    assert answer.status_code == 400
    assert "Nothing was imported 1 row is wrong" in text_of(answer)
    assert "3 name A venue has a name." in text_of(answer)
    assert not Venue.objects.exists()
    assert "1 venue added, 0 changed" in text_of(upload(page, rows, skips_bad_rows="on"))
    assert f'href="{NETWORK}/venues.csv"' in page.get(f"{NETWORK}/venues").content.decode()
    again = upload(page, export(page))
    assert "0 venues added, 0 changed, 1 as it was" in text_of(again)
    assert Venue.objects.get().priority_rank == 5


def test_a_file_that_is_none_is_refused_whole(page: Client) -> None:
    answer = upload(page, "slug,name,colour\nx,y,z\n")
    assert (answer.status_code, "Nothing was imported. Line 1:" in text_of(answer)) == (400, True)
