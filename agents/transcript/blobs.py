"""Stores the bytes of files once, however many files refer to them (docs/adr/0033).

A file names its blob while it is live, and not after: a blob without files is spent. A transaction that adds a
name or takes one holds the blob's row lock, so bytes that are uploaded again while their last file goes are kept.
Lock all blobs of a transaction in one call: they are taken in order.
"""

from collections.abc import Collection, Iterator
from dataclasses import dataclass

from django.db import transaction
from django.db.models import BinaryField
from django.db.models.functions import Substr

from agents.models import Blob

SWEPT_AT_ONCE = 20
SLICE_BYTES = 3 * 64 * 1024  # a multiple of 3: base64 of slices can be joined


class BlobGone(Exception):
    """The bytes were deleted while they were read."""


@dataclass(frozen=True, slots=True)
class Swept:
    """How many blobs went, and how many bytes that freed."""

    blobs: int = 0
    freed_bytes: int = 0


def keep(sha256: str, data: bytes) -> None:
    """See that these bytes are there, locked until the transaction ends."""
    while not lock([sha256]):  # again: another may have swept it between the two statements
        Blob.objects.bulk_create([Blob(sha256=sha256, size=len(data), data=data)], ignore_conflicts=True)


def lock(hashes: Collection[str]) -> set[str]:
    """Hold these blobs until the transaction ends; those that are there. SQLite holds its one write lock."""
    wanted = Blob.objects.select_for_update().filter(pk__in=set(hashes)).order_by("pk")
    return set(wanted.values_list("pk", flat=True))


def sweep(hashes: Collection[str]) -> Swept:
    """Delete the spent ones among these locked blobs."""
    spent = dict(Blob.objects.filter(pk__in=set(hashes), files=None).values_list("pk", "size"))
    if spent:
        Blob.objects.filter(pk__in=spent).defer("data").delete()
    return Swept(len(spent), sum(spent.values()))


def sweep_spent() -> Swept:
    """Delete every spent blob: those of a user or session that was deleted whole."""
    total = Swept()
    while swept := _sweep_some():
        total = Swept(total.blobs + swept.blobs, total.freed_bytes + swept.freed_bytes)
    return total


def read_slices(sha256: str, size: int) -> Iterator[bytes]:
    """The bytes, SLICE_BYTES at a time. Nothing is held in the database between two slices.

    Raises:
        BlobGone: they were deleted meanwhile.
    """
    for start in range(0, max(size, 1), SLICE_BYTES):
        piece = Substr("data", start + 1, SLICE_BYTES, output_field=BinaryField())
        found = Blob.objects.filter(pk=sha256).values_list(piece, flat=True).first()
        if found is None:
            raise BlobGone
        yield bytes(found)


@transaction.atomic
def _sweep_some() -> Swept | None:
    spent = list(Blob.objects.filter(files=None).values_list("pk", flat=True)[:SWEPT_AT_ONCE])
    swept = sweep(lock(spent)) if spent else Swept()
    return swept if swept.blobs else None
