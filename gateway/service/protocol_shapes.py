"""The bodies of the Agent Protocol: what is read is checked here, what is shown has the names of the protocol.

Files of a task come from an upload, a form with `file` and `relative_path`, or from a reply of its agent. The next
step gives the agent the uploads as parts of its question.
"""

import base64
import binascii
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Annotated, Any, TypedDict, TypeVar

import msgspec
from django.core.exceptions import RequestDataTooBig, SuspiciousOperation
from django.core.files.uploadhandler import MemoryFileUploadHandler
from django.db.models import Model, QuerySet
from django.http.multipartparser import MultiPartParser, MultiPartParserError
from msgspec import UNSET, Meta, Struct

from agents.core.types import SettledTurn
from agents.core.waiting import text_of
from agents.models.choices import Interruption
from agents.transcript.pieces import ArtifactPiece, LastWords, Part, Piece, joined_texts, text_in
from gateway.models import ProtocolArtifact, ProtocolStep, ProtocolTask
from gateway.wire.frames import Json
from kit import strict_json
from kit.asgi import MAX_BODY_BYTES, HttpRequest, RequestRefused, too_large
from kit.rows import RowSource, show
from kit.strict_json import UnreadableText

MAX_INPUT_CHARS = 262_144
MAX_AGENT_CHARS = 160
MAX_PATH_CHARS = 512
MAX_PAGE = 100
DEFAULT_PAGE = 10
FARTHEST_PAGE = 1_000_000
DEFAULT_AGENT = "main"
ASKS_INPUT = frozenset(Interruption)
NUMBER = re.compile(r"[1-9][0-9]{0,6}")

Row = TypeVar("Row", bound=Model)
Text = Annotated[str, Meta(max_length=MAX_INPUT_CHARS)]


class RequestBody(Struct, frozen=True):
    """The body of a new task, and of a new step. Other keys are ignored, as the protocol has it."""

    input: Text | None = None
    additional_input: Any = None


class ApiArtifact(TypedDict):
    """A file of a task."""

    artifact_id: Annotated[str, RowSource("public_id")]
    agent_created: bool
    file_name: str
    relative_path: str | None


class ApiTask(TypedDict):
    """A task."""

    task_id: Annotated[str, RowSource("public_id")]
    input: str | None
    additional_input: Any
    artifacts: list[ApiArtifact]


class ApiStep(TypedDict):
    """A step with the artifacts that its agent made."""

    task_id: Annotated[str, RowSource("task.public_id")]
    step_id: Annotated[str, RowSource("public_id")]
    name: Annotated[str, RowSource("task.agent")]
    status: str
    input: str | None
    additional_input: Any
    output: str | None
    artifacts: list[ApiArtifact]
    is_last: bool


@dataclass(frozen=True, slots=True)
class PageOf:
    """The number of the wanted page of a list, from 1."""

    number: int
    size: int

    def show(self, name: str, rows: "QuerySet[Row]", show: Callable[[list[Row]], Sequence[object]]) -> Json:
        """The page as an answer: its rows by the name of the list, and its place in the list."""
        total, start = rows.count(), (self.number - 1) * self.size
        place = {
            "total_items": total,
            "total_pages": -(-total // self.size),
            "current_page": self.number,
            "page_size": self.size,
        }
        return {name: show(list(rows[start : start + self.size])), "pagination": place}


def invalid(text: str) -> RequestRefused:
    """422: the protocol's answer to a request that is not in order."""
    return RequestRefused(422, "validation_failed", text)


def read_body(body: bytes) -> RequestBody:
    """The body of a new task or step; an empty one has neither input.

    Raises:
        RequestRefused: 422.
    """
    try:
        value = strict_json.read(body) if body.strip() else {}
        return msgspec.convert(value, RequestBody)
    except (UnreadableText, msgspec.ValidationError) as flaw:
        raise invalid(str(flaw)) from None


def read_agent(additional_input: Any) -> str:
    """The name of the agent that a task is for.

    Raises:
        RequestRefused: 422, it is not a name.
    """
    named = additional_input.get("agent", DEFAULT_AGENT) if isinstance(additional_input, dict) else DEFAULT_AGENT
    if not isinstance(named, str) or not 1 <= len(named) <= MAX_AGENT_CHARS or not named.isprintable():
        raise invalid("additional_input.agent: want the name of an agent")
    return named


def read_page(request: HttpRequest) -> PageOf:
    """The page that the query names; one that is too large is cut to MAX_PAGE rows.

    Raises:
        RequestRefused: 422, it names no numbers from 1.
    """
    number = _number(request, "current_page", 1)
    return PageOf(min(number, FARTHEST_PAGE), min(_number(request, "page_size", DEFAULT_PAGE), MAX_PAGE))


def read_relative_path(given: str) -> str:
    """A relative path of an artifact, with single slashes.

    Raises:
        RequestRefused: 422, it is absolute, leaves its folder, or cannot be printed.
    """
    parts = [one for one in given.split("/") if one not in ("", ".")]
    is_outside = given.startswith("/") or ".." in parts or "\\" in given or (parts and parts[0].endswith(":"))
    if is_outside or not given.isprintable() or len(given) > MAX_PATH_CHARS:
        raise invalid(f"relative_path: want a path inside of the task, of {MAX_PATH_CHARS} characters at most")
    return "/".join(parts)


def show_artifacts(artifacts: Iterable[ProtocolArtifact]) -> list[ApiArtifact]:
    """Artifacts, oldest first."""
    return [show(ApiArtifact, one) for one in artifacts]


def show_task(task: ProtocolTask, artifacts: Iterable[ProtocolArtifact]) -> ApiTask:
    """One task with its artifacts."""
    return show(ApiTask, task, artifacts=show_artifacts(artifacts))


def show_step(step: ProtocolStep, artifacts: Iterable[ProtocolArtifact]) -> ApiStep:
    """One step with the artifacts that its agent made."""
    is_done = step.status == ProtocolStep.Status.COMPLETED
    output, is_last = step.output if is_done else None, is_done and not step.asks_input
    return show(ApiStep, step, output=output, artifacts=show_artifacts(artifacts), is_last=is_last)


def _number(request: HttpRequest, name: str, default: int) -> int:
    values = request.query_values(name)
    if not values:
        return default
    if not NUMBER.fullmatch(values[-1]):
        raise invalid(f"{name}: want a number from 1")
    return int(values[-1])


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


def parts_of(text: str, uploads: Sequence[ProtocolArtifact]) -> tuple[Part, ...]:
    """The question and the uploads that come with it; nothing for a question that is text alone."""
    if not uploads:
        return ()
    files = [
        Part(
            raw=base64.b64encode(bytes(one.data)).decode(),
            media_type=one.mime,
            filename=f"{one.relative_path}/{one.file_name}" if one.relative_path else one.file_name,
        )
        for one in uploads
    ]
    return (Part(text=text), *files)


def output_of(settled: SettledTurn, pieces: Sequence[Piece]) -> str:
    """The reply as text: with what the agent asks back, or the data that it answered with."""
    if settled.reason in ASKS_INPUT:
        said = text_of(pieces)
        asked = "".join(text_in(one.parts) for one in pieces if isinstance(one, LastWords)) or settled.text
        return asked if asked.startswith(said) else joined_texts([said, asked])
    if settled.text:
        return settled.text
    besides = [one for one in pieces if isinstance(one, ArtifactPiece) and one.lead is None]
    data = [part.data for one in besides for part in one.parts if part.data is not UNSET]
    return msgspec.json.encode(data[-1]).decode() if data else ""
