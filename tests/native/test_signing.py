"""The hub's signing key: one for all, sealed at rest, rotated without breaking what is signed."""

import io
import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from typing import Any

import pytest
import rfc8785
from a2a.utils._jcs import canonicalize
from django.core.management import CommandError, call_command
from django.db import connection, connections
from django.test import Client
from django.utils import timezone
from joserfc import jws
from joserfc.jwk import KeySet

from a2a_bridge.surface import cards as strict
from a2a_bridge.surface.cards import UsageToday
from accounts import sealing, signing
from accounts.models import SigningKey
from tests.native.rows import Person, make_agent

PUBLIC_URL = "https://hub.example"


def verified(compact: str) -> bytes:
    """The payload of what verifies with the public keys."""
    keys = KeySet.import_key_set(json.loads(json.dumps(signing.public_keys())))
    return jws.deserialize_compact(compact, keys, algorithms=["ES256"]).payload


def run(command: str) -> str:
    said = io.StringIO()
    call_command(command, stdout=said)
    return said.getvalue()


@pytest.mark.django_db
def test_what_is_signed_verifies_with_the_public_keys() -> None:
    compact = signing.sign(b"a payload", {"typ": "JOSE"})
    assert verified(compact) == b"a payload"
    header = jws.extract_compact(compact.encode()).headers()
    assert header == {"alg": "ES256", "kid": signing.public_keys()["keys"][0]["kid"], "typ": "JOSE"}


@pytest.mark.django_db
def test_a_rotated_key_signs_no_more_but_verifies_for_thirty_days() -> None:
    old = signing.sign(b"old", {})
    [first] = signing.public_keys()["keys"]
    assert first["kid"] not in run("rotate_signing_key")
    new = signing.sign(b"new", {})
    assert (verified(old), verified(new)) == (b"old", b"new")
    kids = [key["kid"] for key in signing.public_keys()["keys"]]
    assert len(kids) == 2
    assert kids[1] == first["kid"]
    assert SigningKey.objects.get(kid=first["kid"]).sealed == ""
    SigningKey.objects.filter(kid=first["kid"]).update(retired_at=timezone.now() - timedelta(days=30, seconds=1))
    assert [key["kid"] for key in signing.public_keys()["keys"]] == kids[:1]
    run("rotate_signing_key")
    assert not SigningKey.objects.filter(kid=first["kid"]).exists()


@pytest.mark.django_db
def test_the_database_holds_no_private_key() -> None:
    signing.sign(b"", {})
    row = SigningKey.objects.get()
    private = json.loads(sealing.unseal(row.sealed, signing.PURPOSE))
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM accounts_signingkey")
        assert private["d"] not in repr(cursor.fetchall())
    assert private["d"] not in str(row) + repr(row)


@pytest.mark.django_db
def test_a_new_secret_key_needs_the_old_one_until_the_keys_are_sealed_anew(settings: Any) -> None:
    signing.sign(b"", {})
    old, settings.SECRET_KEY = settings.SECRET_KEY, "another secret key for the hub, made much later"
    with pytest.raises(signing.NoKey):
        signing.sign(b"", {})
    with pytest.raises(CommandError, match="rotate_signing_key"):
        run("rotate_webhook_keys")
    settings.SECRET_KEY_FALLBACKS = [old]
    run("rotate_webhook_keys")
    settings.SECRET_KEY_FALLBACKS = []
    assert verified(signing.sign(b"again", {})) == b"again"


@pytest.mark.django_db
def test_a_card_without_a_readable_key_is_unsigned_and_rotating_mends_it(alice: Person, settings: Any) -> None:
    make_agent(alice.user)
    path = "/api/a2a/v1/agents/alice/helper/v1/.well-known/agent-card.json"
    assert "signatures" in Client().get(path).json()
    settings.SECRET_KEY = "another secret key for the hub, made much later"
    answer = Client().get(path)
    assert (answer.status_code, "signatures" in answer.json()) == (200, False)
    run("rotate_signing_key")
    assert "signatures" in Client().get(path).json()


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("call", [lambda: signing.sign(b"x", {}), signing.rotate], ids=["first use", "rotation"])
def test_of_many_who_make_a_key_at_once_one_wins(call: Any) -> None:
    barrier = threading.Barrier(8)

    def make(_: int) -> None:
        try:
            barrier.wait()
            call()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(make, range(8)))
    assert SigningKey.objects.filter(retired_at=None).count() == 1


@pytest.mark.django_db
def test_the_extended_card_tells_a_caller_more(alice: Person) -> None:
    agent = make_agent(alice.user, daily_budget=10, wait_s=900, agent_style="task-generating")
    found = strict.find_extended_card(agent.pk, alice.user.pk, PUBLIC_URL, reply_wait_s=60.0)
    assert found is not None
    assert found["signatures"]
    public = strict.strict_card(agent, UsageToday(), PUBLIC_URL)
    card = strict.extended_card(agent, UsageToday(queries=12, online=True), PUBLIC_URL, reply_wait_s=60.0)
    mine, theirs = (one["capabilities"].pop("extensions")[0]["params"] for one in (card, public))
    assert card == public
    assert mine == theirs | {
        "queriesToday": 12,
        "online": True,
        "budgetLeft": 0,
        "concurrencyCap": 5,
        "replyWaitS": 60,
        "waitS": 900,
        "agentStyle": "task-generating",
    }
    agent.wait_s = None
    shown = strict.extended_card(agent, UsageToday(queries=3), PUBLIC_URL, reply_wait_s=60.0)
    params = shown["capabilities"]["extensions"][0]["params"]
    assert (params["waitS"], params["budgetLeft"]) == (60, 7)
    agent.soft_delete()
    assert strict.find_extended_card(agent.pk, alice.user.pk, PUBLIC_URL, reply_wait_s=60.0) is None


def test_canonical_json_is_that_of_the_rfc_as_the_official_sdk_writes_it() -> None:
    value = {"\ue000": 1, "\U0001f600": 2, "a": ['\x1f\t"\\/é', True, None, -3, {}], "A": {"b": 0, "a": 1e21}}
    wanted = '{"A":{"a":1e+21,"b":0},"a":["\\u001f\\t\\"\\\\/é",true,null,-3,{}],"\U0001f600":2,"\ue000":1}'
    assert rfc8785.dumps(value).decode() == canonicalize(value) == wanted
