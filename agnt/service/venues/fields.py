"""The fields of a venue, and the checks of their values for forms, REST and files alike. Columns have labels and
hints.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from decimal import Decimal, InvalidOperation
from typing import Any

from agents import settings
from agnt.models import Venue
from agnt.models.venue import HIGHEST_RANK, MAX_DESCRIPTION_CHARS
from clawbridge.agnt.fields import NETWORK, is_name
from kit.ids import read_uuid
from kit.safe_http import NotSent, TargetRules
from kit.safe_http.target import read_target

SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
CAPITAL = re.compile("(?=[A-Z])")
NOT_IN_A_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
WANTED_SLUG = "want letters, digits and any of . _ -, a letter or digit first"
MAX_TAGS = 20
TAG_SEPARATOR = ";"
FEE_PLACES = Decimal("0.01")
AGENT_OR_URL = "a venue has an agent or a URL, not both: clear the other one"

Fields = Mapping[str, Any]
NEEDED = ("slug", "name")
_EMPTY = Venue()


@dataclass(frozen=True, slots=True)
class VenueField:
    """A field of `Venue` that an owner writes.

    Args:
        api: its name in REST.
        check: makes what is stored from a value and `most`; raises ValueError with a public text.
        most: the characters of a text, of each tag, or of the fee; the highest rank.
    """

    api: str
    check: Callable[[Any, int], Any]
    most: int = 0

    @property
    def column(self) -> str:
        """The field's name in a file: that of REST in snake_case."""
        return CAPITAL.sub("_", self.api).lower()


class BadVenue(Exception):
    """The change is refused as a whole. `reasons`: a public text for each wrong field, by the field of `Venue`."""

    def __init__(self, reasons: Mapping[str, str]) -> None:
        super().__init__("; ".join(f"{field}: {reason}" for field, reason in reasons.items()))
        self.reasons = dict(reasons)


def check_fields(given: Fields) -> dict[str, Any]:
    """Fields of `Venue` as they are stored: text without blanks around it, each tag once. `agent`: a row, or None.

    Raises:
        BadVenue: one or more of them are wrong.
    """
    fields: dict[str, Any] = {}
    reasons: dict[str, str] = {}
    for name, value in given.items():
        try:
            field = FIELDS[name]
            fields[name] = field.check(value, field.most)
        except ValueError as wrong:
            reasons[name] = str(wrong)
    if fields.get("agent") is not None and fields.get("url"):
        reasons["url"] = AGENT_OR_URL
    if reasons:
        raise BadVenue(reasons)
    return fields


def _check_slug(value: Any, most: int) -> str:
    slug = _check_line(value, most)
    if not SLUG.fullmatch(slug):
        raise ValueError(WANTED_SLUG)
    if read_uuid(slug):
        raise ValueError("a slug may not be a UUID: it would look like the id of a venue")
    return slug


def _check_agent_name(value: Any, most: int) -> str:
    name = _check_line(value, most)
    if name and not is_name(name):
        raise ValueError("want letters, digits and any of _ . : -")
    if name.lower().startswith(NETWORK.partition(":")[0] + ":"):
        raise ValueError("this is the address of a network, not of a venue")
    return name


def _check_name(value: Any, most: int) -> str:
    if not (name := _check_line(value, most)):
        raise ValueError("a venue has a name")
    return name


def _check_description(value: Any, most: int) -> str:
    text = str(value).replace("\r\n", "\n").strip()
    return _check_text(text, most, NOT_IN_A_TEXT, "it holds a control character")


def _check_tags(value: Any, most: int) -> list[str]:
    tags = list(dict.fromkeys(filter(None, (_check_line(one, most) for one in value))))
    if len(tags) > MAX_TAGS:
        raise ValueError(f"want at most {MAX_TAGS} tags")
    if any(TAG_SEPARATOR in tag for tag in tags):
        raise ValueError(f"a tag holds no {TAG_SEPARATOR!r}")
    return tags


def _check_fee(value: Any, most: int) -> Decimal:
    wanted = "want a number from 0 to 100 with at most two decimals"
    if len(text := str(value)) > most:
        raise ValueError(wanted)
    try:
        fee = Decimal(text)
        is_fine = fee.is_finite() and 0 <= fee <= 100 and fee == fee.quantize(FEE_PLACES)
    except InvalidOperation:
        is_fine = False
    if not is_fine:
        raise ValueError(wanted)
    return fee.quantize(FEE_PLACES)


def _check_rank(value: int, most: int) -> int:
    if abs(value) > most:
        raise ValueError(f"want a whole number from -{most} to {most}")
    return value


def _take(value: Any, most: int) -> Any:
    """The value itself: forms, REST and files read a flag, and find an agent, before they check it."""
    return value


def _check_url(value: Any, most: int) -> str:
    url = _check_line(value, most)
    if not url:
        return ""
    try:
        read_target(url, TargetRules(ports=settings.REMOTE_PORTS, allows_private=settings.REMOTE_ALLOW_PRIVATE))
    except NotSent as refused:
        raise ValueError(str(refused)) from None
    return url


def _check_line(value: Any, most: int) -> str:
    return _check_text(str(value).strip(), most, UNPRINTABLE, "it holds a line break or a control character")


def _check_text(text: str, most: int, forbidden: re.Pattern[str], fault: str) -> str:
    if len(text) > most:
        raise ValueError(f"it has {len(text)} characters, and {most} are the most")
    if forbidden.search(text):
        raise ValueError(fault)
    return text


FIELDS: Mapping[str, VenueField] = {
    "slug": VenueField("slug", _check_slug, 80),
    "name": VenueField("name", _check_name, 200),
    "agent_name": VenueField("agentId", _check_agent_name, 128),
    "description": VenueField("description", _check_description, MAX_DESCRIPTION_CHARS),
    "category": VenueField("category", _check_line, 80),
    "area": VenueField("area", _check_line, 120),
    "city": VenueField("city", _check_line, 120),
    "tags": VenueField("tags", _check_tags, 40),
    "price_range": VenueField("priceRange", _check_line, 16),
    "referral_fee_pct": VenueField("referralFeePct", _check_fee, 16),
    "priority_rank": VenueField("priorityRank", _check_rank, HIGHEST_RANK),
    "is_active": VenueField("active", _take),
    "agent": VenueField("agent", _take, 161),
    "url": VenueField("url", _check_url, 2048),
}
DEFAULTS: Fields = {name: getattr(_EMPTY, name) for name in FIELDS}  # of a field that is left empty
