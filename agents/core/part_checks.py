"""Whether a part can be shown to anybody: one kind of content, and that of its kind."""

import binascii
from collections.abc import Sequence
from urllib.parse import urlsplit

from msgspec import UNSET

from agents.transcript.pieces import Part

MAX_PARTS = 100
MAX_URL_CHARS = 2048
MAX_NAME_CHARS = 1024


class BadPart(ValueError):
    """A part is not what A2A calls one; the text says why, and is public."""


def check_parts(parts: Sequence[Part]) -> None:
    """Refuse parts that are none; their text is sound already (`kit.strict_json`).

    Raises:
        BadPart: too few or too many of them, or one is no part.
    """
    if not 1 <= len(parts) <= MAX_PARTS:
        raise BadPart(f"parts: want 1 to {MAX_PARTS}")
    for number, part in enumerate(parts):
        if flaw := _flaw(part):
            raise BadPart(f"parts[{number}]: {flaw}")


def _flaw(part: Part) -> str:
    """What is wrong with it; empty when nothing is."""
    kinds = [one for one in (part.text, part.raw, part.url, part.data) if one is not UNSET]
    if len(kinds) != 1:
        return "want exactly one of text, raw, url and data"
    if max(len(part.media_type), len(part.filename)) > MAX_NAME_CHARS:
        return f"mediaType and filename hold at most {MAX_NAME_CHARS} characters"
    if isinstance(part.raw, str) and not is_base64(part.raw):
        return "raw: not standard base64"
    if isinstance(part.url, str) and not is_web_url(part.url):
        return f"url: want an absolute http or https address of at most {MAX_URL_CHARS} characters"
    return ""


def is_base64(text: str) -> bool:
    """Whether it is standard base64, padded, and nothing else."""
    try:
        binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return False
    return True


def is_web_url(text: str) -> bool:
    """Whether it is an absolute address on the web. It is not asked whether anything is there."""
    if len(text) > MAX_URL_CHARS or not text.isprintable() or " " in text:
        return False
    try:
        address = urlsplit(text)
        return address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        return False
