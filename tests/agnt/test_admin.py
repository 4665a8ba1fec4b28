"""Networks in the admin: owners change their own venues, revoke their keys and move their bookings along."""

import re
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.test import Client

from accounts.models import Credential
from agnt.models import ApiKey, Booking, Network, Venue
from agnt.service.keys import find_key, load_signing_keys
from agnt.service.networks import get_or_create_network
from agnt.service.venues.editing import note_venue_change
from clawbridge.agnt.signing import read_key
from tests.agnt.network_rows import DAY, found_key, make_booking, make_key, make_venue
from tests.native.admin import act
from tests.native.desk import text
from tests.native.rows import Person, browser, make_agent

ADMIN = "/admin/agnt/"
KEYS = f"{ADMIN}apikey/"
VENUES = f"{ADMIN}venue/"
FORM = {"slug": "one", "name": "One", "referral_fee_pct": "7", "priority_rank": "0", "is_active": "on"}


def version(person: Person) -> int:
    return Network.objects.get(owner=person.user).venues_version


def test_an_owner_adds_changes_and_deletes_venues(alice: Person) -> None:
    make_agent(alice.user, "helper")
    client = browser(alice.session)
    added = client.post(f"{VENUES}add/", {**FORM, "tags": "a\r\nb", "agent": "@alice/helper"})
    assert added.status_code == 302
    venue = Venue.objects.get()
    assert (venue.network.owner, venue.tags, str(venue.agent)) == (alice.user, ["a", "b"], "@alice/helper")
    url = f"{VENUES}{venue.pk}/change/"
    assert 'value="@alice/helper"' in text(client, url)
    assert client.post(url, {**FORM, "name": "New", "url": "https://venue.example/"}).status_code == 302
    venue.refresh_from_db()
    assert (venue.name, venue.tags, venue.agent, venue.url) == ("New", [], None, "https://venue.example/")
    assert version(alice) == 2
    assert client.post(f"{VENUES}{venue.pk}/delete/", {"post": "yes"}).status_code == 302
    assert not Venue.objects.exists()
    assert version(alice) == 3


def test_a_wrong_field_is_refused_in_the_form(alice: Person, bob: Person) -> None:
    make_agent(bob.user, "hidden", access="private")
    wrong = {"slug": "with blanks", "name": "\x07", "agent": "@bob/hidden", "url": "ftp://venue.example/"}
    for field, value in (wrong | {"tags": "\n".join(map(str, range(21)))}).items():
        answer = browser(alice.session).post(f"{VENUES}add/", {**FORM, field: value})
        assert (answer.status_code, "errorlist" in answer.content.decode()) == (200, True), field
    assert not Venue.objects.exists()


def test_a_taken_slug_and_a_full_network_are_said(alice: Person, settings: Any) -> None:
    make_venue(alice.user, "ONE")
    client = browser(alice.session)
    assert "Not saved: another venue has one" in client.post(f"{VENUES}add/", FORM, follow=True).content.decode()
    settings.VENUES_PER_NETWORK = 1
    full = client.post(f"{VENUES}add/", {**FORM, "slug": "two"}, follow=True).content.decode()
    assert "1 are the most" in full
    assert Venue.objects.count() == 1


def test_a_venue_with_bookings_is_deactivated_and_actions_switch_venues(alice: Person) -> None:
    venue, client = make_venue(alice.user), browser(alice.session)
    make_booking(venue, make_key(alice.user).key)
    answer = act(client, VENUES, "delete_selected", venue, post="yes")
    assert "Deactivated, because bookings name them" in answer.content.decode()
    venue.refresh_from_db()
    assert not venue.is_active
    act(client, VENUES, "activate", venue)
    venue.refresh_from_db()
    assert venue.is_active
    act(client, VENUES, "deactivate", venue)
    venue.refresh_from_db()
    assert not venue.is_active
    assert version(alice) == 3


def test_the_rules_are_changed_and_the_version_of_the_venues_is_not(alice: Person) -> None:
    network = get_or_create_network(alice.user)
    note_venue_change(network)
    url = f"{ADMIN}network/{network.pk}/change/"
    changed = {"requires_signature": "on", "accepts_hops": "on", "interactions_kept_days": "9"}
    forged = {"owner": "1", "venues_version": "0"}
    assert browser(alice.session).post(url, changed | forged).status_code == 302
    network.refresh_from_db()
    assert (network.is_strict, network.requires_signature, network.interactions_kept_days) == (False, True, 9)
    assert network.accepts_hops
    assert (network.owner, network.venues_version) == (alice.user, 1)


@pytest.mark.parametrize("days", ["0", "401"])
def test_the_bounds_of_the_log_hold_in_the_admin_too(alice: Person, days: str) -> None:
    network = get_or_create_network(alice.user)
    url = f"{ADMIN}network/{network.pk}/change/"
    assert "errorlist" in browser(alice.session).post(url, {"interactions_kept_days": days}).content.decode()
    network.refresh_from_db()
    assert network.interactions_kept_days == 7


