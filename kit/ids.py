"""Makes ids that cannot be guessed, and reads ids from requests."""

import os
import threading
import time
from uuid import UUID

POOL_BYTES = 4096
MAX_ID_DIGITS = 18


class _Pool(threading.local):
    """A pool of the system's random bytes in hex: one read for many ids, because each read releases the
    interpreter lock.

    Each byte is used once; a forked child starts with an empty pool.
    """

    text = ""
    used = 2 * POOL_BYTES  # characters of the text

    def clear(self) -> None:
        """Empty the pool."""
        self.text, self.used = "", 2 * POOL_BYTES


_pool = _Pool()
os.register_at_fork(after_in_child=_pool.clear)


def random_hex(size: int) -> str:
    """Random bytes (at most POOL_BYTES) of that number in hex, fit for secrets."""
    start, end = _pool.used, _pool.used + 2 * size
    if end > 2 * POOL_BYTES:
        _pool.text, start, end = os.urandom(POOL_BYTES).hex(), 0, 2 * size
    _pool.used = end
    return _pool.text[start:end]


def time_ordered() -> str:
    """A hex id of the time in milliseconds and 104 random bits: it cannot be guessed, and new ids sort last in a
    database index.
    """
    return f"{time.time_ns() // 1_000_000:012x}{random_hex(13)}"


def unguessable(prefix: str = "") -> str:
    """An id of the prefix and 128 random bits in hex."""
    return prefix + random_hex(16)


def read_row_id(text: str) -> int | None:
    """A text as the number of a row; None: the text is no number, or larger than any row's."""
    return int(text) if text.isascii() and text.isdecimal() and len(text) <= MAX_ID_DIGITS else None


def read_uuid(text: str) -> UUID | None:
    """A text as a UUID; None: the text is no UUID."""
    try:
        return UUID(text)
    except ValueError:
        return None
