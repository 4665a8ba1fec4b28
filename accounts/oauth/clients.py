"""Clients that register themselves (RFC 7591): their id holds, sealed, what they registered (docs/adr/0115)."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated, Any

import msgspec
from msgspec import Meta, Struct

from accounts import sealing, settings
from accounts.authn import TokenScope
from accounts.errors import InvalidClient, InvalidRedirect, InvalidScope, InvalidTarget, Refused

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
    """Client metadata; other fields are accepted, and what the client gets instead is in the answer."""

    redirect_uris: Annotated[list[str], Meta(min_length=1, max_length=MAX_REDIRECTS)]
    client_name: str | None = None
    grant_types: Annotated[list[str], Meta(max_length=MAX_GRANT_TYPES)] | None = None


@dataclass(frozen=True, slots=True)
class RegisteredClient:
    """A registered client. Its name is its own choice, and shown to its user as such.

    `may_refresh`: it registered for refresh tokens, and gets access tokens of an hour.
    """

    client_id: str
    name: str
    redirect_uris: Sequence[str]
    may_refresh: bool = False

    @property
    def grant_types(self) -> list[str]:
        """What the token endpoint takes from the client."""
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
        """By which a new token replaces the one that the same client had."""
        return f"client:{self.digest[:32]}"


class _Registered(Struct, array_like=True, frozen=True):
    name: str
    redirect_uris: list[str]
    may_refresh: bool = False  # the ids of clients that registered before there were refresh tokens do not have it


_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder(_Registered).decode


def register(given: Any, is_redirect: Any) -> RegisteredClient:
    """A new client. `is_redirect`: whether a browser may be sent to an address.

    Raises:
        Refused: and why.
    """
    try:
        wanted = msgspec.convert(given, RegistrationRequest)
    except msgspec.ValidationError as wrong:
        raise Refused(str(wrong)) from None
    if not all(is_redirect(one) for one in wanted.redirect_uris):
        raise InvalidRedirect("redirect_uris: want http to this machine, or https; no query and no fragment")
    given_name = (wanted.client_name or "")[: 2 * MAX_NAME_CHARS]
    name = "".join(each if each.isprintable() else " " for each in given_name).strip()[:MAX_NAME_CHARS]
    may_refresh = REFRESH_GRANT in (wanted.grant_types or ())
    held = _encode(_Registered(name or UNNAMED, wanted.redirect_uris, may_refresh)).decode()
    if len(held.encode()) > MAX_REGISTERED_BYTES:
        raise Refused(f"name and redirect_uris take over {MAX_REGISTERED_BYTES} bytes")
    client_id = PREFIX + sealing.seal(held, PURPOSE)
    return RegisteredClient(client_id, name or UNNAMED, wanted.redirect_uris, may_refresh)


def get_client(client_id: str) -> RegisteredClient:
    """The client of an id.

    Raises:
        InvalidClient: it was not registered here, or with keys that this hub no longer has.
    """
    unknown = InvalidClient("this client is not registered at this hub: let it register anew")
    if not client_id.startswith(PREFIX) or len(client_id) > MAX_CLIENT_ID_CHARS or not client_id.isascii():
        raise unknown
    try:
        registered = _decode(sealing.unseal(client_id.removeprefix(PREFIX), PURPOSE))
    except (sealing.Unreadable, msgspec.DecodeError):
        raise unknown from None
    return RegisteredClient(client_id, registered.name, registered.redirect_uris, registered.may_refresh)


def read_scopes(wanted: str) -> tuple[str, ...]:
    """Which of the wanted scopes a client may have; all of these when it names none.

    Raises:
        InvalidScope: it may have none of them.
    """
    scopes = tuple(str(one) for one in SCOPES if not wanted or one in wanted.split())
    if not scopes:
        raise InvalidScope(f"scope: want {' or '.join(SCOPES)}")
    return scopes


def check_resource(resource: str) -> None:
    """Refuse a token for another server (RFC 8707); a client may name none.

    Raises:
        InvalidTarget: it is not this hub.
    """
    public_url = settings.PUBLIC_URL
    if resource and not f"{resource}/".startswith(f"{public_url}/"):
        raise InvalidTarget("resource: want an address of this hub")
