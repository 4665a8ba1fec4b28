"""Reduces the text of a failure to its shape: what stays the same when the failure occurs again."""

import hashlib
import re

from agents.models.failure import MAX_SHAPE_CHARS

MAX_READ_CHARS = 1_000
OTHER = "…"  # the shape of failures of an agent that has as many groups as it may have

# In this order: an address has digits and slashes, too. No pattern repeats a repetition, so reading is linear.
_REPLACED = (
    (re.compile(r"[a-zA-Z][a-zA-Z0-9+.-]{1,15}://[^\s\"'<>]+"), "<url>"),
    (re.compile(r"[\w.+-]{1,64}@[\w-]{1,63}\.[\w.-]{1,63}"), "<mail>"),
    (re.compile(r"\"[^\"\n]*\"|“[^”\n]*”|«[^»\n]*»|`[^`\n]*`|(?<!\w)'[^'\n]*'(?!\w)"), "<text>"),
    (re.compile(r"(?<![\w/\\])(?:[a-zA-Z]:\\|\\\\|~?\.{0,2}/)[^\s,;:()<>\[\]]+"), "<path>"),
    (re.compile(r"\b[0-9a-fA-F]{8}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{4}-[0-9a-fA-F]{12}\b"), "<id>"),
    (re.compile(r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?:Z|[+-]\d\d:?\d\d)?)?\b"), "<time>"),
    (re.compile(r"\b\d{1,2}:\d\d(?::\d\d(?:[.,]\d+)?)?\b"), "<time>"),
    (re.compile(r"\b(?=[\w-]*\d)[\w-]{8,}\b"), "<id>"),
    (re.compile(r"(?<![\w@])@[\w/.-]+"), "<name>"),
    (re.compile(r"(?<![\w.])[+-]?\d[\d.,_]*"), "<number>"),
    (re.compile(r"\d+"), "<number>"),
)


def find_shape(text: str) -> str:
    """The shape of a text: one line of at most MAX_SHAPE_CHARS characters."""
    shape = text[:MAX_READ_CHARS]
    for pattern, name in _REPLACED:
        shape = pattern.sub(name, shape)
    return " ".join("".join(one if one.isprintable() else " " for one in shape).split())[:MAX_SHAPE_CHARS]


def digest_of(reason: str, shape: str) -> str:
    """The digest by which a reason and a shape are the same group."""
    return hashlib.sha256(f"{reason}\n{shape.lower()}".encode("utf-8", "replace")).hexdigest()[:32]
