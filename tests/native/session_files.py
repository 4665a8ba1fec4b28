"""Files of sessions: their rows, whom a session is lent to, and how files are uploaded."""

from typing import Any

from django.core.files.uploadedfile import SimpleUploadedFile

from agents.models import File, Session
from agents.transcript import files
from tests.native.rows import Person, api

CAP = 10 * 1024 * 1024
TEXT = b"what a day"


def of(session: Session) -> str:
    return f"/api/v1/sessions/{session.public_id}/files"


def upload(
    who: Person | str | None, session: Session, data: bytes = TEXT, name: str = "day.txt", mime: str = "text/plain"
) -> Any:
    token = who.session if isinstance(who, Person) else who
    form = {"file": SimpleUploadedFile(name, data, mime)}
    return api(token).post(of(session), form, format="multipart")


def stored(owner: Person, session: Session, data: bytes = TEXT) -> File:
    return files.store(session, owner.user, files.Upload(filename="day.txt", mime="text/plain", data=data))


def live(session: Session) -> list[int]:
    return list(File.objects.live().filter(session=session).order_by("pk").values_list("pk", flat=True))
