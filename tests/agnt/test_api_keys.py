"""Keys over REST: made, listed with today's calls, revoked, given a new secret; and who may do that."""

from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Credential
from agnt.models import ApiKey
from agnt.service.keys import MintedKey, find_key, load_signing_keys
from clawbridge.agnt.signing import read_key
from tests.agnt.network_rows import DAY, count_calls, found_key, make_key
from tests.native.rows import Person, api, names

KEYS = "/api/v1/network/keys"


@pytest.fixture
def made(alice: Person) -> MintedKey:
    return make_key(alice.user)


def mint_by_rest(person: Person, **body: Any) -> Any:
    return api(person.session).post(KEYS, {"name": "mobile app", **body}, format="json")


def listed(person: Person, **query: Any) -> Any:
    answer = api(person.session).get(KEYS, query)
    assert answer.status_code == 200, answer.content
    return answer.json()["items"]


def rotate(person: Person, key: ApiKey, **body: Any) -> Any:
    return api(person.session).post(f"{KEYS}/{key.public_id}/rotate-secret", body, format="json")


def test_a_key_is_made_and_its_text_and_secret_are_shown_once(alice: Person) -> None:
    answer = mint_by_rest(
        alice, tier="pro", scope="booking", customer="acme", senders=["a1", "a2", "a1"], expires_in=3600
    )
    assert (answer.status_code, answer["Cache-Control"]) == (201, "no-store"), answer.content
    made = answer.json()
    found = found_key(made["key"])
    assert (found.tier, found.scope, found.customer, found.senders) == ("pro", "booking", "acme", ["a1", "a2"])
    assert load_signing_keys(found).current == read_key(made["secret"])
    expires_at = datetime.fromisoformat(made["expiresAt"])
    assert expires_at - datetime.fromisoformat(made["createdAt"]) == timedelta(hours=1)
    [shown] = listed(alice)
    assert shown == {name: value for name, value in made.items() if name not in ("key", "secret")}
    assert made["key"].startswith(shown["prefix"])
    for answer in (api(alice.session).get(KEYS), api(alice.session).get("/api/v1/me")):
        assert made["key"] not in answer.content.decode()
        assert made["secret"] not in answer.content.decode()


def test_a_key_has_defaults_and_counts_as_a_live_token(alice: Person, settings: Any) -> None:
    settings.TOKENS_PER_OWNER = 3  # an app's, a channel's, and one more
    made = mint_by_rest(alice).json()
    assert (made["tier"], made["scope"], made["senders"], made["expiresAt"]) == ("free", "query", [], None)
    assert made["customer"] == f"key-{made['id']}"
    more = mint_by_rest(alice)
    assert (more.status_code, more.json()["error"]) == (429, "quota_exceeded")


WRONG_RIGHTS: dict[str, list[Any]] = {
    "tier": ["gold", None],
    "scope": ["admin", ""],
    "customer": ["x" * 101],
    "senders": ["a1", ["with blanks"], [str(number) for number in range(51)]],
    "secret": ["mine"],
}
WRONG_AT_FIRST: dict[str, list[Any]] = {
    "name": ["", "x" * 101],
    "expires_in": [59, "soon"],
    "key": ["agnt_live_0"],
}


def test_a_wrong_field_is_a_400_that_names_it(alice: Person) -> None:
    for field, values in (WRONG_RIGHTS | WRONG_AT_FIRST).items():
        for value in values:
            answer = mint_by_rest(alice, **{field: value})
            assert (answer.status_code, answer.json()["message"].startswith(field)) == (400, True), answer.content
    assert not ApiKey.objects.exists()


def test_keys_are_listed_with_the_calls_of_today(alice: Person, bob: Person) -> None:
    used, idle = make_key(alice.user, "used", tier="pro").key, make_key(alice.user, "idle").key
    count_calls(used, 7)
    count_calls(used, 9, timezone.now() - DAY)
    count_calls(make_key(bob.user, "his").key, 3)
    assert [(one["name"], one["callsToday"]) for one in listed(alice)] == [("idle", 0), ("used", 7)]
    assert names(listed(alice, tier="pro"), "name") == ["used"]
    assert names(listed(alice, limit=1, offset=1), "name") == ["used"]
    assert idle.public_id != used.public_id


