"""The parts of a message from arguments, standard input and files: text, and data of JSON files."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NoReturn

from clawbridge.terminal import CommandFailure, bad_arguments, is_interactive

MAX_BYTES = 1024 * 1024 - 4096  # of the hub's limit, the rest is the envelope
MAX_PARTS = 64
STANDARD_INPUT = "-"
JSON_SUFFIX = ".json"
JsonPart = dict[str, Any]


def read_parts(question: str | None, files: Sequence[Path]) -> list[JsonPart]:
    """The parts to send: the question, then a part for each file.

    Raises:
        Failure: there is nothing to send, or something that the hub does not take.
    """
    if question is None and not files:
        if is_interactive():
            raise bad_arguments("what is the question? Write it behind the handle, or pipe it in")
        question = STANDARD_INPUT
    if question == STANDARD_INPUT:
        question = decoded("standard input", sys.stdin.buffer.read(MAX_BYTES + 1))
        if not question.strip():
            raise bad_arguments("standard input is empty: there is no question")
    parts: list[JsonPart] = [] if question is None else [{"text": question}]
    parts += [read_file(path) for path in files]
    if len(parts) > MAX_PARTS:
        raise bad_arguments(f"{len(parts)} parts: the hub takes {MAX_PARTS} in one question")
    if not any(part.get("text", "").strip() or "data" in part for part in parts):
        raise bad_arguments("the question is empty")
    size = len(json.dumps(parts, ensure_ascii=False).encode(errors="replace"))
    if size > MAX_BYTES:
        raise bad_arguments(f"the question has {size} bytes: the hub takes {MAX_BYTES}")
    return parts


def read_file(path: Path) -> JsonPart:
    """A file as a part: the value of a JSON file, the text of any other.

    Raises:
        Failure: it cannot be read, is neither text nor JSON, or is too large.
    """
    try:
        with path.open("rb") as file:
            text = decoded(str(path), file.read(MAX_BYTES + 1))
    except OSError as problem:
        raise bad_arguments(f"--file {path}: {problem.strerror}") from None
    if path.suffix.lower() != JSON_SUFFIX:
        if not text:
            raise bad_arguments(f"--file {path}: the file is empty")
        return {"text": text, "filename": path.name}
    try:
        value = json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as problem:
        raise bad_arguments(f"--file {path}: no JSON: {problem}") from None
    return {"data": value, "mediaType": "application/json", "filename": path.name}


def refuse_constant(name: str) -> NoReturn:
    """JSON has no NaN and no Infinity, which Python would take."""
    raise ValueError(f"{name} is no number of JSON")


def decoded(name: str, content: bytes) -> str:
    """The text of these bytes.

    Raises:
        Failure: they are too many, or no text.
    """
    if len(content) > MAX_BYTES:
        raise bad_arguments(f"{name}: over {MAX_BYTES} bytes, which the hub takes at most")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        raise not_text(name)
    return text


def not_text(name: str) -> CommandFailure:
    """The failure of a file that the hub would not take."""
    return bad_arguments(f"{name}: neither text in UTF-8 nor JSON: an agent is sent nothing else")
