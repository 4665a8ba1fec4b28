"""API keys: what is stored of one, which are found, and what their senders sign with."""

import hashlib
import hmac
import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.exceptions import ImproperlyConfigured
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection, transaction
from django.utils import timezone

from accounts.authn import digest
from accounts.models import Credential, User
from accounts.quotas import QuotaExceeded
from accounts.sealing import SecretUnreadable
from agnt.models import ApiKey, Network, Venue
from agnt.service.keys import (
    MAX_OVERLAP,
    MIN_OVERLAP,
    MintedKey,
    find_key,
    get_master_key,
    load_signing_keys,
    mint_key,
    reseal_secrets,
    rotate_secret,
)
from agnt.service.networks import find_network, get_or_create_network
from clawbridge.agnt.signing import read_key
from hub.account_data.erasure import close
from hub.jobs import erase_closed
from kit import env
from kit.redaction import without_secrets
from tests.agnt.network_rows import found_key
from tests.native.rows import Person, browser

MASTER = "master-secret-0001"


@pytest.fixture
def made(alice: Person) -> MintedKey:
    return mint_key(alice.user, "one")


def run_mint_token(*arguments: str) -> Any:
    said = StringIO()
    call_command("mint_token", "--login", "alice", "--kind", "agnt", *arguments, stdout=said)
    return said.getvalue()


def test_the_digest_is_that_of_the_wire() -> None:
    stored = "a222f57911fcddd676e388f2e6d63b508ea21067c2adc4e80a5ab6b21d520109"
    assert digest("agnt_live_0123456789abcdef0123456789abcdef") == stored


def test_a_key_has_its_form_and_only_its_digest_is_stored(made: MintedKey) -> None:
    assert made.token.startswith("agnt_live_")
    assert len(made.token) == len("agnt_live_") + 32
    credential = made.key.credential
    assert (credential.digest, credential.prefix) == (digest(made.token), made.token[:14])
    with connection.cursor() as cursor:
        stored = ""
        for table in ("agnt_apikey", "accounts_credential"):
            cursor.execute(f"SELECT * FROM {table}")
            stored += repr(cursor.fetchall())
    assert made.token not in stored
    assert made.secret not in stored
    for shown in (made.key, credential):
        assert made.token not in repr(shown)


def test_a_found_key_says_what_an_envelope_may(alice: Person) -> None:
    rights = {"tier": ApiKey.Tier.PRO, "scope": ApiKey.Scope.BOOKING}
    made = mint_key(alice.user, "one", **rights, customer="acme", senders=["bot-1", "bot-2"])
    network = made.key.network
    Network.objects.filter(pk=network.pk).note_venue_change()
    key = found_key(made.token)
    assert (key.key_id, key.credential_id, key.network_id) == (made.key.pk, made.key.credential_id, network.pk)
    assert (key.owner_id, key.service_user_id) == (alice.user.pk, network.service_user_id)
    assert key.owner_login == alice.user.login
    assert (key.tier, key.scope, key.customer) == ("pro", "booking", "acme")
    assert (key.is_strict, key.requires_signature, key.accepts_hops) == (True, False, False)
    assert key.venues_version == 1
    assert [key.may_send_as(sender) for sender in ("bot-1", "bot-2", "bot-3")] == [True, True, False]
    assert found_key(mint_key(alice.user, "two").token).may_send_as("bot-3")


def test_the_time_of_use_is_stale_until_it_is_stored(made: MintedKey) -> None:
    assert found_key(made.token).is_stale
    Credential.touch([made.key.credential_id])
    assert not found_key(made.token).is_stale


def test_only_live_keys_are_found(alice: Person, bob: Person) -> None:
    good, revoked, expired, suspended = (
        mint_key(user, "key") for user in (alice.user, alice.user, alice.user, bob.user)
    )
    Credential.objects.filter(pk=revoked.key.credential_id).revoke()
    before = timezone.now() - timedelta(milliseconds=1)  # SQLite's clock has milliseconds
    Credential.objects.filter(pk=expired.key.credential_id).update(expires_at=before)
    User.objects.filter(pk=bob.user.pk).update(is_active=False)
    refused = [revoked.token, expired.token, suspended.token]
    refused += [alice.session, alice.app, alice.channel, "agnt_live_"]
    assert [token for token in refused if find_key(token) is not None] == []
    assert find_key(good.token) is not None


