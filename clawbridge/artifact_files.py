"""The files in the artifacts of a task: their names and their content."""

import mimetypes
import unicodedata
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

import msgspec

from clawbridge.shapes import Artifact, Part

MAX_NAME_BYTES = 200  # of the 255 that file systems take
MAX_SUFFIX_CHARS = 16
NOT_IN_NAMES = '<>:"|?*'  # not on Windows
DEVICES = {"con", "prn", "aux", "nul", *(f"{kind}{number}" for kind in ("com", "lpt") for number in range(1, 10))}
SUFFIXES = {"text/plain": ".txt", "text/markdown": ".md", "application/json": ".json"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactFile:
    """One file. `content`: None where it is elsewhere, at `url`; `name`: a safe file name, unique in the task."""

    artifact_id: str
    name: str
    media_type: str
    content: bytes | None = None
    url: str = ""


def files_of(artifacts: Iterable[Artifact]) -> list[ArtifactFile]:
    """The files of a task: one for each part, but texts that follow each other in an artifact are one."""
    found: list[ArtifactFile] = []
    for artifact in artifacts:
        last: Part | None = None
        for part in artifact.parts:
            file = file_of(artifact, part)
            is_more = last is not None and None not in (last.text, part.text)
            if last and is_more and (last.filename, last.media_type) == (part.filename, part.media_type):
                earlier = found.pop()
                file = replace(earlier, content=(earlier.content or b"") + (file.content or b""))
            found.append(file)
            last = part
    return with_different_names(found)


def file_of(artifact: Artifact, part: Part) -> ArtifactFile:
    """The file of one part."""
    media_type = part.media_type
    content = None if part.url is not None else part.content
    if part.text is not None:
        media_type, content = media_type or "text/plain", part.text.encode(errors="replace")
    elif part.data is not msgspec.UNSET:
        media_type = media_type or "application/json"
        content = msgspec.json.format(msgspec.json.encode(part.data)) + b"\n"
    name = safe_name(part.filename)
    if not name:
        main = media_type.partition(";")[0].strip().lower()
        suffix = SUFFIXES.get(main) or mimetypes.guess_extension(main) or ".bin"
        name = safe_name(artifact.name or artifact.artifact_id) or "artifact"
        name = name if name.lower().endswith(suffix) else safe_name(name + suffix)
    return ArtifactFile(
        artifact_id=artifact.artifact_id,
        name=name,
        media_type=media_type or "application/octet-stream",
        content=content,
        url=part.url or "",
    )


def safe_name(text: str) -> str:
    """An untrusted name as a safe file name; empty if nothing remains."""
    last = text.replace("\\", "/").rpartition("/")[2]
    letters = (
        "_" if letter in NOT_IN_NAMES or unicodedata.category(letter).startswith("C") else letter
        for letter in unicodedata.normalize("NFC", last)
    )
    name = "".join(letters).strip(" .")
    if name.partition(".")[0].strip().lower() in DEVICES:
        name = f"_{name}"
    suffix = PurePosixPath(name).suffix
    suffix = suffix if len(suffix) <= MAX_SUFFIX_CHARS else ""
    stem = name.removesuffix(suffix).encode()[: MAX_NAME_BYTES - len(suffix.encode())]
    return stem.decode(errors="ignore") + suffix


def with_different_names(files: Sequence[ArtifactFile]) -> list[ArtifactFile]:
    """The files; a name that comes again, in any case of its letters, gets a number."""
    taken: set[str] = set()
    named = []
    for file in files:
        path, name, number = PurePosixPath(file.name), file.name, 1
        while name.casefold() in taken:
            number += 1
            name = f"{path.stem}-{number}{path.suffix}"
        taken.add(name.casefold())
        named.append(replace(file, name=name))
    return named
