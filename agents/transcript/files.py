"""Stores, reads, copies and deletes files of sessions; deletes files that have expired."""

import hashlib
import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import chain
from typing import Annotated, Literal, TypedDict

from django.db import transaction
from django.db.models import BinaryField
from django.db.models.functions import Substr

from accounts.models import User
from agents import limits, settings
from agents.models import Blob, File, Session
from agents.transcript import announcements
from agents.transcript.access import SessionRole, role_of, sessions_visible_to
from agents.transcript.announcements import FileMessage, announce
from agents.transcript.scanning import scan
from kit.clock import db_now
from kit.describe import Time, Uuid
from kit.rows import RowSource, show

MAX_NAME_CHARS = 255
MAX_SUFFIX_CHARS = 16
NAMELESS = "file"
ANY_MIME = "application/octet-stream"
SEPARATORS = re.compile(r"[/\\]")
MIME = re.compile(r"[a-z0-9][a-z0-9!#$&^_.+-]{0,62}/[a-z0-9][a-z0-9!#$&^_.+-]{0,62}")


def clean_name(given: str) -> str:
    """The base name without control characters, at most 255 characters; a cut name keeps its suffix."""
    base = SEPARATORS.split(given)[-1]
    name = "".join(filter(str.isprintable, base)).strip()
    return _shortened(name) if name.strip(".") else NAMELESS


def clean_mime(given: str | None) -> str:
    """A media type in lower case, without parameters; the type of arbitrary bytes for any other text."""
    mime = (given or "").partition(";")[0].strip().lower()
    return mime if MIME.fullmatch(mime) else ANY_MIME


def _shortened(name: str) -> str:
    stem, dot, suffix = name.rpartition(".")
    if len(name) <= MAX_NAME_CHARS or not stem or len(suffix) > MAX_SUFFIX_CHARS:
        return name[:MAX_NAME_CHARS]
    return stem[: MAX_NAME_CHARS - len(dot + suffix)] + dot + suffix


Scope = Literal["attachment", "reply", "corpus"]


class ApiFile(TypedDict):
    """A file of a session, live or deleted."""

    id: int
    sessionId: Annotated[Uuid, RowSource("session.public_id")]
    uploaderLogin: Annotated[str, RowSource("uploader.login")]
    filename: str
    mime: str
    size: int
    sha256: str
    scope: Scope
    expose: bool
    uploadedAt: Time
    expiresAt: Time
    deletedAt: Time | None


def show_file(file: File) -> ApiFile:
    """One ApiFile; the row must have its session and uploader loaded."""
    return show(ApiFile, file, expose=False)


MAX_FILE_BYTES = 10_485_760
DELETED_AT_ONCE = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """An uploaded file; its name and media type are as the uploader gave them."""

    filename: str
    mime: str | None
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class Deleted:
    """The result of deleting a file. `refs_remaining`: live files that still name its bytes."""

    already_deleted: bool
    blob_deleted: bool
    refs_remaining: int
    freed_bytes: int


@dataclass(frozen=True, slots=True)
class Swept:
    """The numbers of deleted blobs and of freed bytes."""

    blobs: int = 0
    freed_bytes: int = 0


def store(session: Session, uploader: User, upload: Upload, scope: str = File.Scope.ATTACHMENT) -> File:
    """Add a file to a session, and tell its operators.

    Raises:
        accounts.quotas.QuotaExceeded: the uploader has no room for it.
        FileRefused, NotScanned: a scanner refuses the file, or failed.
    """
    scan(upload.data, clean_name(upload.filename))
    sha256 = hashlib.sha256(upload.data).hexdigest()  # before the transaction, because hashing takes a while
    with transaction.atomic():
        limits.NUMBER_OF_FILES.check(uploader.pk)
        limits.STORAGE.check(uploader.pk, len(upload.data))
        keep(sha256, upload.data)
        file = File(
            session=session,
            uploader=uploader,
            sha256=sha256,
            filename=clean_name(upload.filename),
            mime=clean_mime(upload.mime),
            size=len(upload.data),
            scope=scope,
        )
        _add(file, db_now())
        _announce_change(file, "uploaded")
    return file


def clone(file: File, session_id: int, user_id: int, now: datetime) -> File:
    """Add a file to another session with the same blob, which the caller's transaction has locked."""
    columns = {name: getattr(file, name) for name in ("sha256", "filename", "mime", "size", "scope")}
    copied = File(session_id=session_id, uploader_id=user_id, **columns)
    _add(copied, now)
    return copied


def _add(file: File, now: datetime) -> None:
    """Add the row of a file whose blob exists and is locked."""
    file.blob_id = file.sha256
    file.uploaded_at, file.expires_at = now, expires_at(now)
    file.save(force_insert=True)


