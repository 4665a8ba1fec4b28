"""Names nobody can guess."""

import secrets
import time


def time_ordered() -> str:
    """The time in milliseconds, then 104 random bits, in hex: as unguessable, and kind to a database's index."""
    return f"{time.time_ns() // 1_000_000:012x}{secrets.token_hex(13)}"


def unguessable(prefix: str = "") -> str:
    """The prefix and 128 random bits in hex: letters, digits and what the prefix holds."""
    return prefix + secrets.token_hex(16)
