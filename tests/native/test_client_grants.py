"""The rows of clients that refresh their tokens: counted, deleted, and signed out in the admin."""

from datetime import timedelta
from typing import Any

import pytest
from django.test import Client

from accounts import sealing
from accounts.limits import LIVE_TOKENS
from accounts.models import ClientGrant, Credential
from accounts.oauth import clients, grants
from accounts.quotas import QuotaExceeded
from agents import jobs
from kit.clock import db_now
from kit.redaction import without_secrets
from tests.native.admin import act
from tests.native.desk import text
from tests.native.rows import Person

GRANTS = "/admin/accounts/clientgrant/"


def sign_in(who: Person, times_refreshed: int = 0) -> ClientGrant:
    """A grant of a new client."""
    body = {"redirect_uris": ["https://a.example/"], "client_name": "orchard", "grant_types": ["refresh_token"]}
    client = clients.register(body)
    minted = grants.grant_refreshing(who.user, client, "ask read", user_agent="")
    for _ in range(times_refreshed):
        minted = grants.refresh(minted.refresh_token, client, "", user_agent="")
    grant: ClientGrant = who.user.client_grants.latest("pk")
    return grant


def test_a_grant_counts_as_one_token_and_its_access_tokens_as_none(alice: Person, settings: Any) -> None:
    held = LIVE_TOKENS.count_used(alice.user.pk)
    sign_in(alice, times_refreshed=3)
    assert LIVE_TOKENS.count_used(alice.user.pk) == held + 1
    settings.TOKENS_PER_OWNER = held + 1
    with pytest.raises(QuotaExceeded):
        sign_in(alice)


def test_access_tokens_are_deleted_after_a_day_and_grants_after_ninety(alice: Person) -> None:
    grant = sign_in(alice, times_refreshed=2)
    tokens = Credential.objects.filter(grant=grant)
    old, kept = list(tokens.order_by("pk")[:2])
    Credential.objects.filter(pk=old.pk).update(expires_at=db_now() - timedelta(days=1, seconds=1))
    Credential.objects.filter(pk=kept.pk).update(expires_at=db_now() - timedelta(hours=23))
    jobs.retain(400)
    assert tokens.count() == 2
    assert not tokens.filter(pk=old.pk).exists()
    for days, is_there in ((89, True), (91, False)):
        ClientGrant.objects.filter(pk=grant.pk).update(revoked_at=db_now() - timedelta(days=days))
        jobs.retain(400)
        assert ClientGrant.objects.filter(pk=grant.pk).exists() is is_there


def test_the_admin_signs_a_client_out_and_shows_no_hash(alice: Person, signed_in: Client) -> None:
    grant = sign_in(alice, times_refreshed=1)
    for path in (GRANTS, f"{GRANTS}{grant.pk}/change/"):
        page = text(signed_in, path)
        assert "orchard" in page
        secrets = (grant.digest, grant.previous_digest, grant.family_digest, grant.successor_secret)
        assert not [one for one in secrets if one in page]
    for column in ("digest", "family_digest", "successor_secret"):
        assert signed_in.get(f"{GRANTS}?{column}__startswith=a").status_code == 400
    act(signed_in, GRANTS, "revoke", grant)
    grant.refresh_from_db()
    assert not grant.is_live
    assert not Credential.objects.live().filter(grant=grant).exists()


def test_an_id_from_before_there_were_refresh_tokens_still_names_its_client() -> None:
    sealed = sealing.seal('["orchard",["https://a.example/"]]', clients.PURPOSE)
    client = clients.get_client(clients.PREFIX + sealed)
    assert (client.name, client.may_refresh) == ("orchard", False)


def test_a_refresh_token_is_redacted_in_logs() -> None:
    assert "0123456789" not in without_secrets(f"cw_ref_{'0123456789abcdef' * 4}")
