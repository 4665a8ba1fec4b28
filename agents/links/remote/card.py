"""Agent cards of remote servers: where the hub may go and with which credentials; a card fetched and read, and the
one of its interfaces by which the hub calls.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from accounts import sealing
from accounts.sealing import SecretUnreadable
from agents import settings
from agents.links.remote.card_content import BadSignature, check_signature, content_of, digest_of
from agents.models import RemoteServer
from agents.transcript.pieces import Json
from kit import strict_json
from kit.async_db import release_before_waiting
from kit.safe_http import NotSent, SafeHttp, TargetRules, Unanswered, join_url, parse_url

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
        """The header that carries the credentials."""
        return {"Authorization": f"{self.scheme} {self.credentials}"} if self.scheme else {}


NO_AUTH = Auth()


def make_auth(scheme: str, credentials: str) -> Auth:
    """An `Auth` of the scheme and credentials that an owner typed.

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
    """The credentials of a row, unsealed.

    Raises:
        Unreadable: the key that sealed them is gone; the text is public.
    """
    if not server.credentials:
        return NO_AUTH
    try:
        return Auth(server.auth_scheme, sealing.unseal(server.credentials, PURPOSE))
    except SecretUnreadable:
        raise SecretUnreadable("the credentials cannot be read any more: give them anew") from None


def seal(auth: Auth) -> str:
    """Credentials as they are stored; empty without credentials."""
    return sealing.seal(auth.credentials, PURPOSE) if auth.credentials else ""


def reseal_all() -> tuple[int, int]:
    """Seal all credentials anew with the newest key; how many were, and how many could not be read."""
    return sealing.reseal_all(RemoteServer.objects.exclude(credentials=""), PURPOSE, "credentials")


def target_rules() -> TargetRules:
    """The addresses and ports at which remote servers may be."""
    return TargetRules(ports=settings.REMOTE_PORTS, allows_private=settings.REMOTE_ALLOW_PRIVATE)


def may_have_credentials(card_url: str, url: str) -> bool:
    """True if a URL in a card may get the credentials given for the card: its host is the card's, and it is as
    safe.
    """
    try:
        card, named = parse_url(card_url), parse_url(url)
    except NotSent:
        return False
    is_as_safe = named.scheme == "https" or card.scheme == named.scheme
    return card.raw_host == named.raw_host and is_as_safe


WELL_KNOWN = ".well-known/agent-card.json"
JSONRPC, HTTP_JSON = "JSONRPC", "HTTP+JSON"
CARD_HEADERS = {
    "Accept": "application/json, application/a2a+json",
    "Accept-Encoding": "identity",
    "A2A-Version": "1.0",
    "User-Agent": "clawbridge",
}
MAX_TEXT = 4096
WAYS = [("1.0", JSONRPC), ("1.0", HTTP_JSON), ("0.3", JSONRPC)]  # as the hub prefers them


class BadCard(Exception):
    """The server has no card that the hub can use; the text says why and may be shown to the user who gave its
    URL.
    """


@dataclass(frozen=True, slots=True)
class CardInterface:
    """A way to call a server. `version`: `1.0` or `0.3`."""

    url: str
    binding: str
    version: str
    tenant: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerCard:
    """The parts of a card that the hub uses. `url`: its address; `interface`: the called one of `offers`.

    `content`: what two cards are compared by, and `digest` its hash (`agents.links.remote.card_content`).
    """

    url: str
    name: str
    description: str
    version: str
    skills: tuple[str, ...]
    interface: CardInterface
    offers: tuple[CardInterface, ...]
    streams: bool
    content: Json = field(repr=False)
    digest: str


class UnsignedCard(BadCard):
    """A card that none of the pinned keys signed."""


def find_card(url: str, auth: Auth, keys: Sequence[Json] = ()) -> ServerCard:
    """The card at a URL, or at the well-known place below it. `keys`: one of them signed it (`signatures`).

    Raises:
        BadCard: there is none the hub can use.
    """
    try:
        return fetch_card(url, auth, keys)
    except UnsignedCard:
        raise
    except BadCard:
        base, _, _ = url.partition("?")
        if base.endswith(".json"):
            raise
        try:
            return fetch_card(join_url(base if base.endswith("/") else f"{base}/", WELL_KNOWN), auth, keys)
        except UnsignedCard:
            raise
        except (NotSent, BadCard) as second:
            failure = str(second)
    raise BadCard(f"neither there nor at {WELL_KNOWN} below it: {failure}")


