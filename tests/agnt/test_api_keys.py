"""Keys over REST: made, listed with today's calls, revoked, given a new secret; and who may do that."""

import json
import uuid
from datetime import datetime, timedelta
from typing import Any

import pytest
from django.utils import timezone

from accounts.models import Credential
from accounts.tokens import TokenLimits, mint
from agnt.models import ApiKey
from agnt.service.keys import find_key, load_signing_keys, mint_key
from agnt.wire.signing import read_key
from tests.agnt.network_rows import DAY, count_calls, make_key
from tests.native.rows import Person, api, names

KEYS = "/api/v1/network/keys"


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
    found = find_key(made["key"])
    assert found is not None
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


def test_a_key_has_defaults(alice: Person) -> None:
    made = mint_by_rest(alice).json()
    assert (made["tier"], made["scope"], made["senders"], made["expiresAt"]) == ("free", "query", [], None)
    assert made["customer"] == f"key-{made['id']}"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", ""),
        ("name", "x" * 101),
        ("tier", "gold"),
        ("scope", "admin"),
        ("customer", "x" * 101),
        ("senders", "a1"),
        ("senders", ["with blanks"]),
        ("senders", [str(number) for number in range(51)]),
        ("expires_in", 59),
        ("expires_in", "soon"),
        ("key", "agnt_live_" + "0" * 32),
    ],
)
def test_a_wrong_field_is_a_400_that_names_it(alice: Person, field: str, value: Any) -> None:
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
        assert (found := find_key(made.token)) is not None
        assert (found.tier, found.scope, found.customer, found.senders) == expected
        assert answer.json() == listed(alice)[0]
    assert load_signing_keys(found).current == read_key(made.secret)
    assert (answer.json()["callsToday"], "secret" in answer.json()) == (7, False)


@pytest.mark.parametrize(
    "body",
    [
        {"tier": "gold"},
        {"tier": None},
        {"scope": ""},
        {"senders": ["with blanks"]},
        {"customer": "x" * 101},
        {"secret": "mine"},
        {"tier": "pro", "expires_in": 60},
    ],
)
def test_a_wrong_change_is_a_400_and_changes_nothing(alice: Person, body: dict[str, Any]) -> None:
    made = make_key(alice.user)
    assert change(alice, made.key, **body).status_code == 400
    assert (found := find_key(made.token)) is not None
    assert (found.tier, found.scope, found.senders) == ("free", "query", [])


def test_a_key_is_revoked_and_its_usage_stays(alice: Person) -> None:
    made = make_key(alice.user)
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


def test_a_new_secret_signs_and_the_one_before_verifies_for_the_overlap(alice: Person) -> None:
    made = make_key(alice.user)
    answer = rotate(alice, made.key, overlap=600)
    assert (answer.status_code, answer["Cache-Control"]) == (200, "no-store"), answer.content
    new = answer.json()
    assert new["secret"] != made.secret
    found = find_key(made.token)
    assert found is not None
    keys = load_signing_keys(found)
    assert (keys.current, keys.previous) == (read_key(new["secret"]), read_key(made.secret))
    until = timezone.now() + timedelta(seconds=600)
    assert abs((ApiKey.objects.get().previous_until or until) - until) < timedelta(minutes=1)
    assert listed(alice)[0]["previousSecretUntil"] == new["previousSecretUntil"]


@pytest.mark.parametrize(
    "body", [{"overlap": 299}, {"overlap": 31 * 86_400}, {"overlap": "x"}, {"secret": "mine"}]
)
def test_a_wrong_rotation_is_a_400(alice: Person, body: dict[str, Any]) -> None:
    key = make_key(alice.user).key
    assert rotate(alice, key, **body).status_code == 400
    key.refresh_from_db()
    assert key.secret_number == 1


def test_keys_of_other_owners_are_as_absent_as_those_that_are_not(alice: Person, bob: Person) -> None:
    made = make_key(alice.user)
    make_key(bob.user)
    for public_id in (made.key.public_id, uuid.uuid4()):
        url = f"{KEYS}/{public_id}"
        for answer in (
            api(bob.session).patch(url, {"tier": "pro"}, format="json"),
            api(bob.session).delete(url),
            api(bob.session).post(f"{url}/rotate-secret", {}, format="json"),
        ):
            assert (answer.status_code, answer.json()["message"]) == (404, "no such key")
    assert find_key(made.token) is not None


def test_a_limited_token_lists_keys_and_makes_none(alice: Person) -> None:
    key = make_key(alice.user).key
    for scope, may_list in (("read", True), ("publish", False), ("ask", False)):
        token = mint(alice.user, Credential.Kind.APP, scope, limits=TokenLimits((scope,))).token
        client = api(token)
        assert (client.get(KEYS).status_code == 200) == may_list
        assert client.post(KEYS, {"name": "more"}, format="json").status_code == 403
        assert client.patch(f"{KEYS}/{key.public_id}", {"tier": "pro"}, format="json").status_code == 403
        assert client.delete(f"{KEYS}/{key.public_id}").status_code == 403
        assert client.post(f"{KEYS}/{key.public_id}/rotate-secret", {}, format="json").status_code == 403
    assert [one.pk for one in ApiKey.objects.all()] == [key.pk]


def test_a_key_opens_no_call_of_its_network(alice: Person) -> None:
    made = mint_key(alice.user, "key", tier=ApiKey.Tier.ENTERPRISE, scope=ApiKey.Scope.FULL)
    for address in ("", "/venues", "/keys", "/bookings", "/usage", "/interactions"):
        assert api(made.token).get(f"/api/v1/network{address}").status_code == 401
        assert api(None).get(f"/api/v1/network{address}").status_code == 401
        assert api(alice.channel).get(f"/api/v1/network{address}").status_code == 401


def test_keys_count_as_live_tokens(alice: Person, settings: Any) -> None:
    settings.TOKENS_PER_OWNER = 3  # an app's, a channel's, and one more
    assert [mint_by_rest(alice).status_code for _ in range(2)] == [201, 429]
    assert json.loads(mint_by_rest(alice).content)["error"] == "quota_exceeded"
