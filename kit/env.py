"""Reads settings from the environment: a bad value stops the start with one sentence.

A setting is declared once, as a constant of the app that reads it (in `settings.py` of the app, or in
`hub/environment.py`): a function below reads the value, and the text for operators follows the constant.
`python -m lab.settings_page` makes docs/reference/settings.md of these declarations; the first sentence of the
function describes the values.
"""

import os
import re
import socket
from collections.abc import Callable, Sequence
from ipaddress import ip_network
from pathlib import Path
from typing import TypeVar
from urllib.parse import SplitResult, urlsplit

from django.core.exceptions import ImproperlyConfigured

T = TypeVar("T")

LOOPBACK = frozenset({"127.0.0.1", "localhost", "::1"})
MIN_KEY_CHARS = 32
MIN_MASTER_CHARS = 16
PUBLIC_PATH = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*")


def text(name: str, default: str = "") -> str:
    """Text. `NAME_FILE` names a file that holds it instead."""
    if file := os.environ.get(f"{name}_FILE"):
        return Path(file).read_text().strip()
    return os.environ.get(name) or default


def flag(name: str, *, default: bool = False) -> bool:
    """`0` or `1`."""
    raw = _raw(name, int(default))
    if raw not in ("0", "1"):
        raise _wrong(name, raw, "0 or 1")
    return raw == "1"


def choice(name: str, default: str, among: Sequence[str]) -> str:
    """One of a few words, in upper or lower case."""
    value = _raw(name, default).upper()
    words = {word.upper(): word for word in among}
    if value not in words:
        raise _wrong(name, value, f"one of {', '.join(words)}")
    return words[value]


def read_as(name: str, default: object, read: Callable[[str], T], wanted: str) -> T:
    """The value that a function reads from a text; it raises ValueError. `wanted`: for the error's text."""
    raw = _raw(name, default)
    try:
        return read(raw)
    except ValueError:
        raise _wrong(name, raw, wanted) from None


def integer(name: str, default: int, *, least: int = 0, most: int = 2**31) -> int:
    """A whole number within bounds."""
    value = read_as(name, default, int, "a whole number")
    if not least <= value <= most:
        raise _wrong(name, _raw(name, default), f"a number from {least} to {most}")
    return value


def seconds(name: str, default: float) -> float:
    """Seconds, more than zero."""
    value = read_as(name, default, float, "a number of seconds")
    if not 0 < value < float("inf"):
        raise ImproperlyConfigured(f"{name}={_raw(name, default)!r}: must be above zero and finite")
    return value


def fraction(name: str, default: float, *, least: float = 0) -> float:
    """A part of a whole, at most 1."""
    wanted = f"a number from {least} to 1"
    value = read_as(name, default, float, wanted)
    if not least <= value <= 1:
        raise _wrong(name, _raw(name, default), wanted)
    return value


def public_url(name: str, default: str) -> str:
    """An http or https origin, perhaps with a path."""
    raw = _raw(name, default).rstrip("/")
    parts = urlsplit(raw)
    is_whole = raw == f"{parts.scheme}://{parts.netloc}{parts.path}"
    if not _is_web(parts) or not is_whole or not PUBLIC_PATH.fullmatch(parts.path):
        raise _wrong(name, raw, "an address like https://hub.example.org or https://example.org/hub")
    if _is_any_address(parts.hostname or ""):
        raise ImproperlyConfigured(
            f"{name}={raw!r} is no address that others can reach: set {name} to the one that they use,"
            " or HOST to an address of this machine"
        )
    return raw


def base_url(name: str, default: str) -> str:
    """An https address that paths are appended to, or an http address of this machine."""
    raw = _raw(name, default).rstrip("/")
    if not is_safe(raw) or urlsplit(raw).query:
        raise _wrong(name, raw, "an address like https://github.example.org")
    return raw


def link_template(name: str, placeholder: str) -> str:
    """An http or https address with a placeholder behind its host."""
    raw = _raw(name)
    try:
        parts = urlsplit(raw)
        is_address = _is_web(parts)
    except ValueError:
        is_address = False
    if raw and (not is_address or placeholder not in raw or placeholder in parts.netloc or " " in raw):
        raise _wrong(name, raw, f"an address like https://traces.example/trace/{placeholder}")
    return raw


def origins(name: str) -> tuple[str, ...]:
    """Origins, separated by spaces."""
    found = tuple(_raw(name).split())
    for one in found:
        parts = urlsplit(one)
        if parts.scheme not in ("http", "https") or not parts.netloc or one != f"{parts.scheme}://{parts.netloc}":
            raise _wrong(name, one, "origins like https://app.example.org")
    return found


def ports(name: str, default: str) -> frozenset[int]:
    """Port numbers, separated by spaces."""
    raw = _raw(name, default)
    found = raw.split()
    if not found or not all(one.isdecimal() and len(one) <= 5 and 0 < int(one) < 65536 for one in found):
        raise _wrong(name, raw, "port numbers from 1 to 65535")
    return frozenset(map(int, found))


def networks(name: str) -> tuple[str, ...]:
    """Addresses and networks, separated by spaces."""
    found = tuple(_raw(name).split())
    for one in found:
        try:
            ip_network(one)
        except ValueError:
            raise _wrong(name, one, "addresses and networks like 127.0.0.1 10.0.0.0/24") from None
    return found


def keys(name: str) -> tuple[str, ...]:
    """Texts of at least 32 characters, separated by spaces. The error does not show them."""
    found = tuple(text(name).split())
    if any(len(one) < MIN_KEY_CHARS for one in found):
        raise ImproperlyConfigured(
            f"{name}: want keys of at least {MIN_KEY_CHARS} characters, separated by spaces"
        )
    return found


def master_key(name: str) -> str:
    """A text of at least 16 characters. The error does not show it."""
    found = text(name)
    if found and len(found) < MIN_MASTER_CHARS:
        raise ImproperlyConfigured(f"{name}: want at least {MIN_MASTER_CHARS} characters")
    return found


def is_loopback(url: str) -> bool:
    """True if an origin names this machine only."""
    return urlsplit(url).hostname in LOOPBACK


def is_safe(address: str) -> bool:
    """True if secrets may travel to an address: https, or plain http to this machine."""
    try:
        parts = urlsplit(address)
    except ValueError:
        return False
    is_private = parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in LOOPBACK)
    return bool(is_private and parts.hostname and not parts.username and not parts.fragment)


def _raw(name: str, default: object = "") -> str:
    return os.environ.get(name) or str(default)


def _wrong(name: str, raw: str, wanted: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"{name}={raw!r}: want {wanted}")


def _is_web(parts: SplitResult) -> bool:
    return bool(parts.scheme in ("http", "https") and parts.hostname and not parts.username)


def _is_any_address(host: str) -> bool:
    """True if a host is a spelling of 0.0.0.0 or ::, which stand for every address of a machine."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            address = socket.inet_aton(host) if family == socket.AF_INET else socket.inet_pton(family, host)
        except OSError:
            continue
        return not any(address)
    return False