def test_keys_are_revoked_and_never_shown(alice: Person) -> None:
    made, client = make_key(alice.user), browser(alice.session)
    for path in (KEYS, f"{KEYS}{made.key.pk}/change/"):
        page = text(client, path)
        assert made.key.credential.prefix in page
        assert made.token not in page
        assert made.secret not in page
        assert made.key.secret not in page
    assert client.get(f"{KEYS}?secret__startswith=a").status_code == 400
    for url in (f"{KEYS}add/", f"{KEYS}{made.key.pk}/delete/"):
        assert client.get(url).status_code == 403
    act(client, KEYS, "revoke", made.key)
    assert find_key(made.token) is None


def test_bookings_move_along_and_those_that_cannot_stay(alice: Person) -> None:
    venue, key = make_venue(alice.user), make_key(alice.user).key
    pending, ended = make_booking(venue, key), make_booking(venue, key, status="cancelled")
    answer = act(browser(alice.session), f"{ADMIN}booking/", "confirm", pending, ended).content.decode()
    assert "1 set to confirmed." in answer
    assert "1 cannot get this status" in answer
    assert sorted(Booking.objects.values_list("status", flat=True)) == ["cancelled", "confirmed"]


def test_actions_change_no_rows_of_another_user(alice: Person, bob: Person) -> None:
    """`tests/tenancy/test_pages.py` has the lists and the forms."""
    venue, made = make_venue(bob.user, "his-venue"), make_key(bob.user)
    booking, client = make_booking(venue, made.key), browser(alice.session)
    act(client, VENUES, "deactivate", venue)
    act(client, VENUES, "delete_selected", venue, post="yes")
    act(client, KEYS, "revoke", made.key)
    act(client, f"{ADMIN}booking/", "cancel", booking)
    for row in (venue, booking):
        row.refresh_from_db()
    assert (venue.is_active, booking.status, find_key(made.token) is not None) == (True, "pending", True)


def test_what_a_key_may_do_is_changed_as_by_rest_and_logged(alice: Person, staff: Person) -> None:
    made = make_key(alice.user, "trips", customer="acme", senders=["a1"], lifetime=DAY)
    url, rights = f"{KEYS}{made.key.pk}/change/", {"tier": "pro", "scope": "booking"}
    page = browser(staff.session).get(url).content.decode()
    assert ">a1</textarea>" in page.replace("\n", "")
    for person, typed, expected in (
        (alice, rights | {"senders": "b1\r\nb2\r\nb1"}, ("pro", "booking", ["b1", "b2"])),
        (staff, rights | {"tier": "free", "senders": ""}, ("free", "booking", [])),
    ):
        forged = {"customer": "mallory", "name": "other", "network": "9", "secret": "mine", "previous_until": "x"}
        assert browser(person.session).post(url, {**typed, **forged}).status_code == 302
        found = found_key(made.token)
        assert (found.tier, found.scope, found.senders, found.customer) == (*expected, "acme")
    assert load_signing_keys(found).current == read_key(made.secret)
    assert ApiKey.objects.get().credential.name == "trips"
    assert list(LogEntry.objects.values_list("user", flat=True)) == [staff.user.pk, alice.user.pk]


def test_the_end_of_a_key_is_shown(alice: Person, page: Client) -> None:
    for lifetime, has_end in ((DAY, True), (None, False)):
        key = make_key(alice.user, lifetime=lifetime).key
        form = text(page, f"{KEYS}{key.pk}/change/")
        shown = re.search(r'field-expires_at.*?class="readonly">([^<]*)<', form, re.DOTALL)
        assert shown is not None
        assert (shown[1] != "-") == has_end
    assert "column-expires_at" in text(page, KEYS)


def test_a_wrong_right_is_refused_in_the_form(alice: Person, subtests: pytest.Subtests) -> None:
    made, many = make_key(alice.user, senders=["a1"]), "\n".join("a" * length for length in range(1, 53))
    for wrong in ({"tier": "gold"}, {"scope": ""}, {"senders": "with blanks"}, {"senders": many}):
        with subtests.test(changes=wrong):
            typed = {"tier": "pro", "scope": "full", "senders": "", **wrong}
            answer = browser(alice.session).post(f"{KEYS}{made.key.pk}/change/", typed)
            assert (answer.status_code, "errorlist" in answer.content.decode()) == (200, True)
    found = found_key(made.token)
    assert (found.tier, found.scope, found.senders) == ("free", "query", ["a1"])


def test_a_key_that_has_ended_is_not_changed(alice: Person, page: Client) -> None:
    for column in ("expires_at", "revoked_at"):
        made = make_key(alice.user)
        Credential.objects.filter(pk=made.key.credential_id).update(**{column: made.key.created_at})
        url = f"{KEYS}{made.key.pk}/change/"
        assert "_save" not in text(page, url)
        assert page.post(url, {"tier": "pro", "scope": "full", "senders": ""}).status_code == 403
