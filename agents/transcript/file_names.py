"""What an uploader calls a file, made harmless: a name is shown and sent back, and never part of a path."""

import re

MAX_NAME_CHARS = 255
MAX_SUFFIX_CHARS = 16
NAMELESS = "file"
ANY_MIME = "application/octet-stream"
SEPARATORS = re.compile(r"[/\\]")
MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,62}/[a-z0-9][a-z0-9!#$&^_.+-]{0,62}")


def clean_name(given: str) -> str:
    """The base name without control characters, at most 255 characters; a long one keeps its suffix."""
    base = SEPARATORS.split(given)[-1]
    name = "".join(filter(str.isprintable, base)).strip()
    return _shortened(name) if name.strip(".") else NAMELESS


def clean_mime(given: str | None) -> str:
    """A media type in lower case, without parameters; what has not the shape of one is any bytes."""
    mime = (given or "").partition(";")[0].strip().lower()
    return mime if MIME.fullmatch(mime) else ANY_MIME


def _shortened(name: str) -> str:
    stem, dot, suffix = name.rpartition(".")
    if len(name) <= MAX_NAME_CHARS or not stem or len(suffix) > MAX_SUFFIX_CHARS:
        return name[:MAX_NAME_CHARS]
    return stem[: MAX_NAME_CHARS - len(dot + suffix)] + dot + suffix
