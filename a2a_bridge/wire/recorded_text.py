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
# The names of members, without case, dashes and underscores, whose texts are credentials.
SECRET_NAMES = frozenset(
    {
        *("token", "accesstoken", "refreshtoken", "idtoken", "bearertoken", "sessiontoken", "authtoken"),
        *("credentials", "credential", "authorization", "password", "passwd", "secret", "clientsecret"),
        *("apikey", "xapikey", "secretkey", "privatekey", "signingsecret", "cookie", "setcookie"),
    }
)
PUSH_CONFIG = "pushnotification"
_SECRET_MEMBER = re.compile(
    r'("[\w-]*(?:token|credentials?|authorization|passw(?:or)?d|secret|api[_-]?key|private[_-]?key|cookie)"'
    r'\s*:\s*)"(?:[^"\\]|\\.)*"?',
    re.IGNORECASE | re.DOTALL,
)
_LETTER = re.compile(r"\\u00([2-7][0-9a-fA-F])")
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

    Of a whole JSON document, members that hold credentials lose their values, and push configs keep nothing but
    the host of their address. A document that is cut ends before its push config.
    """
    text = body.decode(errors="replace").replace("\0", "\ufffd")
    if is_whole:
        try:
            document = msgspec.json.decode(body)
            shown = _without_credentials(document)
            return without_secrets(text if shown == document else encode(shown).decode())
        except (ValueError, RecursionError):
            return _without_named(text)
    text = _LETTER.sub(_letter, text)
    if found := _CUT_CONFIG.search(text):
        text = text[: found.start()] + HIDDEN
    return _without_named(text)


def _without_credentials(value: Any) -> Any:
    if isinstance(value, list):
        return [_without_credentials(one) for one in value]
    if not isinstance(value, dict):
        return value
    shown: dict[str, Any] = {}
    for name, member in value.items():
        plain = name.lower().replace("_", "").replace("-", "")
        if PUSH_CONFIG in plain and isinstance(member, dict):
            shown[name] = {"url": _host_of(member.get("url")), "...": HIDDEN}
        elif plain in SECRET_NAMES and isinstance(member, str):
            shown[name] = HIDDEN
        else:
            shown[name] = _without_credentials(member)
    return shown


def _host_of(url: Any) -> str:
    try:
        parts = urlsplit(str(url))
        return f"{parts.scheme}://{parts.hostname}/…"
    except ValueError:
        return HIDDEN


def _without_named(text: str) -> str:
    return without_secrets(_SECRET_MEMBER.sub(rf'\1"{HIDDEN}"', text))


def _letter(found: re.Match[str]) -> str:
    letter = chr(int(found[1], 16))
    return letter if letter.isalnum() or letter in "_-" else found[0]


def _as_json(headers: Mapping[str, str]) -> str:
    kept = {name: without_secrets(value[:MAX_HEADER_CHARS]) for name, value in sorted(headers.items())}
    return encode(kept).decode()
