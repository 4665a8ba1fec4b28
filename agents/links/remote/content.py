"""The members of an agent card that A2A defines, without members that are empty, a default or volatile.

`find_changes` says what differs between two cards, member by member.
"""

import hashlib
import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
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
MOST_SHOWN = 100  # changes
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


@dataclass(frozen=True, slots=True)
class Change:
    """One member that differs. `before`, `after`: JSON texts, cut when long; None where it is absent."""

    path: str
    before: str | None
    after: str | None


@dataclass(frozen=True, slots=True)
class Changes:
    """The first members that differ, and how many there are besides."""

    shown: list[Change]
    more: int


def find_changes(before: Any, after: Any) -> Changes:
    """Compare two JSON values; the items of two lists are matched by `id` where all have one, else by place."""
    shown: list[Change] = []
    more = 0
    for path, one, other in _differing("", before, after):
        if len(shown) < MOST_SHOWN:
            shown.append(Change(_cut(path, MAX_PATH_CHARS) or "(all)", _text(one), _text(other)))
        else:
            more += 1
    return Changes(shown, more)


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
    """Items by their ids; None when one has none, or shares it."""
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
