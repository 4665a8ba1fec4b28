"""Bytes that are kept once, however many files name them (docs/adr/0033).

A file names its blob while it is live, and not after: a blob without files is spent. Whoever adds a name or takes
one holds the blob's row lock, so bytes that are uploaded again while their last file goes are kept. Lock all blobs
of a transaction in one call: they are taken in order.
"""

from collections.abc import Collection
from dataclasses import dataclass

from django.db import transaction

from agents.models import Blob

SWEPT_AT_ONCE = 20


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


def read(sha256: str) -> bytes | None:
    """The bytes, None when they are gone."""
    found = Blob.objects.filter(pk=sha256).values_list("data", flat=True).first()
    return None if found is None else bytes(found)


@transaction.atomic
def _sweep_some() -> Swept | None:
    spent = list(Blob.objects.filter(files=None).values_list("pk", flat=True)[:SWEPT_AT_ONCE])
    swept = sweep(lock(spent)) if spent else Swept()
    return swept if swept.blobs else None
