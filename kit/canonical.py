"""JSON in the one form that is signed (RFC 8785, the JSON Canonicalization Scheme)."""

import json
from typing import Any

SAFE_INTEGER = 2**53 - 1


def canonical_json(value: Any) -> bytes:
    """The canonical bytes of a JSON value of strings, booleans, null and integers.

    For those, sorted keys and compact JSON are all there is to RFC 8785: keys sort by their UTF-16 code units
    (not Python's order, beyond the Basic Multilingual Plane), and `json` escapes as the RFC wants. Its rules for
    fractions are not here.

    Raises:
        ValueError: a float, an integer that JavaScript cannot hold, or a lone surrogate.
    """
    text = json.dumps(_ordered(value), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.encode("utf-8")


def _ordered(value: Any) -> Any:
    if isinstance(value, dict):
        keys = sorted(value, key=lambda key: key.encode("utf-16-be"))
        return {key: _ordered(value[key]) for key in keys}
    if isinstance(value, list):
        return [_ordered(item) for item in value]
    if isinstance(value, float) or (isinstance(value, int) and abs(value) > SAFE_INTEGER):
        raise ValueError("only integers up to 2^53 are written here")
    return value
