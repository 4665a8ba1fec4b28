"""Clients that register themselves, and the parameters of authorization requests, which are read strictly.

The id of a client (RFC 7591) contains the encrypted metadata that the client registered (docs/adr/0115). A browser
is redirected only to a checked address.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from accounts import sealing, settings
from accounts.authn import TokenScope
from accounts.errors import InvalidClient, InvalidRedirect, InvalidScope, InvalidTarget, SignInRefused

PURPOSE = b"oauth-client"
PREFIX = "cw_client_"
MAX_CLIENT_ID_CHARS = 2500
MAX_REDIRECTS = 5
MAX_REGISTERED_BYTES = 1200
MAX_NAME_CHARS = 60
MAX_GRANT_TYPES = 20
CODE_GRANT, REFRESH_GRANT = "authorization_code", "refresh_token"
UNNAMED = "an unnamed program"
SCOPES = (TokenScope.ASK, TokenScope.READ)


class RegistrationRequest(Struct, frozen=True):
    """Client metadata; other fields are accepted and ignored, and the response has the values that apply."""

    redirect_uris: Annotated[list[str], Meta(min_length=1, max_length=MAX_REDIRECTS)]
    client_name: str | None = None
    grant_types: Annotated[list[str], Meta(max_length=MAX_GRANT_TYPES)] | None = None


@dataclass(frozen=True, slots=True)
class RegisteredClient:
    """A registered client. The client chose its own name, and the page of consent says so.

    `may_refresh`: the client registered for refresh tokens, and gets access tokens of an hour.
    """

    client_id: str
    name: str
    redirect_uris: Sequence[str]
    may_refresh: bool = False

    @property
    def grant_types(self) -> list[str]:
        """The grant types that the token endpoint accepts from the client."""
        return [CODE_GRANT, REFRESH_GRANT] if self.may_refresh else [CODE_GRANT]

    @property
    def digest(self) -> str:
        """The digest that binds a refresh token to the client."""
        return hashlib.sha256(self.client_id.encode()).hexdigest()

    def digest_for(self, redirect_uri: str) -> str:
        """The digest that binds a code: to the client, and to the address that the code is sent to."""
        return hashlib.sha256(f"{self.client_id}\n{redirect_uri}".encode()).hexdigest()

    @property
    def machine_id(self) -> str:
        """The id by which a new token replaces the earlier token of the same client."""
        return f"client:{self.digest[:32]}"


class _Registered(Struct, array_like=True, frozen=True):
    name: str
    redirect_uris: list[str]
    may_refresh: bool = False  # absent in the ids of clients that registered before refresh tokens existed


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Registered).decode


def register(given: Any) -> RegisteredClient:
    """Register a client by the metadata that it sent.

    Raises:
        SignInRefused: the metadata is not accepted; the text says why.
    """
    try:
        wanted = msgspec.convert(given, RegistrationRequest)
    except msgspec.ValidationError as wrong:
        raise SignInRefused(str(wrong)) from None
    if not all(map(_is_client_redirect, wanted.redirect_uris)):
        raise InvalidRedirect("redirect_uris: want http to this machine, or https; no query and no fragment")
    given_name = (wanted.client_name or "")[: 2 * MAX_NAME_CHARS]
    name = "".join(each if each.isprintable() else " " for each in given_name).strip()[:MAX_NAME_CHARS]
    may_refresh = REFRESH_GRANT in (wanted.grant_types or ())
    held = _encode(_Registered(name or UNNAMED, wanted.redirect_uris, may_refresh)).decode()
    if len(held.encode()) > MAX_REGISTERED_BYTES:
        raise SignInRefused(f"name and redirect_uris take over {MAX_REGISTERED_BYTES} bytes")
    client_id = PREFIX + sealing.seal(held, PURPOSE)
    return RegisteredClient(client_id, name or UNNAMED, wanted.redirect_uris, may_refresh)


def get_client(client_id: str) -> RegisteredClient:
    """The client of an id.

    Raises:
        InvalidClient: the client was not registered here, or its id is encrypted by a key that the hub no longer
        has.
    """
    unknown = InvalidClient("this client is not registered at this hub: let it register anew")
    if not client_id.startswith(PREFIX) or len(client_id) > MAX_CLIENT_ID_CHARS or not client_id.isascii():
        raise unknown
    try:
        registered = _decode(sealing.unseal(client_id.removeprefix(PREFIX), PURPOSE))
    except (sealing.SecretUnreadable, msgspec.DecodeError):
        raise unknown from None
    return RegisteredClient(client_id, registered.name, registered.redirect_uris, registered.may_refresh)


def read_scopes(wanted: str) -> tuple[str, ...]:
    """The wanted scopes that a client may have; without wanted scopes, all that clients may have.

    Raises:
        InvalidScope: the client may have none of the wanted scopes.
    """
    scopes = tuple(str(one) for one in SCOPES if not wanted or one in wanted.split())
    if not scopes:
        raise InvalidScope(f"scope: want {' or '.join(SCOPES)}")
    return scopes


def check_resource(resource: str) -> None:
    """Refuse a token for another server (RFC 8707); a client may name none.

    Raises:
        InvalidTarget: the resource is not this hub.
    """
    public_url = settings.PUBLIC_URL
    if resource and not f"{resource}/".startswith(f"{public_url}/"):
        raise InvalidTarget("resource: want an address of this hub")


# http to localhost, on any port, with a plain path: nothing that two parsers could read differently.
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
    """A valid request of a command line, an app or a registered client. `app_name` is empty for a command line.

    Of a registered client: `client_digest`; `scopes`: the limits of its token; `may_refresh`: True if the client
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
    """Read the request of a command line.

    Raises:
        SignInRefused: a parameter is not accepted; the text says why.
    """
    return _read(query, _is_loopback)


