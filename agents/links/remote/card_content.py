"""The content of agent cards: what the hub compares and what servers sign, the differences, and the signatures.

A card is compared by the members that A2A defines, without members that are empty, a default or volatile.
Signatures (A2A 1.0, section 8.4) are verified with public keys that the owner pinned. A signature's own `jku` or
`jwk` is never followed: it would prove only that the card was signed with some key.
"""

import hashlib
import json
import re
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import rfc8785
from joserfc import jws
from joserfc.errors import JoseError, MissingAlgorithmError, UnsupportedAlgorithmError
from joserfc.jwa import JWSAlgModel
from joserfc.jwk import import_key
from joserfc.registry import Header, check_crit_header

from agents.transcript.pieces import Json
from kit import strict_json

COMMON = [
    "name",
    "description",
    "version",
    "provider",
    "documentationUrl",
    "iconUrl",
    "capabilities",
    "securitySchemes",
    "defaultInputModes",
    "defaultOutputModes",
    "skills",
]
CARD_10 = [*COMMON, "supportedInterfaces", "securityRequirements"]
CARD_03 = [*COMMON, *["protocolVersion", "url", "preferredTransport", "additionalInterfaces", "security"]]
CARD_03.append("supportsAuthenticatedExtendedCard")
DEFAULTS_03 = {"protocolVersion": "0.3.0", "preferredTransport": "JSONRPC"}
CAPABILITIES = ["streaming", "pushNotifications", "extensions", "extendedAgentCard"]
SKILL = ["id", "name", "description", "tags", "examples", "inputModes", "outputModes", "securityRequirements"]
INTERFACE = ["url", "protocolBinding", "protocolVersion", "tenant"]
SCHEME = [
    "apiKeySecurityScheme",
    "httpAuthSecurityScheme",
    "oauth2SecurityScheme",
    "openIdConnectSecurityScheme",
    "mtlsSecurityScheme",
]
MAX_SHOWN = 100  # changes
MAX_VALUE_CHARS = 400
MAX_PATH_CHARS = 200
PLAIN = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
ABSENT = object()


def signed_form(card: Json) -> Json:
    """A card as the official SDKs sign it: what A2A defines, without what is empty or a default, or `signatures`.

    A card that lists interfaces is one of 1.0, and loses what it has for readers of 0.3.
    """
    if isinstance(card.get("supportedInterfaces"), list):
        kept = _only(card, CARD_10)
        if isinstance(capabilities := kept.get("capabilities"), dict):
            kept["capabilities"] = _capabilities(capabilities)
        for name, members in {"supportedInterfaces": INTERFACE, "skills": SKILL}.items():
            if isinstance(kept.get(name), list):
                kept[name] = [_only(one, members) if isinstance(one, dict) else one for one in kept[name]]
        if isinstance(schemes := kept.get("securitySchemes"), dict):
            kept["securitySchemes"] = {
                name: _only(one, SCHEME) if isinstance(one, dict) else one for name, one in schemes.items()
            }
    else:
        kept = {name: one for name, one in _only(card, CARD_03).items() if DEFAULTS_03.get(name) != one}
    return _without_empties(kept) or {}


def content_of(card: Json) -> Json:
    """The form in which two cards are compared: their signed form without the `params` of extensions.

    The hub uses no extension of a remote server; servers count there, as hubs do.
    """
    found = signed_form(card)
    capabilities = found.get("capabilities")
    if isinstance(capabilities, dict) and isinstance(capabilities.get("extensions"), list):
        extensions = [
            {name: one[name] for name in one if name != "params"} if isinstance(one, dict) else one
            for one in capabilities["extensions"]
        ]
        found = {**found, "capabilities": {**capabilities, "extensions": extensions}}
    return found


def digest_of(content: Json) -> str:
    """SHA-256 of a content in canonical form (RFC 8785), in hex.

    Raises:
        ValueError: it has none: it holds an integer over 2^53 - 1.
    """
    return hashlib.sha256(rfc8785.dumps(content)).hexdigest()


def _only(value: Json, names: Iterable[str]) -> Json:
    return {name: value[name] for name in names if name in value}


def _capabilities(value: Json) -> Json:
    kept = _only(value, CAPABILITIES)
    if isinstance(extensions := kept.get("extensions"), list):
        kept["extensions"] = [
            {name: one[name] for name in one if (name, one[name]) != ("required", False)}
            if isinstance(one, dict)
            else one
            for one in extensions
        ]
    return kept


