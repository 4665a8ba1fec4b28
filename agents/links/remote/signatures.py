"""Signatures of agent cards (A2A 1.0, section 8.4), verified with public keys that the owner pinned.

A signature's own `jku` or `jwk` is never followed: it would prove only that the card was signed with some key.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import Any

import rfc8785
from joserfc import jws
from joserfc.errors import JoseError, MissingAlgorithmError, UnsupportedAlgorithmError
from joserfc.jwa import JWSAlgModel
from joserfc.jwk import import_key
from joserfc.registry import Header, check_crit_header

from agents.links.remote.content import signed_form
from agents.transcript.pieces import Json
from kit import strict_json

MAX_KEYS = 8
MAX_SIGNATURES = 8
MAX_KEYS_CHARS = 16_384
MAX_KID_CHARS = 128
MIN_RSA_BITS, MAX_RSA_BITS = 2048, 8192
MAX_EXPONENT_CHARS = 8
PUBLIC_MEMBERS = {"EC": ("crv", "x", "y"), "RSA": ("n", "e"), "OKP": ("crv", "x")}
ALGORITHMS = {
    "P-256": ["ES256"],
    "P-384": ["ES384"],
    "P-521": ["ES512"],
    "Ed25519": ["EdDSA", "Ed25519"],
    "RSA": ["RS256", "RS384", "RS512", "PS256", "PS384", "PS512"],
}
NOT_BY_PINNED = (
    "no signature of the card verifies with a pinned key: pin the server's new key, or remove the pinned keys"
)
WANTED = "a public JWK of EC P-256, P-384 or P-521, of Ed25519, or of RSA with 2048 bits, or a JWK Set of such"


class CardRegistry(jws.JWSRegistry):
    """Accepts signatures whose headers hold a certificate chain, members that the hub does not know, or nulls."""

    max_header_length = 16_384

    def get_alg(self, name: str) -> JWSAlgModel:
        """An algorithm of the key; `EdDSA` is one still, for the library it is deprecated."""
        if name not in (self.allowed or ()):
            raise UnsupportedAlgorithmError(name)
        return self.algorithms[name]

    def check_header(self, header: Header) -> None:
        """Only `alg` and `crit` mean something here: keys are pinned, so `jku` and others are not read."""
        if not isinstance(header.get("alg"), str):
            raise MissingAlgorithmError
        check_crit_header(self.header_registry, header)


class BadKey(ValueError):
    """The text is no key that can verify a card; the message says what is wanted."""


class BadSignature(Exception):
    """No signature of a card verifies; the text is public."""


def read_keys(value: Any) -> list[Json]:
    """The public keys of a JWK or a JWK Set, with the members that matter alone.

    Raises:
        BadKey: it is neither, holds a private key, or one of a kind that the hub does not take.
    """
    if not isinstance(value, dict):
        raise BadKey(f"want {WANTED}")
    given = value.get("keys", [value])
    if not isinstance(given, list) or not 0 < len(given) <= MAX_KEYS:
        raise BadKey(f"want 1 to {MAX_KEYS} keys")
    return [_public_key(one) for one in given]


def read_keys_text(text: str) -> list[Json]:
    """The same of a JSON text; none of an empty one."""
    if not text.strip():
        return []
    try:
        return read_keys(strict_json.read(text.encode()))
    except (strict_json.UnreadableText, UnicodeEncodeError):
        raise BadKey(f"want {WANTED}, as JSON") from None


def keys_text(keys: Sequence[Json]) -> str:
    """Pinned keys as an owner reads and edits them; empty without."""
    return json.dumps(keys[0] if len(keys) == 1 else {"keys": list(keys)}, indent=2) if keys else ""


def thumbprint(key: Json) -> str:
    """The thumbprint of a key (RFC 7638, SHA-256)."""
    return import_key(key).thumbprint()


def check_signature(card: Json, keys: Sequence[Json]) -> None:
    """Check that one of the pinned keys signed a card, as it was served or as the official SDKs sign it.

    Raises:
        BadSignature: none did.
    """
    signatures = card.get("signatures")
    if not isinstance(signatures, list) or not signatures:
        raise BadSignature("the card is not signed: sign it, or remove the pinned keys")
    served = {name: card[name] for name in card if name != "signatures"}
    try:
        payloads = {rfc8785.dumps(form) for form in (served, signed_form(card))}
    except ValueError as wrong:
        raise BadSignature(f"the card has no canonical form: {wrong}") from None
    for signature in signatures[:MAX_SIGNATURES]:
        if any(_verifies(signature, payload, key) for payload in payloads for key in keys):
            return
    raise BadSignature(NOT_BY_PINNED)


def _verifies(signature: Any, payload: bytes, key: Json) -> bool:
    if not isinstance(signature, dict):
        return False
    protected, signed = signature.get("protected"), signature.get("signature")
    if not isinstance(protected, str) or not isinstance(signed, str):
        return False
    encoded = urlsafe_b64encode(payload).rstrip(b"=").decode()
    registry = CardRegistry(algorithms=ALGORITHMS[key.get("crv", "RSA")])
    try:
        jws.deserialize_compact(f"{protected}.{encoded}.{signed}", import_key(key), registry=registry)
    except (JoseError, ValueError, TypeError, KeyError, RecursionError):  # a stranger wrote the header
        return False
    return True


def _public_key(given: Any) -> Json:
    """A JWK without what does not matter; its `kid` stays, to be recognised by."""
    kind = given.get("kty") if isinstance(given, dict) else None
    if not isinstance(kind, str) or kind not in PUBLIC_MEMBERS:
        raise BadKey(f"want {WANTED}")
    if "d" in given:
        raise BadKey("this is a private key: give the public one, and make a new pair, as this one was shown")
    key = {"kty": kind, **{name: given.get(name) for name in PUBLIC_MEMBERS[kind]}}
    if not all(isinstance(one, str) for one in key.values()) or key.get("crv", "RSA") not in ALGORITHMS:
        raise BadKey(f"want {WANTED}")
    try:
        if kind == "RSA":
            _check_rsa(key)
        thumbprint(key)
    except (JoseError, ValueError, TypeError, KeyError):
        raise BadKey(f"want {WANTED}") from None
    kid = given.get("kid")
    return {**key, "kid": kid[:MAX_KID_CHARS]} if isinstance(kid, str) else key


def _check_rsa(key: Json) -> None:
    """Raise ValueError unless an RSA key is neither weak nor slow to verify with."""
    modulus = urlsafe_b64decode(key["n"] + "==")
    if not MIN_RSA_BITS <= int.from_bytes(modulus).bit_length() <= MAX_RSA_BITS:
        raise ValueError("not 2048 to 8192 bits")
    if len(key["e"]) > MAX_EXPONENT_CHARS:
        raise ValueError("a large exponent")