def find_file(file_id: int, user_id: int) -> tuple[File, SessionRole | None] | None:
    """A file, live or deleted, that this user may read, with the user's role in its session.

    The role is None for the user's own file that was sent with a question, or was not sent yet: its uploader
    may read and delete it without a role in the session.
    """
    file: File | None = File.objects.filter(pk=file_id).select_related("uploader").first()
    if file is None:
        return None
    if file.uploader_id == user_id and (file.session_id is None or file.chat_id):
        return file, None
    session = sessions_visible_to(user_id).filter(files=file).first()
    return None if session is None else (file, role_of(session))


def open_file(file: File) -> Iterator[bytes] | None:
    """The bytes of the file in slices, of which the first is read at once; None if the file was deleted.

    See `read_slices`.
    """
    if file.blob_id is None:
        return None
    slices = read_slices(file.blob_id, file.size)
    try:
        return chain([next(slices)], slices)
    except BlobGone:
        return None


@transaction.atomic
def delete(file: File) -> Deleted:
    """Delete a file, and its blob if no other live file names it; a repeated call succeeds."""
    lock([file.sha256])
    gone = _mark_deleted([file])
    swept = sweep([file.sha256])
    return Deleted(
        already_deleted=not gone,
        blob_deleted=swept.blobs > 0,
        refs_remaining=File.objects.filter(blob_id=file.sha256).count(),
        freed_bytes=swept.freed_bytes,
    )


def expire() -> int:
    """Delete expired files, a few in each transaction, and blobs without files; returns the number of files."""
    gone = 0
    due = File.objects.live().select_related("session", "uploader").order_by("expires_at")
    while files := list(due.filter(expires_at__lte=db_now())[:DELETED_AT_ONCE]):
        gone += _expire(files)
    sweep_spent()
    return gone


@transaction.atomic
def forget_files_of(session_ids: Collection[int]) -> tuple[int, Swept]:
    """Delete the files of sessions in the transaction that deletes the sessions; returns their number, and a
    `Swept`.
    """
    files = File.objects.filter(session_id__in=session_ids)
    hashes = set(files.live().values_list("sha256", flat=True))
    lock(hashes)
    gone, _ = files.delete()
    return gone, sweep(hashes)


def expires_at(uploaded_at: datetime) -> datetime:
    """The time at which a file expires."""
    return uploaded_at + timedelta(days=settings.FILES_KEPT_DAYS)


@transaction.atomic
def _expire(files: Sequence[File]) -> int:
    hashes = {file.sha256 for file in files}
    lock(hashes)
    gone = _mark_deleted(files)
    sweep(hashes)
    return len(gone)


def _mark_deleted(files: Collection[File]) -> list[File]:
    """Mark these files as deleted; returns the files that were not deleted before."""
    now, gone = db_now(), []
    for file in files:
        if File.objects.live().filter(pk=file.pk).update(deleted_at=now, blob=None):
            file.deleted_at, file.blob_id = now, None
            _announce_change(file, "deleted")
            gone.append(file)
    return gone


def _announce_change(file: File, action: str) -> None:
    if file.session is None or file.session_id is None:
        return
    announcements.queue_session_event(
        file.session,
        f"file.{action}",
        {
            "fileId": file.pk,
            "name": file.filename,
            "bytes": file.size,
            "uploaderLogin": file.uploader.login,
        },
    )
    announce(file.session_id, FileMessage(str(file.session.public_id), action, {**show_file(file)}))


SWEPT_AT_ONCE = 20
SLICE_BYTES = 3 * 64 * 1024  # a multiple of 3: base64 of slices can be joined


class BlobGone(Exception):
    """The bytes were deleted while they were read."""


def keep(sha256: str, data: bytes) -> None:
    """Store these bytes unless they are stored already, and lock the blob until the transaction ends."""
    while not lock([sha256]):  # again: another transaction may have deleted the blob between the two statements
        Blob.objects.bulk_create([Blob(sha256=sha256, size=len(data), data=data)], ignore_conflicts=True)


def lock(hashes: Collection[str]) -> set[str]:
    """Lock these blobs until the transaction ends; returns the hashes that exist. On SQLite the write lock
    suffices.
    """
    wanted = Blob.objects.select_for_update().filter(pk__in=set(hashes)).order_by("pk")
    return set(wanted.values_list("pk", flat=True))


def sweep(hashes: Collection[str]) -> Swept:
    """Delete those of these locked blobs that no file names."""
    spent = dict(Blob.objects.filter(pk__in=set(hashes), files=None).values_list("pk", "size"))
    if spent:
        Blob.objects.filter(pk__in=spent).defer("data").delete()
    return Swept(len(spent), sum(spent.values()))


def sweep_spent() -> None:
    """Delete every blob that no file names, as is left by deleting a user or a session."""
    while _sweep_some():
        pass


def read_slices(sha256: str, size: int) -> Iterator[bytes]:
    """The bytes, SLICE_BYTES at a time. The function holds no connection and no lock between two slices.

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
def _sweep_some() -> bool:
    spent = list(Blob.objects.filter(files=None).values_list("pk", flat=True)[:SWEPT_AT_ONCE])
    return bool(spent) and sweep(lock(spent)).blobs > 0