def change(person: Person, key: ApiKey, **body: Any) -> Any:
    return api(person.session).patch(f"{KEYS}/{key.public_id}", body, format="json")


def test_what_a_body_names_is_changed_and_counts_from_the_next_envelope_on(alice: Person) -> None:
    made = make_key(alice.user, customer="acme", senders=["a1"])
    count_calls(made.key, 7)
    for body, expected in (
        ({"tier": "pro"}, ("pro", "query", "acme", ["a1"])),
        ({"scope": "booking", "senders": ["b1", "b2", "b1"]}, ("pro", "booking", "acme", ["b1", "b2"])),
        ({"senders": [], "customer": ""}, ("pro", "booking", f"key-{made.key.public_id}", [])),
        ({}, ("pro", "booking", f"key-{made.key.public_id}", [])),
    ):
        answer = change(alice, made.key, **body)
        assert answer.status_code == 200, answer.content
        found = found_key(made.token)
        assert (found.tier, found.scope, found.customer, found.senders) == expected
        assert answer.json() == listed(alice)[0]
    assert load_signing_keys(found).current == read_key(made.secret)
    assert (answer.json()["callsToday"], "secret" in answer.json()) == (7, False)


def test_a_wrong_change_is_a_400_and_changes_nothing(alice: Person, made: MintedKey) -> None:
    for field, values in (WRONG_RIGHTS | {"expires_in": [60]}).items():
        for value in values:
            assert change(alice, made.key, **{"tier": "pro", field: value}).status_code == 400, (field, value)
    found = found_key(made.token)
    assert (found.tier, found.scope, found.senders) == ("free", "query", [])


def test_a_key_is_revoked_and_its_usage_stays(alice: Person, made: MintedKey) -> None:
    count_calls(made.key, 7)
    for _ in range(2):
        assert api(alice.session).delete(f"{KEYS}/{made.key.public_id}").status_code == 204
    assert find_key(made.token) is None
    assert listed(alice) == []
    [shown] = listed(alice, includeRevoked="true")
    assert (shown["callsToday"], shown["revokedAt"] is not None) == (7, True)
    assert rotate(alice, made.key).status_code == 409
    assert change(alice, made.key, tier="pro").status_code == 409


def test_a_key_that_has_expired_is_listed_as_such_and_not_changed(alice: Person) -> None:
    made = make_key(alice.user, "for a day", lifetime=DAY)
    assert (listed(alice)[0]["name"], find_key(made.token) is not None) == ("for a day", True)
    Credential.objects.filter(pk=made.key.credential_id).update(expires_at=made.key.created_at)
    assert listed(alice) == []
    [shown] = listed(alice, includeRevoked="true")
    assert (shown["expiresAt"] is not None, shown["revokedAt"], find_key(made.token)) == (True, None, None)
    assert change(alice, made.key, tier="pro").status_code == 409
    assert rotate(alice, made.key).status_code == 409


def test_a_new_secret_signs_and_the_one_before_verifies_for_the_overlap(alice: Person, made: MintedKey) -> None:
    answer = rotate(alice, made.key, overlap=600)
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store"), answer.content
    new = answer.json()
    assert new["secret"] != made.secret
    found = found_key(made.token)
    keys = load_signing_keys(found)
    assert (keys.current, keys.previous) == (read_key(new["secret"]), read_key(made.secret))
    until = timezone.now() + timedelta(seconds=600)
    assert abs((ApiKey.objects.get().previous_until or until) - until) < timedelta(minutes=1)
    assert listed(alice)[0]["previousSecretUntil"] == new["previousSecretUntil"]


def test_a_wrong_rotation_is_a_400(alice: Person) -> None:
    key = make_key(alice.user).key
    for body in ({"overlap": 299}, {"overlap": 31 * 86_400}, {"overlap": "x"}, {"secret": "mine"}):
        assert rotate(alice, key, **body).status_code == 400, body
    key.refresh_from_db()
    assert key.secret_number == 1
