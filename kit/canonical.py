"""JSON in the one form that is signed (RFC 8785, the JSON Canonicalization Scheme)."""

import json
import math
from decimal import Decimal
from typing import Any

SAFE_INTEGER = 2**53 - 1
LONGEST_IN_FULL = 21  # digits before the point
MOST_ZEROS = 6  # after the point, the one before the first digit included
_quote = json.JSONEncoder(ensure_ascii=False).encode


def canonical_json(value: Any) -> bytes:
    """The canonical bytes of a JSON value.

    Keys sort by their UTF-16 code units (not Python's order, beyond the Basic Multilingual Plane), `json` escapes
    strings as the RFC wants, and numbers are written as JavaScript writes them.

    Raises:
        ValueError: NaN or infinity, an integer that JavaScript cannot hold, or a lone surrogate.
    """
    pieces: list[str] = []
    _write(value, pieces)
    return "".join(pieces).encode("utf-8")


def _write(value: Any, pieces: list[str]) -> None:
    if isinstance(value, dict):
        separator = "{"
        for key in sorted(value, key=lambda key: key.encode("utf-16-be")):
            pieces += [separator, _quote(key), ":"]
            _write(value[key], pieces)
            separator = ","
        pieces.append("}" if value else "{}")
    elif isinstance(value, list):
        separator = "["
        for item in value:
            pieces.append(separator)
            _write(item, pieces)
            separator = ","
        pieces.append("]" if value else "[]")
    elif isinstance(value, float):
        pieces.append(_number(value))
    elif isinstance(value, int) and abs(value) > SAFE_INTEGER:
        raise ValueError("integers are written up to 2^53 - 1 only")
    else:
        pieces.append(_quote(value))


def _number(value: float) -> str:
    """A float as ECMAScript's Number::toString writes it."""
    if not math.isfinite(value):
        raise ValueError("there is no such number in JSON")
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    text, point = "".join(map(str, digits)), len(digits) + int(exponent)  # the point is behind so many digits
    if len(text) <= point <= LONGEST_IN_FULL:
        text = text.ljust(point, "0")
    elif 0 < point <= LONGEST_IN_FULL:
        text = f"{text[:point]}.{text[point:]}"
    elif -MOST_ZEROS < point <= 0:
        text = f"0.{'0' * -point}{text}"
    else:
        text = f"{text[0]}{'.' if text[1:] else ''}{text[1:]}e{point - 1:+d}"
    return f"-{text}" if sign else text
