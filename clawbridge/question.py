"""The parts of a message from arguments, standard input and files: text, data of JSON files, and other files."""

import base64
import json
import mimetypes
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, NoReturn

import msgspec
from msgspec import UNSET

from clawbridge.shapes import Part
from clawbridge.terminal import bad_arguments, is_interactive

MAX_BYTES = 1024 * 1024 - 4096  # of the hub's limit, the rest is the envelope
MAX_PARTS = 64
STANDARD_INPUT = "-"
INPUT_NAME = "standard input"
JSON_SUFFIX = ".json"
PLAIN_MODES = {"text/plain", "application/json"}  # an agent that lists these alone takes no files


def read_parts(question: str | None, files: Sequence[Path]) -> list[Part]:
    """The parts to send: the question, then a part for each file.

    Raises:
        Failure: there is nothing to send, or something that the hub does not take.
    """
    if question is None and not files:
        if is_interactive():
            raise bad_arguments("what is the question? Write it behind the handle, or pipe it in")
        question = STANDARD_INPUT
    if question == STANDARD_INPUT:
        question = find_text(limited(INPUT_NAME, sys.stdin.buffer.read(MAX_BYTES + 1)))
        if question is None:
            raise bad_arguments(f"{INPUT_NAME} is no text in UTF-8; --file PATH sends other files")
        if not question.strip():
            raise bad_arguments("standard input is empty: there is no question")
    parts = [] if question is None else [Part(text=question)]
    parts += [read_file(path) for path in files]
    if len(parts) > MAX_PARTS:
        raise bad_arguments(f"{len(parts)} parts: the hub takes {MAX_PARTS} in one question")
    if not any((part.text or "").strip() or part.data is not UNSET or part.raw for part in parts):
        raise bad_arguments("the question is empty")
    size = len(msgspec.json.encode(parts))
    if size > MAX_BYTES:
        raise bad_arguments(f"the question has {size} bytes, files in base64: the hub takes {MAX_BYTES}")
    return parts


def read_file(path: Path) -> Part:
    """A file as a part: the value of a JSON file, the text of a text in UTF-8, the bytes of any other.

    Raises:
        Failure: it cannot be read, is no JSON though its name says so, or is too large.
    """
    try:
        with path.open("rb") as file:
            content = limited(f"--file {path}", file.read(MAX_BYTES + 1))
    except OSError as problem:
        raise bad_arguments(f"--file {path}: {problem.strerror}") from None
    if not content:
        raise bad_arguments(f"--file {path}: the file is empty")
    text = find_text(content)
    if path.suffix.lower() == JSON_SUFFIX:
        return Part(data=value_of(path, text), media_type="application/json", filename=path.name)
    if text is not None:
        return Part(text=text, filename=path.name)
    encoded = base64.b64encode(content).decode("ascii")
    return Part(raw=encoded, media_type=media_type_of(path), filename=path.name)


def value_of(path: Path, text: str | None) -> Any:
    """The value of a JSON file.

    Raises:
        Failure: it has none.
    """
    if text is None:
        raise bad_arguments(f"--file {path}: no JSON: it is no text in UTF-8")
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as problem:
        raise bad_arguments(f"--file {path}: no JSON: {problem}") from None


def media_type_of(path: Path) -> str:
    """The media type that the name of a file says."""
    guessed, encoding = mimetypes.guess_type(path.name)
    return f"application/{encoding}" if encoding else guessed or "application/octet-stream"


def check_files(parts: Iterable[Part], handle: str, modes: Sequence[str]) -> None:
    """Compare the files among the parts with the media types that the agent's card lists.

    Raises:
        Failure: the agent does not take one of them; nothing was sent.
    """
    taken = ", ".join(modes)
    for part in parts:
        if part.raw is None:
            continue
        kind = part.media_type
        accepted = {kind, f"{kind.partition('/')[0]}/*", "*/*", "*"}
        if PLAIN_MODES.issuperset(modes):
            taken = "text in UTF-8 and JSON alone"
        elif accepted.intersection(modes):
            continue
        name = handle.removeprefix("@")
        raise bad_arguments(f"--file {part.filename}: @{name} takes no {kind}, by its card: it takes {taken}")


def refuse_constant(name: str) -> NoReturn:
    """JSON has no NaN and no Infinity, which Python would take."""
    raise ValueError(f"{name} is no number of JSON")


def limited(name: str, content: bytes) -> bytes:
    """The content, if the hub takes as much.

    Raises:
        Failure: the hub does not.
    """
    if len(content) > MAX_BYTES:
        raise bad_arguments(f"{name}: over {MAX_BYTES} bytes, which the hub takes at most")
    return content


def find_text(content: bytes) -> str | None:
    """The text of these bytes; None if they are none in UTF-8, or have a NUL, which the hub does not take."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
