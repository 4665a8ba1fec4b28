"""Names nobody can guess."""

import os
import threading
import time

POOL_BYTES = 4096


class _Pool(threading.local):
    """The system's randomness, fetched for many names at once: each fetch lets other threads take the interpreter.

    A byte is given once; a forked child starts with none of its parent's.
    """

    def __init__(self) -> None:
        self._bytes = b""
        self._used = 0

    def hex(self, size: int) -> str:
        """So many random bytes (at most POOL_BYTES) in hex, good for what nobody may guess."""
        if self._used + size > len(self._bytes):
            self._bytes, self._used = os.urandom(POOL_BYTES), 0
        start, self._used = self._used, self._used + size
        return self._bytes[start : self._used].hex()

    def clear(self) -> None:
        """Give nothing of what is left."""
        self._bytes, self._used = b"", 0


_pool = _Pool()
os.register_at_fork(after_in_child=_pool.clear)


random_hex = _pool.hex


def time_ordered() -> str:
    """The time in milliseconds, then 104 random bits, in hex: as unguessable, and kind to a database's index."""
    return f"{time.time_ns() // 1_000_000:012x}{random_hex(13)}"


def unguessable(prefix: str = "") -> str:
    """The prefix and 128 random bits in hex: letters, digits and what the prefix holds."""
    return prefix + random_hex(16)