def fetch_card(url: str, auth: Auth, keys: Sequence[Json] = ()) -> ServerCard:
    """The card at exactly this URL.

    Raises:
        UnsignedCard: keys are given, and none of them signed it.
        BadCard: there is none the hub can use.
    """
    http = SafeHttp(target_rules())
    release_before_waiting()
    try:
        answer = http.send("GET", url, headers={**CARD_HEADERS, **auth.headers})
    except (NotSent, Unanswered) as failure:
        raise BadCard(str(failure)) from None
    if answer.status != 200:
        follows = ", and the hub follows no redirect" if 300 <= answer.status < 400 else ""
        raise BadCard(f"HTTP {answer.status} instead of a card{follows}")
    if answer.is_cut:
        raise BadCard("the card is over 64 KiB")
    value = _json(answer.body)
    card = read_card(url, value)
    try:
        if keys:
            check_signature(value, keys)
    except BadSignature as bad:
        raise UnsignedCard(str(bad)) from None
    if auth.scheme and not may_have_credentials(url, card.interface.url):
        raise BadCard("the card leads to another host than its own: the hub does not send your credentials there")
    try:
        http.check(card.interface.url)
    except NotSent as refused:
        raise BadCard(f"the card leads to a place the hub does not call: {refused}") from None
    return card


def read_card(url: str, value: Any) -> ServerCard:
    """A card read from its JSON.

    Raises:
        BadCard: it is none, or lists no interface that the hub can call.
    """
    if not isinstance(value, dict) or not isinstance(value.get("name"), str):
        raise BadCard("this is not an agent card: it has no name")
    return card_of(url, content_of(value))


def card_of(url: str, content: Json) -> ServerCard:
    """A card made of its content, which is fresh or stored.

    Raises:
        BadCard: it lists no interface that the hub can call, or has no canonical form.
    """
    capabilities = content.get("capabilities")
    capabilities = capabilities if isinstance(capabilities, dict) else {}
    _refuse_required(capabilities.get("extensions"))
    offers = _offered(url, content)
    try:
        digest = digest_of(content)
    except ValueError as wrong:
        raise BadCard(f"this is not an agent card: {wrong}") from None
    return ServerCard(
        url=url,
        name=_text(content, "name")[:120],
        description=_text(content, "description"),
        version=_text(content, "version"),
        skills=tuple(_text(one, "name") for one in _objects(content.get("skills"))[:20]),
        interface=_choose(offers),
        offers=tuple(offers),
        streams=capabilities.get("streaming") is True,
        content=content,
        digest=digest,
    )


def _choose(offers: list[CardInterface]) -> CardInterface:
    for version, binding in WAYS:
        for one in offers:
            if (one.version, one.binding) == (version, binding):
                return one
    raise BadCard("it offers none of A2A 1.0 over JSON-RPC, 1.0 over HTTP+JSON, or 0.3 over JSON-RPC")


def _offered(card_url: str, value: dict[str, Any]) -> list[CardInterface]:
    """The interfaces that a card of 1.0 lists, or those of a card of 0.3."""
    if isinstance(value.get("supportedInterfaces"), list):
        return [
            CardInterface(
                url,
                _text(one, "protocolBinding").upper(),
                _version(_text(one, "protocolVersion") or "1.0"),
                _text(one, "tenant"),
            )
            for one in _objects(value["supportedInterfaces"])
            if (url := _joined(card_url, _text(one, "url")))
        ]
    version = _version(_text(value, "protocolVersion") or "0.3")
    ways = [(_text(value, "url"), _text(value, "preferredTransport") or JSONRPC)]
    ways += [(_text(one, "url"), _text(one, "transport")) for one in _objects(value.get("additionalInterfaces"))]
    return [
        CardInterface(url, binding.upper(), version)
        for given, binding in ways
        if (url := _joined(card_url, given))
    ]


def _joined(card_url: str, given: str) -> str:
    """The absolute address of an interface; empty when the card gives none, or no URL."""
    try:
        return join_url(card_url, given) if given else ""
    except NotSent:
        return ""


def _version(text: str) -> str:
    """A version as major and minor: `1` is 1.0."""
    major, _, rest = text.partition(".")
    minor = rest.partition(".")[0] or "0"
    return "1.0" if major == "1" else f"{major}.{minor}"


def _refuse_required(extensions: Any) -> None:
    for one in _objects(extensions):
        if one.get("required") is True:
            raise BadCard(f"it requires the extension {_text(one, 'uri')[:200]}, which the hub does not speak")


def _json(body: bytes) -> Any:
    try:
        return strict_json.read(body)
    except strict_json.UnreadableText as unsound:
        raise BadCard(f"this is not an agent card: {unsound}") from None


def _objects(value: Any) -> list[dict[str, Any]]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _text(value: dict[str, Any], name: str) -> str:
    text = value.get(name)
    return text[:MAX_TEXT] if isinstance(text, str) else ""
