"""API keys and their signing secrets: functions that mint, find, change and rotate them; secrets of venues.

A secret is derived from the master key and the id of its API key, and stored sealed: with another master key those
that were given out still sign and verify. The sender gets it as 64 hex digits, and signs with the 32 bytes that
these are (`clawbridge.agnt.signing.read_key`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, NamedTuple

from django.db import transaction
from django.db.models import QuerySet

from accounts import limits as account_limits
from accounts.authn import TOUCH_EVERY, digest
from accounts.models import Credential, User
from accounts.sealing import derive_key, reseal_all, seal, unseal
from accounts.tokens import TokenLimits, mint
from agnt import settings
from agnt.models import ApiKey, Venue
from agnt.service.networks import NetworkRef, get_or_create_network
from clawbridge.agnt.fields import is_name
from clawbridge.agnt.signing import SigningKeys, derive_tenant_key
from kit.clock import approximate_now, db_now
from kit.names import NameRule
from kit.sql import KeyedQuery

PURPOSE = b"clawbridge signing secrets of AGNT keys"
MASTER_PURPOSE = b"clawbridge master of AGNT signing secrets"
# Not a scope of tokens: code that checks scopes and no kind refuses a key, too.
CREDENTIAL_SCOPE = "agnt"
OVERLAP = timedelta(days=1)
MIN_OVERLAP = timedelta(seconds=300)
MAX_OVERLAP = timedelta(days=30)
SENDERS = NameRule(is_name, "want letters, digits and any of _ . : -", most=50, most_chars=128)
SECRETS_CACHED = 10_000
_PATHS = {
    "key_id": "pk",
    "owner_id": "network__owner_id",
    "owner_login": "credential__user__login",
    "service_user_id": "network__service_user_id",
    "is_strict": "network__is_strict",
    "requires_signature": "network__requires_signature",
    "accepts_hops": "network__accepts_hops",
    "venues_version": "network__venues_version",
}


@dataclass(frozen=True, slots=True)
class MintedKey:
    """A new key and, for the only time, its text; `secret`: what its sender signs with, as 64 hex digits."""

    key: ApiKey
    token: str
    secret: str


class FoundKey(NetworkRef, frozen=True, kw_only=True):
    """A live key with the rules of its network, as one envelope needs them.

    `senders`: the `from` names that it may use, empty: any. `secret`, `previous_secret`: sealed, see
    `load_signing_keys`. `is_stale`: its last use should be stored again.
    """

    key_id: int
    credential_id: int
    tier: str
    scope: str
    customer: str
    senders: Sequence[str]
    secret: str
    previous_secret: str
    previous_until: datetime | None
    is_strict: bool
    requires_signature: bool
    accepts_hops: bool
    venues_version: int
    is_stale: bool

    def may_send_as(self, sender: str) -> bool:
        """True if an envelope with this key may be `from` that sender."""
        return not self.senders or sender in self.senders


def get_master_key() -> bytes:
    """The key that secrets are derived from: A2A_SIGNING_KEY; else one derived from the hub's secret key."""
    return settings.A2A_SIGNING_KEY.encode() or derive_key(MASTER_PURPOSE)


class VenueSecrets(NamedTuple):
    """The secrets of a venue, 32 bytes each. `previous`: empty, or what the hub signs with until `until`."""

    newest: bytes
    previous: bytes
    until: datetime | None

    @property
    def signing(self) -> bytes:
        """The secret with which the hub now signs its envelopes to the venue."""
        return self.previous or self.newest


def derive_venue_secrets(venue: Venue) -> VenueSecrets:
    """The secrets of a venue by their number: the first by its id alone, which is `venue_id` on the wire.

    With another master key every venue has other secrets: the owner of the network has to tell it the new one.
    """
    tenant, number, until = f"venue:{venue.public_id}", venue.secret_number, venue.previous_until
    if until is None or until <= approximate_now():
        return VenueSecrets(_derive(tenant, number), b"", None)
    return VenueSecrets(_derive(tenant, number), _derive(tenant, number - 1), until)


@transaction.atomic
def rotate_venue_secret(venue: Venue, *, overlap: timedelta = OVERLAP) -> VenueSecrets:
    """Give a venue a new secret. For the overlap the hub still signs with the one before; a zero one: no longer.

    A venue that takes both loses no order meanwhile.

    Raises:
        ValueError: the overlap is neither zero nor from MIN_OVERLAP to MAX_OVERLAP.
    """
    if overlap:
        _check_overlap(overlap)
    row = Venue.objects.select_for_update(of=("self",)).get(pk=venue.pk)
    venue.secret_number, venue.previous_until = row.secret_number + 1, db_now() + overlap if overlap else None
    venue.save(update_fields=["secret_number", "previous_until"])
    return derive_venue_secrets(venue)


