"""A file as everybody sees it: REST, operators' sockets and webhooks."""

from typing import Literal, TypedDict, cast

from agents.models import File
from kit.describe import Time, Uuid
from kit.iso import iso, iso_or_none

Scope = Literal["attachment", "reply", "corpus"]


class ApiFile(TypedDict):
    """A file of a session, live or deleted."""

    id: int
    sessionId: Uuid
    uploaderLogin: str
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
    """One ApiFile; session and uploader come with the row."""
    return {
        "id": file.pk,
        "sessionId": str(file.session.public_id),
        "uploaderLogin": file.uploader.login,
        "filename": file.filename,
        "mime": file.mime,
        "size": file.size,
        "sha256": file.sha256,
        "scope": cast(Scope, file.scope),
        "expose": False,
        "uploadedAt": iso(file.uploaded_at),
        "expiresAt": iso(file.expires_at),
        "deletedAt": iso_or_none(file.deleted_at),
    }