def test_a_credential_of_another_kind_with_a_row_of_a_key_is_none(made: MintedKey) -> None:
    Credential.objects.filter(pk=made.key.credential_id).update(kind="app")
    assert find_key(made.token) is None


def test_an_owner_has_one_network_with_a_service_user(alice: Person, bob: Person) -> None:
    assert find_network(alice.user) is None
    one, other = mint_key(alice.user, "one"), mint_key(alice.user, "two")
    assert one.key.network == other.key.network == get_or_create_network(alice.user)
    service_user = one.key.network.service_user
    assert (service_user.is_service, service_user.is_staff, service_user.password) == (True, False, "")
    assert not service_user.credentials.exists()
    assert mint_key(bob.user, "his").key.network.service_user != service_user


def test_keys_count_as_tokens_of_their_owner(alice: Person, settings: Any) -> None:
    settings.TOKENS_PER_OWNER = 3  # alice has an app and a channel token
    mint_key(alice.user, "one", source=Credential.Source.MINT)
    with pytest.raises(QuotaExceeded):
        mint_key(alice.user, "two", source=Credential.Source.MINT)
    assert ApiKey.objects.count() == 1
    mint_key(alice.user, "an operator's")


def test_the_secret_is_derived_from_the_master_and_the_id(alice: Person, settings: Any) -> None:
    settings.A2A_SIGNING_KEY = MASTER
    made = mint_key(alice.user, "one")
    derived = hmac.digest(MASTER.encode(), f"a2a-signing:{made.key.public_id}".encode(), hashlib.sha256)
    assert made.secret == derived.hex()
    assert read_key(made.secret) == derived
    assert load_signing_keys(found_key(made.token)).current == derived


def test_without_a_master_it_is_that_of_the_hub(settings: Any) -> None:
    settings.A2A_SIGNING_KEY = ""
    one = get_master_key()
    assert len(one) == 32
    assert get_master_key() == one
    settings.SECRET_KEY = "another secret key of another hub"
    assert get_master_key() != one


def test_secrets_outlive_their_master(alice: Person, settings: Any) -> None:
    settings.A2A_SIGNING_KEY = MASTER
    made = mint_key(alice.user, "one")
    settings.A2A_SIGNING_KEY = "another master-secret"
    assert load_signing_keys(found_key(made.token)).current.hex() == made.secret


def test_a_short_master_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A2A_SIGNING_KEY", "short")
    with pytest.raises(ImproperlyConfigured, match="A2A_SIGNING_KEY: want at least 16") as refused:
        env.master_key("A2A_SIGNING_KEY")
    assert "short" not in str(refused.value)


def test_an_overlap_has_bounds(alice: Person, subtests: pytest.Subtests) -> None:
    made, second = mint_key(alice.user, "one"), timedelta(seconds=1)
    for overlap in (MIN_OVERLAP - second, MAX_OVERLAP + second):
        with subtests.test(overlap=overlap), pytest.raises(ValueError, match="overlap"):
            rotate_secret(made.key, overlap=overlap)
    assert load_signing_keys(found_key(made.token)).current.hex() == made.secret


def test_secrets_are_sealed_anew_with_a_new_key(made: MintedKey, settings: Any) -> None:
    rotated = rotate_secret(made.key)
    sealed = ApiKey.objects.get(pk=made.key.pk).secret
    settings.WEBHOOK_KEYS = ("the first key of all, long ago made",)
    assert reseal_secrets() == (1, 0)
    assert ApiKey.objects.get(pk=made.key.pk).secret != sealed
    keys = load_signing_keys(found_key(made.token))
    assert [keys.current.hex(), keys.previous.hex()] == [rotated, made.secret]


def test_a_secret_that_no_key_opens_is_unreadable(made: MintedKey) -> None:
    ApiKey.objects.filter(pk=made.key.pk).update(secret="gAAAAdamaged")
    with pytest.raises(SecretUnreadable):
        load_signing_keys(found_key(made.token))


