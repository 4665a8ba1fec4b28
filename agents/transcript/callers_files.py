"""The files that callers send with questions: uploaded before the question, or within its message.

A file belongs to its uploader alone until a question with it is admitted. The ledger then adds the file to the
session that is asked (`agents.transcript.mentions`), in the transaction that admits the question.
"""

import hashlib
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import timedelta

from django.db import transaction
from django.db.models import F, Q, QuerySet

from accounts.models import User
from accounts.quotas import MEBIBYTE
from agents import limits, settings
from agents.models import File, Session, Turn
from agents.transcript import files
from agents.transcript.file_types import (
    PREVIEWED,
    FileRefused,
    check_type,
    media_type_of_file,
)
from agents.transcript.files import MAX_FILE_BYTES, NAMELESS, Upload, clean_mime, clean_name, expires_at
from agents.transcript.scanning import scan
from kit.clock import db_now

MAX_FILES_PER_ASK = 20
UNSENT_FOR = timedelta(days=1)
ADDRESS = "/api/v1/files/{}/content"
_ADDRESS = re.compile(r"/api/v1/files/([1-9][0-9]{0,17})/content")


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedFile:
    """A file that may be stored: named, of its type, and passed by the scanners."""

    filename: str
    mime: str
    data: bytes
    sha256: str


@dataclass(frozen=True, slots=True)
class Destination:
    """The session that a question goes to, and the conversation that it belongs to, if it names one."""

    session_id: int
    context_id: str = ""


def address_of(file_id: int) -> str:
    """The address of a file, by which a message refers to it."""
    return settings.PUBLIC_URL + ADDRESS.format(file_id)


def find_id(url: str) -> int | None:
    """The id of the file at an address of this hub; None for all other addresses."""
    if not url.startswith(settings.PUBLIC_URL):
        return None
    found = _ADDRESS.fullmatch(url.removeprefix(settings.PUBLIC_URL))
    return int(found[1]) if found else None


def check_upload(upload: Upload) -> CheckedFile:
    """Check and scan a file. Call it outside of a transaction: a scan takes a while.

    Raises:
        FileRefused: it is not of its type, is a picture that is too large, or a scanner refuses it.
        NotScanned: the scanner failed.
    """
    name = clean_name(upload.filename or NAMELESS)
    if len(upload.data) > MAX_FILE_BYTES:
        raise FileRefused(f"{name}: a file has at most {MAX_FILE_BYTES} bytes")
    mime = media_type_of_file(clean_mime(upload.mime), name)
    check_type(upload.data, mime, name)
    scan(upload.data, name)
    return CheckedFile(filename=name, mime=mime, data=upload.data, sha256=hashlib.sha256(upload.data).hexdigest())


def add(uploader: User, checked: CheckedFile) -> File:
    """Store a file that no question has yet; the same file again is the same row.

    Raises:
        accounts.quotas.QuotaExceeded: the uploader has no room for it.
    """
    return add_all(uploader.pk, [checked], None)[0]


@transaction.atomic
def add_all(user_id: int, checked: Sequence[CheckedFile], to: Destination | None) -> list[File]:
    """Store files of one message; those that the same conversation has already are not stored again.

    Raises:
        accounts.quotas.QuotaExceeded: the user has no room for them; nothing was stored.
    """
    limits.NUMBER_OF_FILES.check(user_id, 0)  # locks the account: of two equal uploads the second finds the first
    return [_add_unless_there(user_id, one, to) for one in checked]


def _add_unless_there(user_id: int, one: CheckedFile, to: Destination | None) -> File:
    names = {"sha256": one.sha256, "filename": one.filename, "mime": one.mime}
    same: File | None = _usable(user_id, to).filter(**names).order_by(F("session").desc(nulls_last=True)).first()
    if same is not None:
        return same
    limits.NUMBER_OF_FILES.check(user_id)
    limits.STORAGE.check(user_id, len(one.data))
    files.keep(one.sha256, one.data)
    return _insert(File(uploader_id=user_id, size=len(one.data), **names))


