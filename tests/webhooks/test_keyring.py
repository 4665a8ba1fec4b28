"""Secrets at rest: a copy of the database signs nothing, and keys can change."""

import base64
import io
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from accounts.sealing import SecretUnreadable
from tests.native.rows import Person
from tests.webhooks.subscriptions import fresh, subscribed
from webhooks.service.sending import seal_secret, unseal_secret
from webhooks.service.subscriptions import roll_secret
from webhooks.wire import SECRET_PREFIX, new_signing_secret

pytestmark = [pytest.mark.deliveries, pytest.mark.django_db]
SEALED = "sealed anew: secrets of 2 webhooks, credentials for 0 remote servers, 0 push configs,"
SEALED += " 0 entries of sessions, 0 letters, 0 keys of envelopes, signing secrets of 0 AGNT keys\n"
OLD, NEW = "the first key of all, long ago made", "the second key, made much later on"


def rotate() -> str:
    said = io.StringIO()
    call_command("rotate_webhook_keys", stdout=said)
    return said.getvalue()


def test_a_secret_is_32_random_bytes() -> None:
    one, other = new_signing_secret(), new_signing_secret()
    assert one != other
    assert len(base64.b64decode(one.removeprefix(SECRET_PREFIX), validate=True)) == 32


def test_the_database_holds_no_secret(alice: Person) -> None:
    old = subscribed(alice.user)
    new = roll_secret(old.subscription.pk)
    assert new is not None
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM webhooks_subscription")
        stored = repr(cursor.fetchall())
    for secret in (old.secret, new.secret):
        assert secret not in stored
        assert secret.removeprefix(SECRET_PREFIX) not in stored
        assert base64.b64decode(secret.removeprefix(SECRET_PREFIX)).hex() not in stored
    assert str(new.subscription) == f"webhook {new.subscription.pk}"


def test_a_changed_seal_does_not_open() -> None:
    sealed = seal_secret("whsec_x")
    assert unseal_secret(sealed) == "whsec_x"
    with pytest.raises(SecretUnreadable):
        unseal_secret(sealed[:-4] + "AAA=")
    with pytest.raises(SecretUnreadable):
        unseal_secret("whsec_x")


def test_the_newest_key_seals_and_all_of_them_open(settings: Any) -> None:
    first = seal_secret("of the secret key")
    settings.WEBHOOK_KEYS = (OLD,)
    second = seal_secret("of the old key")
    settings.WEBHOOK_KEYS = (NEW, OLD)
    third = seal_secret("of the new key")
    assert [unseal_secret(one)[7:] for one in (first, second, third)] == ["secret key", "old key", "new key"]
    settings.WEBHOOK_KEYS = (NEW,)
    assert unseal_secret(third)
    with pytest.raises(SecretUnreadable):
        unseal_secret(second)


def test_the_secret_key_may_change_with_its_fallback(settings: Any) -> None:
    sealed, before = seal_secret("x"), settings.SECRET_KEY
    settings.SECRET_KEY = NEW
    with pytest.raises(SecretUnreadable):
        unseal_secret(sealed)
    settings.SECRET_KEY_FALLBACKS = [before]
    assert unseal_secret(sealed) == "x"


def test_rotating_lets_the_old_key_go(alice: Person, bob: Person, settings: Any) -> None:
    settings.WEBHOOK_KEYS = (OLD,)
    rolled, plain = subscribed(alice.user), subscribed(bob.user)
    new = roll_secret(rolled.subscription.pk)
    assert new is not None
    settings.WEBHOOK_KEYS = (NEW, OLD)
    assert rotate() == SEALED
    settings.WEBHOOK_KEYS = (NEW,)
    row = fresh(rolled.subscription)
    assert (unseal_secret(row.secret), unseal_secret(row.previous_secret)) == (new.secret, rolled.secret)
    assert unseal_secret(fresh(plain.subscription).secret) == plain.secret
    assert rotate() == SEALED


def test_rotating_says_what_it_cannot_read(alice: Person, settings: Any) -> None:
    settings.WEBHOOK_KEYS = (OLD,)
    lost = fresh(subscribed(alice.user).subscription)
    settings.WEBHOOK_KEYS = (NEW,)
    subscribed(alice.user)
    with pytest.raises(CommandError, match="1 cannot be read"):
        rotate()
    assert fresh(lost).secret == lost.secret
