"""Room on the disk that is kept for what must be written when the disk is full."""

import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Protocol

TRY_EVERY_S = 1.0


class Reserve(Protocol):
    """Room that is given up so that ends can be written, and taken again when the disk has room."""

    def fill(self) -> bool:
        """Take the room unless it is taken; whether it is. Cheap when it is."""

    def spend(self) -> None:
        """Give the room up."""


class DiskReserve:
    """A file of that size, which holds nothing. One thread uses it."""

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
