"""Reads the parameters of an authorization request strictly; a browser is redirected to the checked address
alone.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlsplit

from accounts import settings
from accounts.errors import Refused
from accounts.oauth.clients import check_resource, get_client, read_scopes

# http to this machine by one of its names, any port, a plain path: nothing a parser could read in two ways.
LOOPBACK = re.compile(r"http://(?:localhost|127\.0\.0\.1|\[::1\])(?::([1-9][0-9]{0,4}))?")
HTTPS = re.compile(r"https://[a-z0-9](?:[a-z0-9.-]*[a-z0-9])?(?::[1-9][0-9]{0,4})?(?=[/]|\Z)")
PLAIN_PATH = re.compile(r"(?:/[A-Za-z0-9_~-][A-Za-z0-9._~-]*)*/?\Z")
CHALLENGE = re.compile(r"[A-Za-z0-9_-]{43}\Z")
VERIFIER = re.compile(r"[A-Za-z0-9._~-]{43,128}\Z")
STATE = re.compile(r"[\x21-\x7e]{1,512}\Z")
MACHINE_ID = re.compile(r"[A-Za-z0-9._:-]{0,100}\Z")
MAX_REDIRECT_CHARS = 300
MAX_APP_NAME_CHARS = 60
MAX_PORT = 65_535


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationRequest:
    """A sound start of a command line, an app or a registered client. `app_name` is empty for a command line.

    `client_digest`: of a registered client; `scopes`: what its token is limited to; `may_refresh`: whether it
    registered for refresh tokens.
    """

    redirect_uri: str
    state: str
    code_challenge: str
    machine_id: str
    app_name: str = ""
    client_digest: str = ""
    scopes: tuple[str, ...] = ()
    may_refresh: bool = False


def read_cli(query: Mapping[str, Any]) -> AuthorizationRequest:
    """The request of a command line.

    Raises:
        Refused: and why.
    """
    return _read(query, _is_loopback)


def read_app(query: Mapping[str, Any]) -> AuthorizationRequest:
    """The request of an app; beside loopback its address may be one of APP_ORIGINS.

    Raises:
        Refused: and why.
    """
    return _read(query, _is_apps, app_name=read_app_name(one(query, "app_name")))


def read_client(query: Mapping[str, Any]) -> AuthorizationRequest:
    """The request of a registered client; its redirect address is one that it registered, on loopback at any port.

    Raises:
        Refused: and why.
    """
    client = get_client(one(query, "client_id"))
    if one(query, "response_type") != "code":
        raise Refused("response_type must be code")
    check_resource(one(query, "resource"))
    scopes = read_scopes(one(query, "scope"))
    asked = _read(query, lambda address: _is_registered(address, client.redirect_uris), app_name=client.name)
    digest = client.digest_for(asked.redirect_uri)
    return replace(
        asked,
        machine_id=client.machine_id,
        client_digest=digest,
        scopes=scopes,
        may_refresh=client.may_refresh,
    )


def is_client_redirect(address: str) -> bool:
    """Whether a client may register an address: on the user's machine, or by https, with a plain path."""
    if len(address) > MAX_REDIRECT_CHARS:
        return False
    origin = HTTPS.match(address)
    return _is_loopback(address) or (origin is not None and PLAIN_PATH.match(address, origin.end()) is not None)


def read_text(query: Mapping[str, Any], name: str) -> str:
    """A parameter that may be there once, and is text that can be stored.

    Raises:
        Refused: it is not.
    """
    text = one(query, name)
    if not text.isascii() or not text.isprintable():
        raise Refused(f"{name}: want printable ASCII characters")
    return text


def read_app_name(name: str) -> str:
    """A name that can be shown to people as it is.

    Raises:
        Refused: it cannot.
    """
    if not name.strip() or len(name) > MAX_APP_NAME_CHARS or not name.isprintable():
        raise Refused(f"app_name is required: 1 to {MAX_APP_NAME_CHARS} printable characters")
    return name.strip()


def read_machine_id(machine_id: str) -> str:
    """The id of an installation, or nothing.

    Raises:
        Refused: it is something else.
    """
    if not MACHINE_ID.match(machine_id):
        raise Refused("machine_id: want up to 100 letters, digits and . _ : -")
    return machine_id


def one(query: Mapping[str, Any], name: str) -> str:
    """A parameter that may be there once.

    Raises:
        Refused: it is there twice.
    """
    values = query.getlist(name) if hasattr(query, "getlist") else [query.get(name, "")]
    if len(values) > 1 or (values and not isinstance(values[0], str)):
        raise Refused(f"{name}: want it once, as text")
    return values[0] if values else ""


def _read(query: Mapping[str, Any], is_home: Any, *, app_name: str = "") -> AuthorizationRequest:
    redirect_uri, state = one(query, "redirect_uri"), one(query, "state")
    if len(redirect_uri) > MAX_REDIRECT_CHARS or not is_home(redirect_uri):
        raise Refused("redirect_uri: want http://localhost:PORT/… or http://127.0.0.1:PORT/…, without a query")
    if not STATE.match(state):
        raise Refused("state is required: up to 512 printable ASCII characters")
    if one(query, "code_challenge_method") != "S256":
        raise Refused("code_challenge_method must be S256")
    challenge = one(query, "code_challenge")
    if not CHALLENGE.match(challenge):
        raise Refused("code_challenge is required: the SHA-256 of the verifier in base64url, 43 characters")
    return AuthorizationRequest(
        redirect_uri=redirect_uri,
        state=state,
        code_challenge=challenge,
        machine_id=read_machine_id(one(query, "machine_id")),
        app_name=app_name,
    )


def _is_loopback(address: str) -> bool:
    origin = LOOPBACK.match(address)
    if origin is None or int(origin[1] or 80) > MAX_PORT:
        return False
    return PLAIN_PATH.match(address, origin.end()) is not None


def _is_registered(address: str, registered: Sequence[str]) -> bool:
    """Whether a client registered an address. A program on the user's machine takes a free port each time, so the
    port of a loopback address may be another one (RFC 8252, section 7.3); its host and path may not.
    """
    if address in registered:
        return True
    return _is_loopback(address) and _drop_port(address) in map(_drop_port, filter(_is_loopback, registered))


def _drop_port(address: str) -> str:
    parts = urlsplit(address)
    return f"{parts.netloc.removesuffix(f':{parts.port}')}{parts.path}"


def _is_apps(address: str) -> bool:
    if _is_loopback(address):
        return True
    homes = [origin for origin in settings.APP_ORIGINS if address.startswith(origin)]
    return any(PLAIN_PATH.match(address, len(origin)) for origin in homes)
