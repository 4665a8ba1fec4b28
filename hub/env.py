"""Settings from the environment: a bad value stops the start with one sentence."""

import contextlib
import os
import re
import secrets
import socket
from collections.abc import Sequence
from ipaddress import ip_network
from pathlib import Path
from urllib.parse import parse_qsl, unquote, urlsplit

from django.core.exceptions import ImproperlyConfigured

from accounts.providers import LOOPBACK, Provider, is_safe, read_providers
from accounts.signup import Signup, read_signup

MIN_KEY_CHARS = 32
MIN_MASTER_CHARS = 16
PUBLIC_PATH = re.compile(r"(/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*")


def text(name: str, default: str = "") -> str:
    """A string; `NAME_FILE` names a file that holds it instead."""
    if file := os.environ.get(f"{name}_FILE"):
        return Path(file).read_text().strip()
    return os.environ.get(name) or default


def flag(name: str, *, default: bool = False) -> bool:
    """0 or 1."""
    raw = os.environ.get(name) or str(int(default))
    if raw not in ("0", "1"):
        raise ImproperlyConfigured(f"{name}={raw!r}: want 0 or 1")
    return raw == "1"


def choice(name: str, default: str, among: Sequence[str]) -> str:
    """One of a few words, in any case."""
    value = (os.environ.get(name) or default).upper()
    if value not in among:
        raise ImproperlyConfigured(f"{name}={value!r}: want one of {', '.join(among)}")
    return value


def whole(name: str, default: int, *, least: int = 0, most: int = 2**31) -> int:
    """A whole number within bounds."""
    raw = os.environ.get(name) or str(default)
    try:
        value = int(raw)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={raw!r}: want a whole number") from None
    if not least <= value <= most:
        raise ImproperlyConfigured(f"{name}={raw!r}: want a number from {least} to {most}")
    return value


def seconds(name: str, default: float) -> float:
    """A length of time above zero."""
    raw = os.environ.get(name) or str(default)
    try:
        value = float(raw)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={raw!r}: want a number of seconds") from None
    if not 0 < value < float("inf"):
        raise ImproperlyConfigured(f"{name}={raw!r}: must be above zero and finite")
    return value


def share(name: str, default: float) -> float:
    """A part of a whole, 0 to 1."""
    raw = os.environ.get(name) or str(default)
    try:
        value = float(raw)
    except ValueError:
        raise ImproperlyConfigured(f"{name}={raw!r}: want a number from 0 to 1") from None
    if not 0 <= value <= 1:
        raise ImproperlyConfigured(f"{name}={raw!r}: want a number from 0 to 1")
    return value


def public_url(name: str, default: str) -> str:
    """An http or https origin, perhaps with a path."""
    raw = (os.environ.get(name) or default).rstrip("/")
    parts = urlsplit(raw)
    is_origin = parts.scheme in ("http", "https") and parts.hostname and not parts.username
    if (
        not is_origin
        or raw != f"{parts.scheme}://{parts.netloc}{parts.path}"
        or not PUBLIC_PATH.fullmatch(parts.path)
    ):
        raise ImproperlyConfigured(
            f"{name}={raw!r}: want an address like https://hub.example.org or https://example.org/hub"
        )
    if _is_any_address(parts.hostname or ""):
        raise ImproperlyConfigured(
            f"{name}={raw!r} is no address that others can reach: set {name} to the one that they use,"
            " or HOST to an address of this machine"
        )
    return raw


def base_url(name: str, default: str) -> str:
    """An address that paths are put behind. Plain http only to this machine: secrets travel there."""
    raw = (os.environ.get(name) or default).rstrip("/")
    parts = urlsplit(raw)
    if not is_safe(raw) or parts.query:
        raise ImproperlyConfigured(f"{name}={raw!r}: want an address like https://github.example.org")
    return raw


def link_template(name: str, placeholder: str) -> str:
    """An http or https address with a placeholder behind its host; empty when it is not set."""
    raw = os.environ.get(name) or ""
    try:
        parts = urlsplit(raw)
        is_address = parts.scheme in ("http", "https") and parts.hostname and not parts.username
    except ValueError:
        is_address = False
    if raw and (not is_address or placeholder not in raw or placeholder in parts.netloc or " " in raw):
        raise ImproperlyConfigured(
            f"{name}={raw!r}: want an address like https://traces.example/trace/{placeholder}"
        )
    return raw


def origins(name: str) -> tuple[str, ...]:
    """Origins separated by spaces."""
    found = tuple((os.environ.get(name) or "").split())
    for one in found:
        parts = urlsplit(one)
        if parts.scheme not in ("http", "https") or not parts.netloc or one != f"{parts.scheme}://{parts.netloc}":
            raise ImproperlyConfigured(f"{name}={one!r}: want origins like https://app.example.org")
    return found


