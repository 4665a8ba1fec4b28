"""The signatures of this hub: one ES256 key for all its processes, and the public keys that verify it.

The private key is sealed at rest (`accounts.sealing`), and is made when first needed. After `rotate` the old
private key is deleted; its public key stays published for `VERIFIABLE_DAYS`, so that its signatures can still be
verified.
"""

import json
import logging
from collections.abc import Mapping
from datetime import timedelta
from functools import lru_cache
from typing import Any

from django.db import transaction
from django.db.models import Q
from joserfc import jws
from joserfc.jwk import ECKey

from accounts.models import SigningKey
from accounts.sealing import SecretUnreadable, reseal_all, seal, unseal
from kit.clock import db_now

logger = logging.getLogger(__name__)

ALG = "ES256"
CURVE = "P-256"
PURPOSE = b"the hub's signing keys"
VERIFIABLE_DAYS = 30


class NoKey(Exception):
    """The signing key cannot be unsealed: `manage.py rotate_signing_key` makes a new one. Nothing was signed."""


def sign(payload: bytes, header: Mapping[str, Any]) -> str:
    """Sign a payload as a compact JWS; adds `alg` and `kid` to the protected header.

    Raises:
        NoKey: none of the hub's keys decrypts the signing key.
    """
    row = _current() or _make()
    try:
        key = _key(unseal(row.sealed, PURPOSE))
    except SecretUnreadable:
        logger.error("signing.unreadable", extra={"kid": row.kid})
        raise NoKey from None
    return jws.serialize_compact({"alg": ALG, "kid": row.kid, **header}, payload, key, algorithms=[ALG])


def public_keys() -> dict[str, Any]:
    """The JWK Set of the keys whose signatures may still be in use, the current key first."""
    _current() or _make()
    since = db_now() - timedelta(days=VERIFIABLE_DAYS)
    rows = SigningKey.objects.filter(Q(retired_at=None) | Q(retired_at__gt=since)).order_by("-created_at", "-pk")
    return {"keys": [row.public for row in rows]}


@transaction.atomic
def rotate() -> str:
    """Replace the signing key by a new one; returns the new id. Keys older than `VERIFIABLE_DAYS` are deleted."""
    now = db_now()
    SigningKey.objects.filter(retired_at=None).update(retired_at=now, sealed="")
    SigningKey.objects.filter(retired_at__lte=now - timedelta(days=VERIFIABLE_DAYS)).delete()
    return _make().kid


def reseal() -> bool:
    """Seal the signing key with the newest sealing key; False if the signing key cannot be unsealed."""
    return not reseal_all(SigningKey.objects.filter(retired_at=None), PURPOSE, "sealed")[1]


def _current() -> SigningKey | None:
    return SigningKey.objects.filter(retired_at=None).first()


def _make() -> SigningKey:
    """Make and store a signing key; returns it, or the key that another process has just stored."""
    key = ECKey.generate_key(CURVE)
    kid = key.thumbprint()
    row = SigningKey(
        kid=kid,
        alg=ALG,
        public={**key.as_dict(private=False), "kid": kid, "alg": ALG, "use": "sig"},
        sealed=seal(json.dumps(key.as_dict(private=True)), PURPOSE),
    )
    SigningKey.objects.bulk_create([row], ignore_conflicts=True)
    return SigningKey.objects.get(retired_at=None)


@lru_cache(maxsize=4)
def _key(private: str) -> ECKey:
    return ECKey.import_key(json.loads(private))
