"""What of an agent card counts: the members that A2A defines, without what is empty, a default or volatile."""

import hashlib
from collections.abc import Iterable
from typing import Any

import rfc8785

from agents.transcript.pieces import Json

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
    """What two cards are compared by: their signed form without the `params` of extensions.

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
    """SHA-256 of a content in canonical form, in hex.

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
    """None for what is empty: null, "", [] and {}, and what holds nothing else."""
    if isinstance(value, dict):
        return {name: left for name, one in value.items() if (left := _without_empties(one)) is not None} or None
    if isinstance(value, list):
        return [left for one in value if (left := _without_empties(one)) is not None] or None
    return None if value == "" else value
