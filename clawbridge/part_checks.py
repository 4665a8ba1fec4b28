"""The rules of a hub for files in a part: content in base64, and addresses of the web."""

import binascii
from urllib.parse import urlsplit

MAX_URL_CHARS = 2048


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
