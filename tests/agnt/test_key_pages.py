"""The pages of API keys: their owner makes, changes and revokes them, and sees what they are used for."""

import re
from datetime import timedelta
from typing import Any

import pytest
from django.test import Client
from django.utils import timezone

from agnt.models import ApiKey, KeyUsage
from agnt.service.keys import find_key, load_signing_keys, mint_key
from tests.agnt.desk_pages import NETWORK, text_of, value_of
from tests.agnt.network_rows import found_key
from tests.native.rows import Person


def test_a_key_is_shown_once_with_its_secret(page: Client, alice: Person) -> None:
    typed = {"name": "Trips", "tier": "pro", "scope": "booking", "customer": "trips"}
    typed |= {"senders": "a_1\nb_2", "days": "9"}
    answer = page.post(f"{NETWORK}/keys", typed)
    token, secret = value_of(answer, "token"), value_of(answer, "secret")
    found = found_key(token)
    assert (found.tier, found.scope, found.customer, found.senders) == ("pro", "booking", "trips", ["a_1", "b_2"])
    assert load_signing_keys(found).current == bytes.fromhex(secret)
    key = ApiKey.objects.get(pk=found.key_id)
    assert timedelta(days=8) < key.credential.expires_at - timezone.now() < timedelta(days=10)  # type: ignore[operator]
    for path in (f"{NETWORK}/keys", f"{NETWORK}/keys/{key.public_id}"):
        shown = page.get(path).content.decode()
        assert "Trips" in shown
        assert "valid until" in shown
        assert token not in shown
        assert secret not in shown


def test_a_refused_key_is_not_made(page: Client, settings: Any, subtests: pytest.Subtests) -> None:
    for typed, said in (
        ({"name": ""}, "This field is required."),
        ({"senders": "no name"}, "no name: want letters, digits"),
        ({"tier": "gold"}, "gold is not one of the available choices"),
        ({"days": "0"}, "greater than or equal to 1"),
    ):
        with subtests.test(typed=typed):
            answer = page.post(f"{NETWORK}/keys", {"name": "Trips", "tier": "free", "scope": "query", **typed})
            assert answer.status_code == 400
            assert said in text_of(answer)
    settings.TOKENS_PER_OWNER = 1
    answer = page.post(f"{NETWORK}/keys", {"name": "Trips", "tier": "free", "scope": "query"})
    assert answer.status_code == 429
    assert "are the most: remove some first." in text_of(answer)
    assert not ApiKey.objects.exists()


def test_what_a_key_may_do_is_changed_on_its_page(page: Client, alice: Person) -> None:
    minted = mint_key(alice.user, "Trips", customer="trips", senders=["a_1"])
    own = f"{NETWORK}/keys/{minted.key.public_id}"
    shown = page.get(own).content.decode()
    assert 'name="customer" value="trips"' in shown
    assert re.search(r'value="free"[^>]* checked', shown)
    typed = {"action": "change", "tier": "pro", "scope": "booking", "customer": "", "senders": "b_2\nc_3"}
    assert page.post(own, typed).status_code == 302
    found = found_key(minted.token)
    assert (found.tier, found.scope, found.senders) == ("pro", "booking", ["b_2", "c_3"])
    assert found.customer == f"key-{minted.key.public_id}"
    assert "Trips is changed" in text_of(page.get(own))
    for wrong, said in (
        ({"tier": "gold"}, "gold is not one of the available choices"),
        ({"senders": "no name"}, "no name: want letters, digits"),
    ):
        answer = page.post(own, typed | wrong)
        assert answer.status_code == 400
        assert said in text_of(answer)
    page.post(own, {"action": "revoke"})
    assert page.post(own, typed | {"tier": "enterprise"}).status_code == 400
    assert ApiKey.objects.get().tier == "pro"


def test_a_new_secret_is_shown_once_and_the_present_one_goes_on(page: Client, alice: Person) -> None:
    minted = mint_key(alice.user, "Trips")
    own = f"{NETWORK}/keys/{minted.key.public_id}"
    answer = page.post(own, {"action": "rotate", "overlap": "3600"})
    found = found_key(minted.token)
    signing = load_signing_keys(found)
    assert signing.current.hex() == value_of(answer, "secret") != minted.secret
    assert signing.previous.hex() == minted.secret
    assert 3500 < signing.previous_until_s - timezone.now().timestamp() < 3700
    assert page.post(own, {"action": "unknown"}).status_code == 400
    assert value_of(answer, "secret") not in page.get(own).content.decode()


def test_a_revoked_key_leaves_the_list_and_stays_readable(page: Client, alice: Person) -> None:
    minted = mint_key(alice.user, "Lost laptop")
    own = f"{NETWORK}/keys/{minted.key.public_id}"
    page.post(own, {"action": "revoke"})
    assert find_key(minted.token) is None
    page.get(f"{NETWORK}/keys")  # says that it was revoked
    assert "Lost laptop" not in text_of(page.get(f"{NETWORK}/keys"))
    assert "Lost laptop" in text_of(page.get(f"{NETWORK}/keys?ended=1"))
    secret_before = ApiKey.objects.get().secret
    assert page.post(own, {"action": "rotate"}).status_code == 400
    assert ApiKey.objects.get().secret == secret_before


def test_usage_today_is_shown_by_key_and_tier(page: Client, alice: Person) -> None:
    for name, calls in (("First", 30), ("Second", 12)):
        key = mint_key(alice.user, name, tier=ApiKey.Tier.PRO).key
        KeyUsage.objects.create(key=key, day=timezone.now().date(), calls=calls)
        KeyUsage.objects.create(key=key, day=timezone.now().date() - timedelta(days=1), calls=1000)
    assert "12 of 10,000 envelopes today" in text_of(page.get(f"{NETWORK}/keys"))
    overview = text_of(page.get(NETWORK))
    assert "Envelopes today 42" in overview
    assert "Pro 2 42 30 10,000" in overview
    assert "Free 0 0 0 100" in overview
    assert "12 1,000" not in (one := text_of(page.get(f"{NETWORK}/keys/{key.public_id}")))
    assert "1,000" in one
