"""The fields of a venue: what may stand in each of them, whichever way it comes."""

import re
import uuid
from collections.abc import Callable, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from agents import settings
from agents.models import Agent
from agnt.models import Venue
from agnt.wire import NETWORK, is_name
from kit.safe_http import NotSent, Rules
from kit.safe_http.target import read_target

SLUG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
UNPRINTABLE = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
NOT_IN_A_TEXT = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
WANTED_SLUG = "want letters, digits and any of . _ -, a letter or digit first"
MAX_SLUG_CHARS = 80
MAX_AGENT_NAME_CHARS = 128
MAX_NAME_CHARS = 200
MAX_DESCRIPTION_CHARS = 4000
MAX_CATEGORY_CHARS = 80
MAX_PLACE_CHARS = 120
MAX_PRICE_CHARS = 16
MAX_URL_CHARS = 2048
MAX_TAGS = 20
MAX_TAG_CHARS = 40
TAG_SEPARATOR = ";"
HIGHEST_RANK = 1_000_000
MAX_NUMBER_CHARS = 16
FEE_PLACES = Decimal("0.01")
AGENT_OR_URL = "a venue has an agent or a URL, not both: clear the other one"

Fields = Mapping[str, Any]


class BadVenue(Exception):
    """Nothing was written. `reasons`: why, a public text for each field that is wrong, by the field of `Venue`."""

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
            fields[name] = CHECKS[name](value)
        except ValueError as wrong:
            reasons[name] = str(wrong)
    if fields.get("agent") is not None and fields.get("url"):
        reasons["url"] = AGENT_OR_URL
    if reasons:
        raise BadVenue(reasons)
    return fields


def _check_slug(value: Any) -> str:
    slug = _text_of(value, MAX_SLUG_CHARS)
    if not SLUG.fullmatch(slug):
        raise ValueError(WANTED_SLUG)
    if _is_uuid(slug):
        raise ValueError("a slug may not be a UUID: it would look like the id of a venue")
    return slug


def _check_agent_name(value: Any) -> str:
    name = _text_of(value, MAX_AGENT_NAME_CHARS)
    if name and not is_name(name):
        raise ValueError("want letters, digits and any of _ . : -")
    if name.lower().startswith(NETWORK.partition(":")[0] + ":"):
        raise ValueError("this is the address of a network, not of a venue")
    return name


def _check_name(value: Any) -> str:
    if not (name := _text_of(value, MAX_NAME_CHARS)):
        raise ValueError("a venue has a name")
    return name


def _check_description(value: Any) -> str:
    text = str(value).replace("\r\n", "\n").strip()
    _check_length(text, MAX_DESCRIPTION_CHARS)
    if NOT_IN_A_TEXT.search(text):
        raise ValueError("it holds a control character")
    return text


def _check_tags(value: Any) -> list[str]:
    tags = list(dict.fromkeys(filter(None, (_text_of(one, MAX_TAG_CHARS) for one in value))))
    if len(tags) > MAX_TAGS:
        raise ValueError(f"want at most {MAX_TAGS} tags")
    if any(TAG_SEPARATOR in tag for tag in tags):
        raise ValueError(f"a tag holds no {TAG_SEPARATOR!r}")
    return tags


def _check_fee(value: Any) -> Decimal:
    wanted = "want a number from 0 to 100 with at most two decimals"
    if len(text := str(value)) > MAX_NUMBER_CHARS:
        raise ValueError(wanted)
    try:
        fee = Decimal(text)
        is_fine = fee.is_finite() and 0 <= fee <= 100 and fee == fee.quantize(FEE_PLACES)
    except InvalidOperation:
        is_fine = False
    if not is_fine:
        raise ValueError(wanted)
    return fee.quantize(FEE_PLACES)


def _check_rank(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or abs(value) > HIGHEST_RANK:
        raise ValueError(f"want a whole number from -{HIGHEST_RANK} to {HIGHEST_RANK}")
    return value


def _check_active(value: Any) -> bool:
    if not isinstance(value, bool):
        raise ValueError("want true or false")
    return value


def _check_agent(value: Any) -> Agent | None:
    if value is not None and not isinstance(value, Agent):
        raise ValueError("want an agent")
    return value


def _check_url(value: Any) -> str:
    url = _text_of(value, MAX_URL_CHARS)
    if not url:
        return ""
    try:
        read_target(url, Rules(ports=settings.REMOTE_PORTS, allows_private=settings.REMOTE_ALLOW_PRIVATE))
    except NotSent as refused:
        raise ValueError(str(refused)) from None
    return url


def _line_check(max_chars: int) -> Callable[[Any], str]:
    return lambda value: _text_of(value, max_chars)


def _text_of(value: Any, max_chars: int) -> str:
    text = str(value).strip()
    _check_length(text, max_chars)
    if UNPRINTABLE.search(text):
        raise ValueError("it holds a line break or a control character")
    return text


def _check_length(text: str, max_chars: int) -> None:
    if len(text) > max_chars:
        raise ValueError(f"it has {len(text)} characters, and {max_chars} are the most")


def _is_uuid(text: str) -> bool:
    try:
        uuid.UUID(text)
    except ValueError:
        return False
    return True


CHECKS: Mapping[str, Callable[[Any], Any]] = {
    "slug": _check_slug,
    "agent_name": _check_agent_name,
    "name": _check_name,
    "description": _check_description,
    "category": _line_check(MAX_CATEGORY_CHARS),
    "area": _line_check(MAX_PLACE_CHARS),
    "city": _line_check(MAX_PLACE_CHARS),
    "tags": _check_tags,
    "price_range": _line_check(MAX_PRICE_CHARS),
    "referral_fee_pct": _check_fee,
    "priority_rank": _check_rank,
    "is_active": _check_active,
    "agent": _check_agent,
    "url": _check_url,
}
_EMPTY = Venue()
DEFAULTS: Mapping[str, Any] = {name: getattr(_EMPTY, name) for name in CHECKS}  # of a field that is left empty
