"""App tokens as JWTs: what they say, that the hub knows them by their row alone, and what it refuses to make."""

import base64
import json
import re
import time
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.db import connection
from django.test.utils import CaptureQueriesContext
from joserfc import jws
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, OctKey

from accounts import signing
from accounts.authn import find_holder, presented
from accounts.models import Credential
from accounts.tokens import JWT_TYP, MAX_JWT_LIFETIME, Kind, TokenLimits, mint
from kit.clock import db_now
from kit.redaction import without_secrets
from lab import ROOT
from tests.native.rows import Person, api, browser

pytestmark = pytest.mark.django_db

HUB = "https://hub.example"
DAY_S = 24 * 3600
PAGE = (ROOT / "docs" / "howto" / "verify-a-token.md").read_text()
ONE_AGENT = TokenLimits(("ask",), "bob/helper", timedelta(hours=1), is_jwt=True)
(_CODE,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
RECIPE: dict[str, Any] = {}
exec(_CODE, RECIPE)


@pytest.fixture(autouse=True)
def public_url(settings: Any) -> None:
    settings.PUBLIC_URL = HUB


def claims_of(token: str) -> dict[str, Any]:
    """By the recipe of the how-to."""
    claims: dict[str, Any] = RECIPE["who_holds"](token, json.loads(json.dumps(signing.public_keys())), HUB)
    return claims


def post(person: Person, **body: Any) -> Any:
    return api(person.session).post(
        "/api/v1/auth/apps/mint", {"name": "job", "format": "jwt", **body}, format="json"
    )


def is_known(token: str) -> bool:
    return find_holder(presented({"authorization": f"Bearer {token}"}), "session", "app") is not None


def encoded(value: Any) -> str:
    return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")


def test_its_claims_are_its_row_and_anyone_can_verify_them(alice: Person) -> None:
    answer = post(alice, scopes=["ask:Bob/helper"], expires_in=3600)
    made = answer.json()
    row = Credential.objects.get(pk=made["id"])
    assert (answer.status_code, made["format"], made["scopes"], made["agent"]) == (
        201,
        "jwt",
        ["ask"],
        "bob/helper",
    )
    claims = claims_of(made["token"])
    assert claims["exp"] - claims["iat"] == 3600
    assert claims["iat"] == int(row.created_at.timestamp())
    assert {name: claims[name] for name in claims.keys() - {"iat", "exp"}} == {
        "iss": HUB,
        "aud": HUB,
        "sub": str(alice.user.pk),
        "login": "alice",
        "scope": "ask:bob/helper",
        "jti": str(row.pk),
    }
    may_ask = RECIPE["may_ask"]
    assert (may_ask(claims, "bob/Helper"), may_ask(claims, "bob/other")) == (True, False)
    listed = api(alice.session).get("/api/v1/tokens").json()["items"][0]
    assert (listed["id"], listed["format"], listed["prefix"]) == (row.pk, "jwt", f"JWT {row.pk}")
    assert made["token"] not in repr(vars(row))


def test_a_verifier_refuses_what_is_for_something_else(alice: Person) -> None:
    token = mint(alice.user, Kind.APP, "job", limits=ONE_AGENT).token
    claims = claims_of(token)
    for payload, typ in ((claims, "JWT"), ({**claims, "aud": "https://far.example"}, JWT_TYP)):
        with pytest.raises((PermissionError, JoseError)):
            claims_of(signing.sign(json.dumps(payload).encode(), {"typ": typ}))


def test_the_scope_claim_lists_what_counts(alice: Person, staff: Person) -> None:
    def scope(person: Person, **limits: Any) -> str:
        asked = TokenLimits(lifetime=timedelta(hours=1), is_jwt=True, **limits)
        return str(claims_of(mint(person.user, Kind.APP, "job", limits=asked).token)["scope"])

    assert scope(alice) == "ask read publish"
    assert scope(staff) == "ask read publish admin"
    assert scope(alice, scopes=("read",)) == "read"
    assert scope(alice, only_agent="Bob/helper") == "ask:bob/helper read:bob/helper"


def test_it_is_accepted_with_its_scopes_until_it_is_revoked_by_its_number(alice: Person) -> None:
    token = post(alice, scopes=["read"], expires_in=3600).json()["token"]
    client, number = api(token), claims_of(token)["jti"]
    assert client.get("/api/v1/agents").status_code == 200
    assert client.post("/api/v1/blocks", {"login": "bob"}, format="json").status_code == 403
    assert browser(token).get("/account").status_code == 302
    assert signing.rotate()
    assert client.get("/api/v1/me").status_code == 200
    assert claims_of(token)["jti"] == number
    assert api(alice.session).delete(f"/api/v1/tokens/{number}").status_code == 204
    assert client.get("/api/v1/me").status_code == 401


def test_it_ends_with_its_row(alice: Person) -> None:
    minted = mint(alice.user, Kind.APP, "job", limits=ONE_AGENT)
    assert is_known(minted.token)
    Credential.objects.filter(pk=minted.credential.pk).update(expires_at=db_now() - timedelta(seconds=1))
    assert not is_known(minted.token)
    assert claims_of(minted.token)["exp"] > time.time()


def test_hostile_jwts_are_unknown_tokens(alice: Person) -> None:
    good = mint(alice.user, Kind.APP, "job", limits=TokenLimits(lifetime=timedelta(hours=1), is_jwt=True)).token
    head, body, signature = good.split(".")
    claims, key = claims_of(good), signing.public_keys()["keys"][0]
    payload = json.dumps(claims).encode()
    foreign = ECKey.generate_key("P-256")
    hs256 = OctKey.import_key(json.dumps(key))
    raw = base64.urlsafe_b64decode(signature + "==")
    order = 0xFFFFFFFF00000000FFFFFFFFFFFFFFFFBCE6FAADA7179E84F3B9CAC2FC632551
    mirrored = raw[:32] + (order - int.from_bytes(raw[32:])).to_bytes(32)
    hostile = {
        "no algorithm": f"{encoded({'alg': 'none', 'typ': JWT_TYP})}.{body}.",
        "the public key as a secret": jws.serialize_compact({"alg": "HS256", "kid": key["kid"]}, payload, hs256),
        "another hub's key, our kid": jws.serialize_compact({"alg": "ES256", "kid": key["kid"]}, payload, foreign),
        "an unknown kid": jws.serialize_compact({"alg": "ES256", "kid": "../../etc/passwd"}, payload, foreign),
        "no kid": jws.serialize_compact({"alg": "ES256"}, payload, foreign),
        "its own key inside": jws.serialize_compact(
            {"alg": "ES256", "jwk": foreign.as_dict(private=False)}, payload, foreign
        ),
        "more scope, the same signature": f"{head}.{encoded({**claims, 'scope': 'admin'})}.{signature}",
        "the same signature mirrored": f"{head}.{body}.{base64.urlsafe_b64encode(mirrored).decode().rstrip('=')}",
        "no signature": f"{head}.{body}.",
        "padded": f"{good}==",
        "cut": good[:-1],
        "as JSON": json.dumps({"payload": body, "signatures": [{"protected": head, "signature": signature}]}),
        "oversized": f"{head}.{'A' * 60_000}.{signature}",
        "not yet valid, signed by us": signing.sign(
            json.dumps({**claims, "nbf": int(time.time()) + DAY_S}).encode(), {"typ": JWT_TYP}
        ),
        "never minted, signed by us": signing.sign(payload, {"typ": JWT_TYP}),
        "a push, signed by us": signing.sign(payload, {"typ": "JWT"}),
    }
    assert is_known(good)
    for name, token in hostile.items():
        with CaptureQueriesContext(connection) as queries:
            assert not is_known(token), name
        assert len(queries) == 1, name
        assert api(token).get("/api/v1/me").status_code == 401, name


def test_a_replacement_is_a_jwt_with_the_same_limits(alice: Person) -> None:
    old = post(alice, scopes=["ask:bob/helper"], expires_in=7200).json()
    new = api(alice.session).post(f"/api/v1/tokens/{old['id']}/rotate", {"overlap": 600}, format="json").json()
    before, after = claims_of(old["token"]), claims_of(new["token"])
    assert (after["scope"], after["exp"] - after["iat"]) == ("ask:bob/helper", 7200)
    assert before["jti"] != after["jti"] == str(new["id"])
    assert is_known(old["token"])
    assert is_known(new["token"])


def test_what_cannot_be_made_is_refused(alice: Person) -> None:
    count = Credential.objects.count()
    for body, named in [
        ({}, "expires_in"),
        ({"expires_in": None}, "expires_in"),
        ({"expires_in": 30 * DAY_S + 1}, "2592000"),
        ({"expires_in": 600, "format": "pem"}, "format"),
        ({"expires_in": 600, "scopes": ["ask:helper"]}, "ask:owner/slug"),
        ({"expires_in": 600, "scopes": ["publish:bob/helper"]}, "ask:owner/slug"),
        ({"expires_in": 600, "scopes": ["ask:bob/helper", "read"]}, "in all its scopes"),
        ({"expires_in": 600, "scopes": ["ask:bob/helper", "ask:bob/other"]}, "in all its scopes"),
        ({"expires_in": 600, "scopes": ["ask:bob/helper"], "agent": "bob/other"}, "in all its scopes"),
    ]:
        answer = post(alice, **body)
        assert answer.status_code == 400, (body, named)
        assert named in answer.json()["message"], (body, named)
        assert Credential.objects.count() == count, (body, named)


def test_the_longest_lives_as_long_as_its_key_is_published(alice: Person) -> None:
    made = post(alice, scopes=["ask", "ask"], agent="bob/helper", expires_in=30 * DAY_S)
    assert made.json()["scopes"] == ["ask"]
    assert timedelta(days=signing.VERIFIABLE_DAYS) == MAX_JWT_LIFETIME == timedelta(days=30)
    with pytest.raises(ValueError, match="lifetime"):
        TokenLimits(lifetime=MAX_JWT_LIFETIME + timedelta(seconds=1), is_jwt=True)


def test_the_page_makes_one_and_keeps_what_was_typed_when_it_cannot(alice: Person) -> None:
    page = browser(alice.session)
    form = {"kind": "jwt", "name": "job", "scope": ["ask"], "agent": "bob/helper", "expires": "1", "unit": "hours"}
    shown = page.post("/account", form)
    assert shown.status_code == 200
    row = Credential.objects.get(name="job")
    assert row.expires_at is not None
    assert (row.is_jwt, row.expires_at - row.created_at) == (True, timedelta(hours=1))
    token = re.search(r'id="token" value="([^"]+)"', shown.content.decode())
    assert token is not None
    assert claims_of(token[1])["jti"] == str(row.pk)
    assert f"<code>JWT {row.pk}</code>" in shown.content.decode()
    for wrong in ({"expires": ""}, {"expires": "31", "unit": "days"}):
        refused = page.post("/account", form | wrong)
        assert refused.status_code == 400
        text = refused.content.decode()
        assert "at most 30 days" in text
        assert 'value="bob/helper"' in text
        assert '<option value="jwt" selected>' in text
    assert "Your new token" in page.post(f"/account/rotate/{row.pk}").content.decode()


def test_the_command_of_the_how_to_makes_one(alice: Person, subtests: pytest.Subtests) -> None:
    command = re.search(r"manage.py mint_token (.*)", PAGE)
    assert command is not None
    said = StringIO()
    call_command("mint_token", *command[1].split(), stdout=said)
    claims = claims_of(said.getvalue().strip())
    assert (claims["login"], claims["scope"]) == ("alice", "ask:bob/helper")
    assert claims["exp"] - claims["iat"] == 3600
    for wrong in ("1w", "h", "-5", "1.5h", "9" * 20):
        with subtests.test(expires=wrong), pytest.raises(CommandError, match="is no time"):
            call_command("mint_token", "--login", "alice", f"--expires={wrong}")


def test_without_a_readable_key_nothing_is_made(alice: Person, settings: Any) -> None:
    old = post(alice, expires_in=600).json()
    count = Credential.objects.count()
    settings.SECRET_KEY = "another secret key for the hub, made much later"
    refused = post(alice, expires_in=600)
    assert (refused.status_code, refused.json()["error"]) == (503, "unavailable")
    assert api(alice.session).post(f"/api/v1/tokens/{old['id']}/rotate", {}, format="json").status_code == 503
    assert browser(alice.session).post(f"/account/rotate/{old['id']}").status_code == 503
    with pytest.raises(CommandError, match="rotate_signing_key"):
        call_command("mint_token", "--login", "alice", "--format", "jwt", "--expires", "1h")
    assert Credential.objects.count() == count
    assert is_known(old["token"])
    assert post(alice, format="opaque").status_code == 201


def test_logs_show_no_jwt(alice: Person) -> None:
    token = mint(alice.user, Kind.APP, "job", limits=ONE_AGENT).token
    assert without_secrets(f"sent {token} to x") == "sent eyJ… to x"