def read_app(query: Mapping[str, Any]) -> AuthorizationRequest:
    """Read the request of an app; its redirect address is on loopback or at one of APP_ORIGINS.

    Raises:
        SignInRefused: a parameter is not accepted; the text says why.
    """
    return _read(query, _is_apps, app_name=read_app_name(one(query, "app_name")))


def read_client(query: Mapping[str, Any]) -> AuthorizationRequest:
    """Read the request of a registered client; its redirect address is a registered one, on loopback at any port.

    Raises:
        SignInRefused: a parameter is not accepted; the text says why.
    """
    client = get_client(one(query, "client_id"))
    if one(query, "response_type") != "code":
        raise SignInRefused("response_type must be code")
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


def _is_client_redirect(address: str) -> bool:
    """True if a client may register an address: on the user's machine, or by https, with a plain path."""
    if len(address) > MAX_REDIRECT_CHARS:
        return False
    origin = HTTPS.match(address)
    return _is_loopback(address) or (origin is not None and PLAIN_PATH.match(address, origin.end()) is not None)


def read_text(query: Mapping[str, Any], name: str) -> str:
    """The value of a parameter in printable ASCII; empty when absent.

    Raises:
        SignInRefused: the parameter is repeated, or has other characters.
    """
    text = one(query, name)
    if not text.isascii() or not text.isprintable():
        raise SignInRefused(f"{name}: want printable ASCII characters")
    return text


def read_app_name(name: str) -> str:
    """Check the name of an app, which pages show as it is.

    Raises:
        SignInRefused: the name is missing, too long, or not printable.
    """
    if not name.strip() or len(name) > MAX_APP_NAME_CHARS or not name.isprintable():
        raise SignInRefused(f"app_name is required: 1 to {MAX_APP_NAME_CHARS} printable characters")
    return name.strip()


def read_machine_id(machine_id: str) -> str:
    """Check the id of an installation, which may be empty.

    Raises:
        SignInRefused: the text has other characters, or is too long.
    """
    if not MACHINE_ID.match(machine_id):
        raise SignInRefused("machine_id: want up to 100 letters, digits and . _ : -")
    return machine_id


def one(query: Mapping[str, Any], name: str) -> str:
    """The value of a parameter; empty when absent.

    Raises:
        SignInRefused: the parameter is repeated, or is not text.
    """
    values = query.getlist(name) if hasattr(query, "getlist") else [query.get(name, "")]
    if len(values) > 1 or (values and not isinstance(values[0], str)):
        raise SignInRefused(f"{name}: want it once, as text")
    return values[0] if values else ""


def _read(query: Mapping[str, Any], is_home: Any, *, app_name: str = "") -> AuthorizationRequest:
    redirect_uri, state = one(query, "redirect_uri"), one(query, "state")
    if len(redirect_uri) > MAX_REDIRECT_CHARS or not is_home(redirect_uri):
        raise SignInRefused(
            "redirect_uri: want http://localhost:PORT/… or http://127.0.0.1:PORT/…, without a query"
        )
    if not STATE.match(state):
        raise SignInRefused("state is required: up to 512 printable ASCII characters")
    if one(query, "code_challenge_method") != "S256":
        raise SignInRefused("code_challenge_method must be S256")
    challenge = one(query, "code_challenge")
    if not CHALLENGE.match(challenge):
        raise SignInRefused("code_challenge is required: the SHA-256 of the verifier in base64url, 43 characters")
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
    """True if a client registered an address.

    A program on the user's machine takes a free port each time, so the port of a loopback address may be another
    one than the registered port (RFC 8252, section 7.3); its host and path may not differ.
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
