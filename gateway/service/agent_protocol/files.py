"""Files of a task: read from an upload, a form with `file` and `relative_path`, or from a reply of its agent."""

import base64
import binascii
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO

import msgspec
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadhandler import MemoryFileUploadHandler
from django.http.multipartparser import MultiPartParser, MultiPartParserError
from msgspec import UNSET

from agents.transcript.pieces import ArtifactPiece, Part, Piece
from gateway.service.agent_protocol.shapes import invalid, read_relative_path
from kit.asgi import MAX_BODY_BYTES, too_large


@dataclass(frozen=True, slots=True, kw_only=True)
class NewFile:
    """A file for a task; its name and type are the sender's."""

    name: str
    mime: str
    data: bytes
    relative_path: str = ""


def read_form(content_type: str, body: bytes) -> NewFile:
    """The file of a form.

    Raises:
        RequestRefused: 413, 422.
    """
    head = {"CONTENT_TYPE": content_type, "CONTENT_LENGTH": str(len(body))}
    try:
        fields, files = MultiPartParser(head, BytesIO(body), [MemoryFileUploadHandler()], "utf-8").parse()
    except RequestDataTooBig:
        raise too_large(MAX_BODY_BYTES) from None
    except (MultiPartParserError, SuspiciousOperation, ValueError, LookupError):
        raise invalid("the form cannot be read") from None
    file = files.get("file")
    if file is None:
        raise invalid("file: this part is missing")
    path = read_relative_path(str(fields.get("relative_path", "")))
    return NewFile(name=file.name or "", mime=file.content_type or "", data=file.read(), relative_path=path)


def files_of(pieces: Sequence[Piece]) -> Iterator[NewFile]:
    """The artifacts that an agent made besides its reply: files, texts with a name, and data."""
    for piece in pieces:
        if isinstance(piece, ArtifactPiece) and piece.lead is None:
            name = piece.name or piece.artifact_id
            for part in piece.parts:
                if (data := _bytes_of(part)) is not None:
                    yield NewFile(name=part.filename or name, mime=_mime_of(part), data=data)


def _bytes_of(part: Part) -> bytes | None:
    """The bytes of a part; None for raw that is no base64."""
    if isinstance(part.raw, str):
        try:
            return base64.b64decode(part.raw.replace("-", "+").replace("_", "/") + "==")
        except binascii.Error:
            return None
    if isinstance(part.url, str):
        return part.url.encode()
    if part.data is not UNSET:
        return msgspec.json.encode(part.data)
    return part.text.encode() if isinstance(part.text, str) else None


def _mime_of(part: Part) -> str:
    if isinstance(part.url, str):
        return "text/uri-list"
    if part.data is not UNSET:
        return part.media_type or "application/json"
    return part.media_type or ("text/plain" if isinstance(part.text, str) else "")
