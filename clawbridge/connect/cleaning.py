"""Text as every reader takes it."""

from collections.abc import Mapping
from typing import Any


def clean(text: str) -> str:
    """Replace what neither UTF-8 nor a database takes: lone surrogates and NUL."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


def cleaned(value: Any) -> Any:
    """The same in every string of a JSON value."""
    if isinstance(value, str):
        return clean(value)
    if isinstance(value, Mapping):
        return {clean(str(name)): cleaned(inner) for name, inner in value.items()}
    return [cleaned(inner) for inner in value] if isinstance(value, list | tuple) else value


def cut(text: str, at_most_bytes: int) -> str:
    """The beginning of a text that fits into so many bytes of UTF-8."""
    return text.encode()[:at_most_bytes].decode(errors="ignore")
