"""Disk space that is reserved for writes that must succeed on a full disk."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol

TRY_EVERY_S = 1.0


class Reserve(Protocol):
    """Reserved space: released so that ends of turns can be written, and filled again when the disk has space."""

    def fill(self) -> bool:
        """Allocate the space unless it is allocated; returns whether it is. Cheap when it is."""

    def spend(self) -> None:
        """Release the space."""


class DiskReserve:
    """A file of that size without content. One thread uses it."""

    def __init__(self, path: Path, size_bytes: int) -> None:
        self._path = path
        self._size_bytes = size_bytes
        self._is_kept = False
        self._try_at = 0.0

    def fill(self) -> bool:
        """See `Reserve`."""
        if self._is_kept or time.monotonic() < self._try_at:
            return self._is_kept
        self._try_at = time.monotonic() + TRY_EVERY_S
        try:
            with self._path.open("wb") as file:
                # Blocks, not a length: a sparse file would keep no room.
                os.posix_fallocate(file.fileno(), 0, self._size_bytes)
            self._is_kept = True
        except OSError:
            self.spend()
        return self._is_kept

    def spend(self) -> None:
        """See `Reserve`."""
        self._is_kept = False
        with suppress(OSError):  # a disk that takes no writes gives nothing back
            self._path.unlink(missing_ok=True)
