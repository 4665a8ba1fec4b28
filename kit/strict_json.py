"""Reads untrusted JSON strictly: refuses what msgspec and json accept but the hub must not.

No duplicate keys, no constants such as NaN, no number too large for a float (`1e999` would be Infinity), at most
64 levels, and no NUL and no lone surrogate in any string.
"""

import json
import math
import re
from typing import Any, NoReturn

import msgspec

MAX_DEPTH = 64
FENCE, FENCE_END = "```json", "```"
MAX_BRACKETS = 10_000  # half a million empty arrays in one body would delay all other requests


class UnreadableText(Exception):
    """The hub does not accept the text; the exception's own text is public."""


class NotJson(UnreadableText):
    """The text is not JSON at all."""


class BadShape(UnreadableText):
    """The text is JSON with duplicate keys, too many or too deep objects and arrays, or a number that is too
    large.
    """


class ForbiddenText(UnreadableText):
    """A string in `value` holds NUL or a lone surrogate, which cannot be stored or shown."""

    def __init__(self, value: Any) -> None:
        super().__init__("text may hold neither NUL nor a lone surrogate")
        self.value = value


class _DuplicateKey(ValueError):
    pass


def read(
    body: bytes | str,
    *,
    max_depth: int = MAX_DEPTH,
    max_brackets: int | None = MAX_BRACKETS,
    takes_any_text: bool = False,
) -> Any:
    """The JSON value of a body, or of the text of a frame.

    `max_brackets`: more than `max_depth`. None: no limit, for texts whose strings may hold whole programs, because
    brackets in strings are counted, too. `takes_any_text`: strings are not checked, so `ForbiddenText` is not
    raised.

    Raises:
        NotJson, BadShape, ForbiddenText: the hub does not accept the text.
    """
    raw = body.encode("utf-8", "surrogatepass") if isinstance(body, str) else body
    marks = raw.translate(None, _NO_MARKS)  # its brackets and colons; a few marks have few brackets among them
    brackets = len(marks) - marks.count(b":") if marks[max_depth:] else 0
    has_escapes = b"\\u" in raw
    if brackets <= max_depth and not has_escapes:
        # Most texts are read in C. msgspec keeps only the last of two equal keys: its value, encoded again, has
        # fewer colons than the text. Only an escaped colon could hide the difference.
        try:
            value = _decode(raw)
            if _encode(value).translate(None, _NO_MARKS) == marks:
                return value
        except (msgspec.DecodeError, RecursionError, UnicodeError):
            pass  # the other decoder finds the fault
    try:
        text = body if isinstance(body, str) else body.decode().removeprefix("\ufeff")
    except UnicodeDecodeError:
        raise NotJson("the body is not UTF-8") from None
    if max_brackets is not None and brackets > max_brackets:
        raise BadShape(f"more than {max_brackets} objects and arrays")
    value = _decode_by_pairs(text, max_depth)
    if brackets > max_depth and is_deeper_than(value, max_depth):
        raise BadShape(f"nested deeper than {max_depth} levels")
    # Only an escape can have put forbidden text into a string.
    if has_escapes and not takes_any_text and _has_forbidden_text(value):
        raise ForbiddenText(value)
    return value


def _decode_by_pairs(text: str, max_depth: int) -> Any:
    try:
        return _decoder.decode(text)
    except json.JSONDecodeError as wrong:
        raise NotJson(f"not JSON: {wrong.msg} at character {wrong.pos}") from None
    except _DuplicateKey as twin:
        raise BadShape(str(twin)) from None
    except RecursionError:
        raise BadShape(f"nested deeper than {max_depth} levels") from None
    except ValueError:
        raise BadShape("a number is too large") from None


def is_deeper_than(value: Any, levels: int) -> bool:
    """True if objects and arrays are nested deeper than `levels`."""
    layer = [value]
    for _ in range(levels):
        layer = [inner for outer in layer for inner in _children(outer)]
        if not layer:
            return False
    return any(isinstance(inner, dict | list) for inner in layer)


def is_forbidden(text: str) -> bool:
    """True if a string holds NUL or a lone surrogate."""
    return _FORBIDDEN.search(text) is not None


def _refuse_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise _DuplicateKey("an object names one key twice")
    return members


def _refuse_constant(name: str) -> NoReturn:
    raise json.JSONDecodeError(f"{name} is not JSON", name, 0)


def _finite(digits: str) -> float:
    number = float(digits)
    if not math.isfinite(number):
        raise ValueError
    return number


_NO_MARKS = bytes(set(range(256)).difference(b"[{:"))
_FORBIDDEN = re.compile("[\0\ud800-\udfff]")
_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_decoder = json.JSONDecoder(
    object_pairs_hook=_refuse_duplicate_keys, parse_constant=_refuse_constant, parse_float=_finite
)


def _children(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return list(value.values())
    return value if isinstance(value, list) else []


def _has_forbidden_text(value: Any) -> bool:
    waiting = [value]
    while waiting:
        item = waiting.pop()
        if isinstance(item, str) and is_forbidden(item):
            return True
        if isinstance(item, dict):
            waiting.extend(item)
        waiting.extend(_children(item))
    return False


def bare_json(reply: str) -> str:
    """The text of a reply without the one Markdown fence that it may stand in."""
    text = reply.strip()
    if len(text) > len(FENCE) and text.startswith(FENCE) and text.endswith(FENCE_END):
        return text.removeprefix(FENCE).removesuffix(FENCE_END).strip()
    return text
