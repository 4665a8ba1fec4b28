"""The envelopes of `lab.bench.agnt`, as bytes on their way out, and the words of its venues and searches."""

import secrets
import time
from collections.abc import Callable, Mapping
from datetime import UTC, datetime

import msgspec

from clawbridge.agnt.fields import DEFAULT_TTL_MS, NETWORK, PING, Json, build_envelope
from clawbridge.agnt.signing import read_key, sign_payload

CATEGORIES = ("restaurant", "cafe", "bar", "spa", "gym", "hotel", "tour")
PLACES = (
    ("Canggu", "Badung"),
    ("Seminyak", "Badung"),
    ("Ubud", "Gianyar"),
    ("Sanur", "Denpasar"),
    ("Amed", "Karangasem"),
)
NAMES = ("Blue Table", "Green Kitchen", "Old Harbour", "Little Garden", "River View", "Lantern")
WORDS = (
    "seafood", "sunset", "breakfast", "coffee", "noodles", "grill",
    "vegan", "families", "music", "dancing", "massage", "yoga",
    "surfing", "diving", "tapas", "cocktails", "wine", "pizza",
    "sushi", "curry", "salads", "bread", "cakes", "gardens",
    "terraces", "views", "quiet", "meetings", "parties", "weddings",
)  # fmt: skip
WORDS_A_VENUE = 8


def name_venue(number: int) -> str:
    """The name of a venue; its number is in no other name."""
    return f"{NAMES[number % len(NAMES)]} {number:06d}"


def slug_of(number: int) -> str:
    """The slug of a venue."""
    return f"venue-{number:06d}"


PATH = "/a2a/v1"
FEW = 20
LISTED = 50
MICROSECONDS = 1_000_000

_encode = msgspec.json.Encoder().encode


class Envelopes:
    """Requests with one key, each of an event that no other has: 1,000,000, to be sent within 300 s.

    `make_payload`: the payload of the envelope of a number. `secret`: of the key, to sign them; empty: unsigned.
    """

    def __init__(
        self, token: str, intent: str, make_payload: Callable[[int], Json], answered: str, *, secret: str = ""
    ) -> None:
        self.answered = answered
        self._intent = intent
        self._make_payload = make_payload
        self._key = read_key(secret) if secret else b""
        self._sender = f"bench_{secrets.token_hex(6)}"
        self._second = f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%S}"
        self._head = (
            f"POST {PATH} HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {token}\r\n"
            "Content-Type: application/json\r\nContent-Length: "
        ).encode()

    def fill(self, number: int) -> bytes:
        """The bytes of the request of that number."""
        payload = self._make_payload(number)
        if self._key:
            payload = sign_payload(payload, key=self._key, sender=self._sender, at_s=int(time.time()))
        envelope = build_envelope(
            sender=self._sender,
            to=NETWORK,
            intent=self._intent,
            payload=payload,
            agent_context={},
            ttl_ms=DEFAULT_TTL_MS,
            timestamp=f"{self._second}.{number % MICROSECONDS:06d}Z",
        )
        body = _encode(envelope)
        return b"%b%d\r\n\r\n%b" % (self._head, len(body), body)


def make_kinds(venues: int) -> Mapping[str, tuple[str, Callable[[int], Json], str]]:
    """By kind of envelope: the intent, the payload by number, and what is in a success.

    The payload of a ping is ignored; it has a number so that each, when signed, has another signature.
    """

    def search_new(number: int) -> Json:
        number_of_venue = name_venue(number % venues).split()[-1]
        return {"query": f"{WORDS[number // venues % len(WORDS)]} {number_of_venue}", "limit": 10}

    def search_few(number: int) -> Json:
        return {"query": WORDS[number % FEW], "location": PLACES[number % len(PLACES)][0], "limit": 10}

    def confirm(number: int) -> Json:
        return {"venue_id": slug_of(number % venues), "slot_id": f"slot-{number}", "party_size": 1 + number % 8}

    return {
        "ping": (PING, lambda number: {"number": number}, '"active_venues"'),
        f"search, {FEW} queries": ("booking.search", search_few, '"results"'),
        "search, new queries": ("booking.search", search_new, '"results"'),
        f"list of {LISTED}": ("venue.list", lambda _: {"limit": LISTED}, '"venues"'),
        "confirm": ("booking.confirm", confirm, '"booking_id"'),
    }