def _without_empties(value: Any) -> Any:
    """The value without null, "", [] and {} at any depth; None when nothing is left."""
    if isinstance(value, dict):
        return {name: left for name, one in value.items() if (left := _without_empties(one)) is not None} or None
    if isinstance(value, list):
        return [left for one in value if (left := _without_empties(one)) is not None] or None
    return None if value == "" else value


@dataclass(frozen=True, slots=True)
class MemberChange:
    """One member that differs. `before`, `after`: JSON texts, cut when long; None where it is absent."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class CardChanges:
    """The first members that differ, and how many there are besides."""

    shown: list[MemberChange]
    more: int


def find_changes(before: Any, after: Any) -> CardChanges:
    """Compare two JSON values; the items of two lists are matched by `id` where all have one, else by place."""
    shown: list[MemberChange] = []
    more = 0
    for path, one, other in _differing("", before, after):
        if len(shown) < MAX_SHOWN:
            shown.append(MemberChange(_cut(path, MAX_PATH_CHARS) or "(all)", _text(one), _text(other)))
        else:
            more += 1
    return CardChanges(shown, more)


def _differing(path: str, before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(before, dict) and isinstance(after, dict):
        for name in {**before, **after}:
            inner = f"{path}.{name}" if PLAIN.fullmatch(name) else f"{path}[{_json(name)}]"
            yield from _differing(inner.lstrip("."), before.get(name, ABSENT), after.get(name, ABSENT))
    elif isinstance(before, list) and isinstance(after, list):
        yield from _differing_items(path, before, after)
    elif before != after or isinstance(before, bool) != isinstance(after, bool):
        yield path, before, after


def _differing_items(path: str, before: list[Any], after: list[Any]) -> Iterator[tuple[str, Any, Any]]:
    mine, theirs = _by_id(before), _by_id(after)
    if mine is None or theirs is None:
        mine, theirs = dict(enumerate(before)), dict(enumerate(after))
    elif list(mine) != list(theirs) and set(mine) == set(theirs):
        yield f"{path} (order)", list(mine), list(theirs)
    for key in {**mine, **theirs}:
        yield from _differing(f"{path}[{_json(key)}]", mine.get(key, ABSENT), theirs.get(key, ABSENT))


def _by_id(items: list[Any]) -> dict[Any, Any] | None:
    """The items of a list by their ids; None when an item has no id, or two share one."""
    found = {one["id"]: one for one in items if isinstance(one, dict) and isinstance(one.get("id"), str)}
    return found if items and len(found) == len(items) else None


def _text(value: Any) -> str | None:
    return None if value is ABSENT else _cut(_json(value), MAX_VALUE_CHARS)


def _json(value: Any) -> str:
    """JSON to be read by a person: what is not printable, such as a change of direction, is escaped."""
    text = json.dumps(value, ensure_ascii=False)
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else json.dumps(one)[1:-1] for one in text)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else f"{text[: most - 1]}…"


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
        """The algorithm of a signature; `EdDSA` is accepted, too, which the library calls deprecated."""
        if name not in (self.allowed or ()):
            raise UnsupportedAlgorithmError(name)
        return self.algorithms[name]

    def check_header(self, header: Header) -> None:
        """Read only `alg` and `crit`: the keys are pinned, so `jku` and other members have no meaning."""
        if not isinstance(header.get("alg"), str):
            raise MissingAlgorithmError
        check_crit_header(self.header_registry, header)


class BadKey(ValueError):
    """The text is no key that can verify a card; the message says what is wanted."""


class BadSignature(Exception):
    """The card has no signature that verifies; the text is public."""


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
    """The public keys of a JSON text; no keys for an empty text."""
    if not text.strip():
        return []
    try:
        return read_keys(strict_json.read(text.encode()))
    except (strict_json.UnreadableText, UnicodeEncodeError):
        raise BadKey(f"want {WANTED}, as JSON") from None


def keys_text(keys: Sequence[Json]) -> str:
    """Pinned keys as JSON that an owner can edit; empty without keys."""
    return json.dumps(keys[0] if len(keys) == 1 else {"keys": list(keys)}, indent=2) if keys else ""


def thumbprint(key: Json) -> str:
    """The thumbprint of a key (RFC 7638, SHA-256)."""
    return import_key(key).thumbprint()


def check_signature(card: Json, keys: Sequence[Json]) -> None:
    """Return when one of the pinned keys signed a card, as it was served or as the official SDKs sign it.

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
    """A JWK with only the members that verification needs, and its `kid`."""
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