def test_the_command_makes_a_key_and_what_it_needs(db: None) -> None:
    shown = json.loads(run_mint_token("--tier", "pro", "--scope", "booking", "--json"))
    assert shown.keys() == {"token", "login", "kind", "tier", "scope", "customer", "key_id", "signing_secret"}
    assert (shown["login"], shown["kind"], shown["tier"], shown["scope"]) == ("alice", "agnt", "pro", "booking")
    key = found_key(shown["token"])
    assert (key.tier, key.scope, key.senders) == ("pro", "booking", [])
    assert load_signing_keys(key).current.hex() == shown["signing_secret"]
    assert str(ApiKey.objects.get().public_id) == shown["key_id"]
    assert find_network(User.objects.get(login="alice")) is not None


def test_the_command_prints_the_bare_key(db: None) -> None:
    key = found_key(
        run_mint_token("--customer", "acme", "--senders", "bot-1, bot-2", "--expires-in", "1h").strip()
    )
    assert (key.tier, key.scope, key.customer, key.senders) == ("free", "query", "acme", ["bot-1", "bot-2"])
    expires_at = Credential.objects.get(pk=key.credential_id).expires_at
    assert expires_at is not None
    assert timedelta(minutes=59) < expires_at - timezone.now() <= timedelta(hours=1)


def test_the_command_refuses_what_a_key_cannot_have(db: None, subtests: pytest.Subtests) -> None:
    for arguments in (
        "--scope ask",
        "--scope query,booking",
        "--tier gold",
        "--customer " + "x" * 101,
        "--agent alice/helper",
        "--format jwt",
        "--expires-in 5",
        "--kind app --tier pro",
        "--kind session --senders bot",
        "--kind app --scope booking",
    ):
        with subtests.test(arguments=arguments), pytest.raises(CommandError):
            run_mint_token(*arguments.split())
    assert not Credential.objects.exists()


def test_a_key_is_hidden_in_logs(alice: Person) -> None:
    token = mint_key(alice.user, "one").token
    assert token not in without_secrets(f"GET /a2a/v1?key={token}")


def test_the_page_of_the_account_revokes_a_key_and_replaces_none(alice: Person) -> None:
    made, page = mint_key(alice.user, "for acme"), browser(alice.session)
    text = page.get("/account").content.decode()
    assert "for acme" in text
    assert "Revoke for acme" in text
    assert "Replace for acme" not in text
    page.post(f"/account/rotate/{made.key.credential_id}")
    assert Credential.objects.filter(kind="agnt").count() == 1
    page.post(f"/account/revoke/{made.key.credential_id}")
    assert find_key(made.token) is None


def test_an_erased_owner_takes_the_service_user_along(alice: Person, made: MintedKey) -> None:
    service_user = made.key.network.service_user
    close(alice.user.pk)
    assert find_key(made.token) is None
    assert erase_closed() == 1
    assert not Network.objects.exists()
    service_user.refresh_from_db()
    assert (service_user.is_active, service_user.former_login) == (False, "")
    assert service_user.login.startswith("erased-")


def test_a_key_that_is_deleted_leaves_the_network(alice: Person, made: MintedKey) -> None:
    Credential.objects.filter(pk=made.key.credential_id).delete()
    assert not ApiKey.objects.exists()
    assert find_network(alice.user) == made.key.network


def test_a_venue_has_its_names_alone_in_its_network(alice: Person, bob: Person, subtests: pytest.Subtests) -> None:
    network = get_or_create_network(alice.user)
    fields = {"slug": "la-brisa", "agent_name": "brisa-bot", "name": "La Brisa"}
    Venue.objects.create(network=network, **fields)
    Venue.objects.create(network=get_or_create_network(bob.user), **fields)
    Venue.objects.create(network=network, slug="one", name="One")
    Venue.objects.create(network=network, slug="two", name="Two")
    for changes in ({"slug": "LA-BRISA", "agent_name": ""}, {"slug": "other"}):
        with subtests.test(changes=changes), pytest.raises(IntegrityError), transaction.atomic():
            Venue.objects.create(network=network, **fields | changes)