@transaction.atomic
def mint_key(
    owner: User,
    name: str,
    *,
    tier: str = ApiKey.Tier.FREE,
    scope: str = ApiKey.Scope.QUERY,
    customer: str = "",
    senders: Sequence[str] = (),
    lifetime: timedelta | None = None,
    source: Credential.Source = Credential.Source.OPERATOR,
    user_agent: str = "",
) -> MintedKey:
    """Make a key of an owner's network, and the network when there is none. No `customer`: the key is its own.

    Raises:
        accounts.quotas.QuotaExceeded: the owner holds as many tokens as one may; an operator may go beyond.
    """
    if source != Credential.Source.OPERATOR:
        account_limits.LIVE_TOKENS.check(owner.pk)
    network = get_or_create_network(owner)
    limits = TokenLimits(scopes=(CREDENTIAL_SCOPE,), lifetime=lifetime)
    minted = mint(owner, Credential.Kind.AGNT, name, user_agent=user_agent, source=source, limits=limits)
    key = ApiKey(
        credential=minted.credential,
        network=network,
        tier=tier,
        scope=scope,
        senders=list(senders),
        created_at=minted.credential.created_at,
    )
    key.customer = customer or _own_customer(key)
    secret = _derive(str(key.public_id), key.secret_number).hex()
    key.secret = seal(secret, PURPOSE)
    key.save()
    return MintedKey(key, minted.token, secret)


def change_key(
    key: ApiKey,
    *,
    tier: str | None = None,
    scope: str | None = None,
    customer: str | None = None,
    senders: Sequence[str] | None = None,
) -> None:
    """Change what is given of a key, from the next envelope on; no text of it changes. No `customer`: its own.

    Earlier charges stay with the customer of their moment. Events are known by customer: with another one, an
    envelope that is sent again is a new event.
    """
    given = {"tier": tier, "scope": scope, "customer": customer, "senders": senders}
    changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if customer is not None:
        changes["customer"] = customer or _own_customer(key)
    for name, value in changes.items():
        setattr(key, name, value)
    if changes:
        key.save(update_fields=list(changes))


@transaction.atomic
def rotate_secret(key: ApiKey, *, overlap: timedelta = OVERLAP) -> str:
    """Give a key a new secret and return it, for the only time; the one before verifies for the overlap.

    Raises:
        ValueError: the overlap is not from MIN_OVERLAP to MAX_OVERLAP.
    """
    _check_overlap(overlap)
    row = ApiKey.objects.select_for_update(of=("self",)).get(pk=key.pk)
    row.secret_number += 1
    secret = _derive(str(row.public_id), row.secret_number).hex()
    row.previous_secret, row.secret = row.secret, seal(secret, PURPOSE)
    row.previous_until = db_now() + overlap
    row.save(update_fields=["secret", "previous_secret", "previous_until", "secret_number"])
    return secret


def revoke_key(key: ApiKey) -> None:
    """Refuse a key from the next envelope on; a revoked key stays so. The row of the key stays, with its usage."""
    Credential.objects.filter(pk=key.credential_id).revoke()


def list_keys(owner: User, *, with_ended: bool = False) -> QuerySet[ApiKey]:
    """The keys of an owner's network, with their credentials: the live ones, or all."""
    found = ApiKey.objects.all() if with_ended else ApiKey.objects.live()
    return found.filter(network__owner=owner).select_related("credential", "network")


def find_key_of(token_digest: str) -> FoundKey | None:
    """The live key with this digest (`accounts.authn.digest`), if there is one; one query, nothing cached."""
    for used_at, *values in _LIVE.rows([token_digest]):
        is_stale = used_at is None or used_at < approximate_now() - TOUCH_EVERY
        return FoundKey(**dict(zip(_FIELDS, values, strict=True)), is_stale=is_stale)
    return None


def find_key(token: str) -> FoundKey | None:
    """The live key with this text, if there is one."""
    return find_key_of(digest(token))


def load_signing_keys(found: FoundKey) -> SigningKeys:
    """The keys that sign the envelopes of a key.

    Raises:
        accounts.sealing.SecretUnreadable: the hub has lost the key that sealed it; the secret must be rotated.
    """
    previous = bytes.fromhex(_unseal(found.previous_secret)) if found.previous_secret else b""
    until_s = found.previous_until.timestamp() if found.previous_until else 0
    return SigningKeys(bytes.fromhex(_unseal(found.secret)), previous, until_s)


def reseal_secrets() -> tuple[int, int]:
    """Seal the secrets of all keys with the newest key of the hub; how many, and how many cannot be read."""
    return reseal_all(ApiKey.objects.all(), PURPOSE, "secret", "previous_secret")


_FIELDS = tuple(name for name in FoundKey.__struct_fields__ if name != "is_stale")
_COLUMNS = ("credential__last_used_at", *(_PATHS.get(name, name) for name in _FIELDS))
_LIVE = KeyedQuery(
    lambda digests: ApiKey.objects.live().filter(credential__digest__in=digests).values_list(*_COLUMNS)
)


def _check_overlap(overlap: timedelta) -> None:
    if not MIN_OVERLAP <= overlap <= MAX_OVERLAP:
        raise ValueError(f"want an overlap from {MIN_OVERLAP} to {MAX_OVERLAP}")


def _derive(tenant: str, number: int) -> bytes:
    """The secret of a venue or key with this number: the first by the name of the tenant alone."""
    return derive_tenant_key(get_master_key(), tenant if number == 1 else f"{tenant}:{number}")


@lru_cache(maxsize=SECRETS_CACHED)
def _unseal(sealed: str) -> str:
    return unseal(sealed, PURPOSE)


def _own_customer(key: ApiKey) -> str:
    return f"key-{key.public_id}"
