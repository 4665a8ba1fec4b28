"""Keys in the admin: what they may do is changed there, and nothing else of them."""

import re

from django.contrib.admin.models import LogEntry

from accounts.models import Credential
from agnt.models import ApiKey
from agnt.service.keys import find_key, load_signing_keys
from agnt.wire.signing import read_key
from tests.agnt.network_rows import DAY, make_key
from tests.native.rows import Person, browser

KEYS = "/admin/agnt/apikey/"


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
        assert (found := find_key(made.token)) is not None
        assert (found.tier, found.scope, found.senders, found.customer) == (*expected, "acme")
    assert load_signing_keys(found).current == read_key(made.secret)
    assert ApiKey.objects.get().credential.name == "trips"
    assert list(LogEntry.objects.values_list("user", flat=True)) == [staff.user.pk, alice.user.pk]


def test_the_end_of_a_key_is_shown(alice: Person) -> None:
    client = browser(alice.session)
    for lifetime, has_end in ((DAY, True), (None, False)):
        key = make_key(alice.user, lifetime=lifetime).key
        page = client.get(f"{KEYS}{key.pk}/change/").content.decode()
        shown = re.search(r'field-expires_at.*?class="readonly">([^<]*)<', page, re.DOTALL)
        assert shown is not None
        assert (shown[1] != "-") == has_end
    assert "column-expires_at" in client.get(KEYS).content.decode()


def test_a_wrong_right_is_refused_in_the_form(alice: Person) -> None:
    made, many = make_key(alice.user, senders=["a1"]), "\n".join("a" * length for length in range(1, 53))
    for wrong in ({"tier": "gold"}, {"scope": ""}, {"senders": "with blanks"}, {"senders": many}):
        typed = {"tier": "pro", "scope": "full", "senders": "", **wrong}
        answer = browser(alice.session).post(f"{KEYS}{made.key.pk}/change/", typed)
        assert (answer.status_code, "errorlist" in answer.content.decode()) == (200, True)
    assert (found := find_key(made.token)) is not None
    assert (found.tier, found.scope, found.senders) == ("free", "query", ["a1"])


def test_a_key_that_has_ended_is_not_changed(alice: Person) -> None:
    client = browser(alice.session)
    for column in ("expires_at", "revoked_at"):
        made = make_key(alice.user)
        Credential.objects.filter(pk=made.key.credential_id).update(**{column: made.key.created_at})
        url = f"{KEYS}{made.key.pk}/change/"
        assert "_save" not in client.get(url).content.decode()
        assert client.post(url, {"tier": "pro", "scope": "full", "senders": ""}).status_code == 403


def test_a_key_of_another_owner_is_not_changed(alice: Person, bob: Person) -> None:
    made = make_key(bob.user)
    url = f"{KEYS}{made.key.pk}/change/"
    browser(alice.session).post(url, {"tier": "enterprise", "scope": "full", "senders": ""})
    assert (found := find_key(made.token)) is not None
    assert (found.tier, found.scope) == ("free", "query")