def _usable(user_id: int, to: Destination | None) -> "QuerySet[File]":
    """The live files of a user that a question to this destination can use as they are."""
    usable = Q(session=None)
    if to is not None and to.context_id:
        usable |= Q(session=to.session_id, context_id=to.context_id) & ~Q(chat_id="")
    found: QuerySet[File] = File.objects.live().filter(usable, uploader=user_id)
    return found


def _insert(file: File) -> File:
    file.blob_id = file.sha256
    file.uploaded_at = db_now()
    file.expires_at = file.uploaded_at + UNSENT_FOR
    file.save(force_insert=True)
    return file


def own_files(user_id: int) -> "QuerySet[File]":
    """The files that a user uploaded for questions, sent or not, deleted ones too."""
    found: QuerySet[File] = File.objects.filter(Q(session=None) | ~Q(chat_id=""), uploader=user_id)
    return found


@transaction.atomic
def prepare_sent(user_id: int, file_ids: Collection[int], to: Destination) -> dict[int, File]:
    """The files of a message that names them by their addresses, by the named ids.

    A file that another conversation has is copied, without its bytes: each conversation can be deleted alone. Ids
    that are not of a live file of this user are missing in the result.
    """
    found: dict[int, File] = own_files(user_id).filter(deleted_at=None).in_bulk(set(file_ids))
    usable = set(_usable(user_id, to).filter(pk__in=found).values_list("pk", flat=True))
    held = files.lock({file.sha256 for key, file in found.items() if key not in usable})
    prepared: dict[int, File] = {}
    for key, file in found.items():
        if key in usable:
            prepared[key] = file
        elif file.sha256 in held:
            limits.NUMBER_OF_FILES.check(user_id)
            limits.STORAGE.check(user_id, file.size)
            names = {name: getattr(file, name) for name in ("sha256", "filename", "mime", "size")}
            prepared[key] = _insert(File(uploader_id=user_id, **names))
    return prepared


def check_together(sizes: Sequence[int]) -> None:
    """Check the number and the size of the files of one question.

    Raises:
        ValueError: they are too many, or too large together; the text is public.
    """
    if len(sizes) > MAX_FILES_PER_ASK:
        raise ValueError(f"a question has at most {MAX_FILES_PER_ASK} files, not {len(sizes)}")
    if sum(sizes) > settings.FILES_PER_ASK_MB * MEBIBYTE:
        raise ValueError(f"the files of a question have at most {settings.FILES_PER_ASK_MB} MiB together")


def send(
    found: Iterable[File], session_id: int, *, agent_id: int | None = None, chat_id: str = "", context_id: str = ""
) -> set[int]:
    """Add unsent files to a session, within the caller's transaction; returns the ids of those that are there.

    `chat_id`: of the question that has the files.
    """
    keys = {file.pk for file in found}
    question = {"session": session_id, "agent": agent_id, "chat_id": chat_id, "context_id": context_id}
    unsent = File.objects.live().filter(pk__in=keys, session=None)
    unsent.update(**question, expires_at=expires_at(db_now()))
    return set(File.objects.live().filter(pk__in=keys, **question).values_list("pk", flat=True))


def may_agent_read(file: File) -> bool:
    """True if the session's agent may read a file: a caller's only while it answers that caller, or its owner.

    So one caller cannot make the agent pass on what another caller sent.
    """
    if not file.chat_id:
        return True
    owner_id = Session.objects.filter(files=file).values("owner")
    answering = Turn.objects.filter(session=file.session_id, released_at=None)
    return answering.filter(Q(caller=file.uploader_id) | Q(caller__in=owner_id)).exists()


def has_preview(file: File) -> bool:
    """True if browsers can show the file: the hub has checked that its bytes are of its type."""
    return file.mime in PREVIEWED and file.deleted_at is None and (file.session_id is None or bool(file.chat_id))


def delete_files_of_thread(caller_id: int, agent_id: int, context_id: str) -> int:
    """Delete the files of a conversation, whose rows keep their names until they expire; returns their number.

    Call it in the transaction that deletes the thread.
    """
    of_thread = File.objects.live().filter(uploader=caller_id, agent=agent_id, context_id=context_id)
    deleted = 0
    for file in of_thread.exclude(chat_id="").select_related("session", "uploader"):
        files.delete(file)
        deleted += 1
    return deleted
