"""What a table adds up to, whatever order its rows come in and whatever database they come from."""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

NUL = "\0"
INSTEAD = "�"
MODULUS = 2**64


@dataclass(slots=True)
class Sum:
    """How many rows, and the sum of their digests."""

    rows: int = 0
    total: int = 0

    def add(self, row: Sequence[Any]) -> None:
        """One more row."""
        digest = hashlib.blake2b(digest_size=8)
        for value in row:
            digest.update(_canonical(value))
            digest.update(b"\x1f")
        self.rows += 1
        self.total = (self.total + int.from_bytes(digest.digest())) % MODULUS

    def __str__(self) -> str:
        return f"{self.total:016x}"


def without_nul(value: Any) -> Any:
    """A value as PostgreSQL can keep it: for each NUL the sign that stands for what cannot be shown."""
    match value:
        case str():
            return value.replace(NUL, INSTEAD)
        case dict():
            return {without_nul(key): without_nul(inner) for key, inner in value.items()}
        case list():
            return [without_nul(inner) for inner in value]
    return value


def _canonical(value: Any) -> bytes:
    match value:
        case bytes() | memoryview():
            return hashlib.blake2b(value).digest()
        case datetime():
            return value.astimezone(UTC).isoformat().encode()
        case dict() | list():
            return json.dumps(value, sort_keys=True).encode()
    return f"{type(value).__name__} {value}".encode()
