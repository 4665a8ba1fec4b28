"""Checks that the hub, its client and the connector share; and the variables that name a command's hub and token.

The module needs Python alone: `connect.pyz` carries it.
"""

import binascii
from collections.abc import Collection
from pathlib import Path
from urllib.parse import urlsplit

MAX_URL_CHARS = 2048
HUB_VARIABLE = "CLAWBRIDGE_HUB"
TOKEN_VARIABLE = "CLAWBRIDGE_TOKEN"  # noqa: S105  a name


def is_base64(text: str) -> bool:
    """True if a text is standard base64, padded, and nothing else."""
    try:
        binascii.a2b_base64(text, strict_mode=True)
    except ValueError:
        return False
    return True


def is_web_url(text: str) -> bool:
    """True if a text is an absolute http or https address of at most MAX_URL_CHARS. Nothing is sent there."""
    if len(text) > MAX_URL_CHARS or not text.isprintable() or " " in text:
        return False
    try:
        address = urlsplit(text)
        return address.scheme in ("http", "https") and bool(address.hostname) and address.port != 0
    except ValueError:
        return False


def hub_address(url: str, schemes: Collection[str] = ("http", "https")) -> str:
    """The address of a hub in one spelling.

    Raises:
        ValueError: the text is no address of a hub; the error says so.
    """
    problem = ValueError(f"hub {url!r}: want an address such as https://hub.example")
    try:
        parts = urlsplit(url.strip())
        is_origin = parts.scheme in schemes and bool(parts.hostname) and parts.port != 0
    except ValueError:
        raise problem from None
    extras = (parts.username, parts.password, parts.query, parts.fragment)
    if not is_origin or any(extras) or not url.isascii():
        raise problem
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def read_token(file: Path) -> str:
    """The token that a file of the option `--token-file` holds alone.

    Raises:
        ValueError: the file cannot be read, or is empty; the error says so.
    """
    try:
        token = file.read_text(encoding="ascii").strip()
    except (OSError, ValueError) as problem:
        raise ValueError(f"--token-file {file}: {problem}") from None
    if not token:
        raise ValueError(f"--token-file {file}: the file is empty")
    return token
