"""The part of a request or response that may be kept: headers by a list of names, bodies without credentials."""

import re
from collections.abc import Iterable, Mapping
from typing import Any
from urllib.parse import urlsplit

import msgspec

from kit.asgi import Header
from kit.redaction import without_secrets

REQUEST_HEADERS = frozenset(
    {
        *("accept", "content-type", "content-length", "user-agent", "origin", "last-event-id", "traceparent"),
        *("a2a-version", "a2a-extensions", "x-a2a-extensions"),
        *("mcp-protocol-version", "mcp-method", "mcp-name"),
    }
)
RESPONSE_HEADERS = frozenset(
    {
        *("content-type", "content-length", "traceparent", "retry-after", "allow", "x-should-retry"),
        *("a2a-version", "a2a-extensions", "x-a2a-extensions"),
    }
)
MAX_HEADER_CHARS = 300
HIDDEN = "(left out)"
PUSH_CONFIG = "pushnotification"
# Members whose names end so are credentials. Most words may be plural, but "tokens" are counts and lists of words.
_WORDS = (
    r"token|credentials?|authorization|passw(?:or)?ds?|passphrases?|secrets?|cookies?"
    r"|(?:api|secret|private|signing|access)[ _-]?keys?"
)
_SECRET_NAME = re.compile(rf"(?:{_WORDS})\Z", re.IGNORECASE)
_SECRET_MEMBER = re.compile(rf'(?:{_WORDS})"\s*:\s*(?=["\[{{\d-])', re.IGNORECASE)
_COUNT_NAME = re.compile(r'token"?[\s:]*\Z', re.IGNORECASE)  # a number of it is a limit or the id of a progress
_STRING_OR_BRACKET = re.compile(r'"(?:[^"\\]|\\.)*"?|[\[\]{}]', re.DOTALL)
_NUMBER = re.compile(r"[-+.\deE]+")
_LETTER = re.compile(r"\\u00([2-7][0-9a-fA-F])")
# Each name that these expressions match has one of these words in it, without hyphens and underscores. No word has
# an "i": expressions know more kinds of it than `casefold`.
_HINTS = ("token", "credent", "author", "passw", "passphrase", "secret", "cook", "key", "push")
_CUT_CONFIG = re.compile(r'"[\w-]*push[_-]?notification', re.IGNORECASE)

encode = msgspec.json.Encoder().encode


def keep_request_headers(headers: Mapping[str, str]) -> str:
    """The headers of a request that hold no secrets, as JSON."""
    return _as_json({name: value for name, value in headers.items() if name in REQUEST_HEADERS})


def keep_response_headers(headers: Iterable[Header]) -> str:
    """The headers of a response that hold no secrets, as JSON."""
    named = {str(name, "latin-1").lower(): str(value, "latin-1") for name, value in headers}
    return _as_json({name: value for name, value in named.items() if name in RESPONSE_HEADERS})


def keep_body(body: bytes, *, is_whole: bool) -> str:
    """A body without credentials: as it was sent, if it has none.

    Members that hold credentials lose their values, whatever these are; numbers of tokens stay. Push configs keep
    nothing but the host of their address; a document that is cut, or cannot be read, ends before its push config.
    """
    text = body.decode(errors="replace").replace("\0", "\ufffd")
    if not _may_name_credentials(text):
        return without_secrets(text)
    if is_whole:
        try:
            document = msgspec.json.decode(body)
            shown = _without_credentials(document)
            return without_secrets(text if shown == document else encode(shown).decode())
        except (ValueError, RecursionError):
            pass
    text = _LETTER.sub(_letter, text)
    if found := _CUT_CONFIG.search(text):
        text = text[: found.start()] + HIDDEN
    return without_secrets(_without_named(text))


def _may_name_credentials(text: str) -> bool:
    """False if no member of a document can be named as a credential or a push config: the check costs little."""
    folded = text.casefold().replace("_", "").replace("-", "")
    return "\\u" in text or any(hint in folded for hint in _HINTS)


def hide_push_configs(body: str) -> str:
    """A kept body without the hosts of push configs, for readers who are not the caller."""
    try:
        document = msgspec.json.decode(body)
        shown = _without_push(document)
    except (ValueError, RecursionError):  # a body that was cut ends before its push config
        return body
    return body if shown == document else encode(shown).decode()


def _without_credentials(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_credentials(one) for one in value]
    if not isinstance(value, dict):
        return value
    shown: dict[str, Any] = {}
    for name, member in value.items():
        if _is_push_config(name) and isinstance(member, dict):
            shown[name] = {"url": _host_of(member.get("url")), "...": HIDDEN}
        elif _SECRET_NAME.search(name) and _may_be_secret(name, member):
            shown[name] = HIDDEN
        else:
            shown[name] = _without_credentials(member)
    return shown


def _may_be_secret(name: str, member: Any) -> bool:
    if member is None or isinstance(member, bool):
        return False
    return not isinstance(member, int | float) or not _COUNT_NAME.search(name)


def _without_push(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_push(one) for one in value]
    if not isinstance(value, dict):
        return value
    return {name: HIDDEN if _is_push_config(name) else _without_push(one) for name, one in value.items()}


def _is_push_config(name: str) -> bool:
    return PUSH_CONFIG in name.lower().replace("_", "").replace("-", "")


def _host_of(url: Any) -> str:
    try:
        parts = urlsplit(str(url))
        return f"{parts.scheme}://{parts.hostname}/…"
    except ValueError:
        return HIDDEN


def _without_named(text: str) -> str:
    """A document that cannot be read, without the values of members that are named as credentials."""
    pieces: list[str] = []
    at = 0
    while found := _SECRET_MEMBER.search(text, at):
        pieces.append(text[at : found.end()])
        at = found.end()
        if text[at] in '"[{' or not _COUNT_NAME.search(found[0]):
            pieces.append(f'"{HIDDEN}"')
            at = _end_of_value(text, at)
    return "".join([*pieces, text[at:]])


def _end_of_value(text: str, start: int) -> int:
    """The end of a JSON value; that of the text, if the value is cut."""
    if number := _NUMBER.match(text, start):
        return number.end()
    depth = 0
    for found in _STRING_OR_BRACKET.finditer(text, start):
        depth += {"[": 1, "{": 1, "]": -1, "}": -1}.get(found[0], 0)
        if depth <= 0:
            return found.end()
    return len(text)


def _letter(found: re.Match[str]) -> str:
    letter = chr(int(found[1], 16))
    return letter if letter.isalnum() or letter in "_-" else found[0]


def _as_json(headers: Mapping[str, str]) -> str:
    kept = {name: without_secrets(value[:MAX_HEADER_CHARS]) for name, value in sorted(headers.items())}
    return encode(kept).decode()