def ports(name: str, default: str) -> frozenset[int]:
    """Port numbers separated by spaces, at least one."""
    raw = os.environ.get(name) or default
    found = raw.split()
    if not found or not all(one.isdecimal() and len(one) <= 5 and 0 < int(one) < 65536 for one in found):
        raise ImproperlyConfigured(f"{name}={raw!r}: want port numbers from 1 to 65535")
    return frozenset(map(int, found))


def networks(name: str) -> tuple[str, ...]:
    """Addresses and networks separated by spaces, such as `127.0.0.1 10.0.0.0/24`."""
    found = tuple((os.environ.get(name) or "").split())
    for one in found:
        try:
            ip_network(one)
        except ValueError:
            raise ImproperlyConfigured(
                f"{name}={one!r}: want addresses and networks like 127.0.0.1 10.0.0.0/24"
            ) from None
    return found


def keys(name: str) -> tuple[str, ...]:
    """Secret texts separated by spaces. What is wrong with one is said without saying it."""
    found = tuple(text(name).split())
    if any(len(one) < MIN_KEY_CHARS for one in found):
        raise ImproperlyConfigured(
            f"{name}: want keys of at least {MIN_KEY_CHARS} characters, separated by spaces"
        )
    return found


def master_key(name: str) -> str:
    """One secret text that keys are derived from; empty when it is not set."""
    found = text(name)
    if found and len(found) < MIN_MASTER_CHARS:
        raise ImproperlyConfigured(f"{name}: want at least {MIN_MASTER_CHARS} characters")
    return found


def signup(name: str) -> Signup:
    """Who may join."""
    raw = os.environ.get(name) or "open"
    try:
        return read_signup(raw)
    except ValueError:
        raise ImproperlyConfigured(
            f"{name}={raw!r}: want open, closed, or logins, org:NAMEs, mail addresses and @domains"
        ) from None


def oidc_providers(issuers: str, client_ids: str, client_secrets: str, names: str) -> tuple[Provider, ...]:
    """OpenID Connect providers, from lists in the same order."""
    try:
        return read_providers(issuers, client_ids, client_secrets, names)
    except ValueError as wrong:
        raise ImproperlyConfigured(str(wrong)) from None


def is_loopback(url: str) -> bool:
    """Whether an origin names this machine only."""
    return urlsplit(url).hostname in LOOPBACK


def _is_any_address(host: str) -> bool:
    """Whether a host is a spelling of 0.0.0.0 or ::, which stand for every address of a machine."""
    for family in (socket.AF_INET, socket.AF_INET6):
        try:
            address = socket.inet_aton(host) if family == socket.AF_INET else socket.inet_pton(family, host)
        except OSError:
            continue
        return not any(address)
    return False


def postgres(url: str) -> dict[str, object]:
    """Django's connection settings from postgres://user:password@host:port/name?sslmode=require.

    What follows the question mark goes to libpq as it is.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("postgres", "postgresql") or not parts.path.strip("/"):
        raise ImproperlyConfigured("DATABASE_URL: want postgres://user:password@host:port/name")
    return {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": unquote(parts.path.strip("/")),
        "USER": unquote(parts.username or ""),
        "PASSWORD": unquote(parts.password or ""),
        "HOST": parts.hostname or "",
        "PORT": parts.port or "",
        "CONN_HEALTH_CHECKS": True,  # after a restart of the server the pool holds connections that are dead
        "OPTIONS": {
            "options": "-c lock_timeout=4000 -c statement_timeout=30000 -c timezone=UTC",
            "connect_timeout": 5,
            "tcp_user_timeout": 10_000,  # ms; a server that vanished without a word is noticed, not waited for
            "keepalives_idle": 10,
            "keepalives_interval": 5,
            "keepalives_count": 3,
            **dict(parse_qsl(parts.query)),
            "pool": {"min_size": 1, "max_size": 10, "timeout": 3},
        },
    }


def secret_key(data_dir: Path, given: str) -> str:
    """The key; a new file is written whole and readable by its owner alone.

    Raises:
        ImproperlyConfigured: DATA_DIR cannot be written.
    """
    if given:
        return given
    try:
        return _kept(data_dir)
    except OSError as problem:
        raise ImproperlyConfigured(f"DATA_DIR={data_dir}: cannot write there: {problem.strerror}") from None


def _kept(data_dir: Path) -> str:
    file = data_dir / "secret_key"
    data_dir.mkdir(parents=True, exist_ok=True, mode=0o700)
    if not file.exists():
        draft = data_dir / f"secret_key.{os.getpid()}"
        draft.touch(mode=0o600)
        draft.write_text(secrets.token_urlsafe(50))
        with contextlib.suppress(FileExistsError):  # another process was first: its key stands
            # `link` fails where the file exists; `rename` would replace a
            # key that another process uses already.
            os.link(draft, file)
        draft.unlink()
    return file.read_text()
