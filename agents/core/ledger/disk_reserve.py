"""Disk space that the ledger keeps for the ends of turns, for when the disk is full."""

import os
import time
from contextlib import suppress
from pathlib import Path

TRY_EVERY_S = 1.0  # how often to try to fill a released reserve


class DiskReserve:
    """Reserved disk space: released when the disk is full, so that ends of turns can be written; filled again
    later.

    The reserve is a file of that size without content. Only one thread uses it. `is_kept`: the space is allocated.
    """

    def __init__(self, path: Path, size_bytes: int) -> None:
        self.is_kept = False
        self._path = path
        self._size_bytes = size_bytes
        self._try_at = 0.0

    def fill(self) -> bool:
        """Allocate the space unless it is allocated; returns True if it is allocated."""
        if self.is_kept or time.monotonic() < self._try_at:
            return self.is_kept
        try:
            with self._path.open("wb") as file:
                # Allocate blocks: a sparse file would reserve no space.
                os.posix_fallocate(file.fileno(), 0, self._size_bytes)
            self.is_kept = True
        except OSError:
            self.spend()
        return self.is_kept

    def spend(self) -> None:
        """Release the space, and do not allocate it again at once: waiting ends need it."""
        self.is_kept = False
        self._try_at = time.monotonic() + TRY_EVERY_S
        with suppress(OSError):  # a disk that takes no writes cannot delete the file
            self._path.unlink(missing_ok=True)
