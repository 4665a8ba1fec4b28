"""How the hub goes to remote servers: where it may go by the operator's settings, and as whom by the owner's."""

import re
from dataclasses import dataclass, field

from accounts import sealing
from accounts.sealing import Unreadable
from agents import settings
from agents.models import RemoteServer
from kit.safe_http import NotSent, TargetRules, parse_url

PURPOSE = b"remote server credentials"
SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,31}")
CREDENTIALS = re.compile(r"[\x21-\x7e]([\x20-\x7e]*[\x21-\x7e])?")
MAX_CREDENTIALS_CHARS = 4096


class BadAuth(ValueError):
    """A scheme or credentials that cannot stand in a header; the text says what is wanted."""


@dataclass(frozen=True, slots=True)
class Auth:
    """The value of the `Authorization` header that the hub sends; no header without a scheme."""

    scheme: str = ""
    credentials: str = field(default="", repr=False)

    @property
    def headers(self) -> dict[str, str]:
        """As headers."""
        return {"Authorization": f"{self.scheme} {self.credentials}"} if self.scheme else {}


NO_AUTH = Auth()


def make_auth(scheme: str, credentials: str) -> Auth:
    """An Auth of what an owner typed.

    Raises:
        BadAuth: it cannot be sent.
    """
    if not scheme and not credentials:
        return NO_AUTH
    if not SCHEME.fullmatch(scheme):
        raise BadAuth("want a scheme such as Bearer")
    if len(credentials) > MAX_CREDENTIALS_CHARS or not CREDENTIALS.fullmatch(credentials):
        raise BadAuth(f"want credentials of 1 to {MAX_CREDENTIALS_CHARS} printable ASCII characters")
    return Auth(scheme, credentials)


def auth_of(server: RemoteServer) -> Auth:
    """The credentials of a row, in the clear.

    Raises:
        Unreadable: the key that sealed them is gone; the text is public.
    """
    if not server.credentials:
        return NO_AUTH
    try:
        return Auth(server.auth_scheme, sealing.unseal(server.credentials, PURPOSE))
    except Unreadable:
        raise Unreadable("the credentials cannot be read any more: give them anew") from None


def seal(auth: Auth) -> str:
    """Credentials as they are stored; empty without."""
    return sealing.seal(auth.credentials, PURPOSE) if auth.credentials else ""


def reseal_all() -> tuple[int, int]:
    """Seal all credentials anew with the newest key; how many were, and how many could not be read."""
    return sealing.reseal_all(RemoteServer.objects.exclude(credentials=""), PURPOSE, "credentials")


def rules() -> TargetRules:
    """Where remote servers may be."""
    return TargetRules(ports=settings.REMOTE_PORTS, allows_private=settings.REMOTE_ALLOW_PRIVATE)


def may_have_credentials(card_url: str, url: str) -> bool:
    """Whether what a card names may be sent what its owner gave for the card: only its own host, as safely."""
    try:
        card, named = parse_url(card_url), parse_url(url)
    except NotSent:
        return False
    is_as_safe = named.scheme == "https" or card.scheme == named.scheme
    return card.raw_host == named.raw_host and is_as_safe
