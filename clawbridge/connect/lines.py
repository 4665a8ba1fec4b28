"""The line protocol of `--protocol lines`: JSON objects, one a line, in both directions. The module does no I/O.

A line that is no JSON object with a `type` is text of the reply.
"""

import json
import logging
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from clawbridge.connect.frames import Question
from clawbridge.connect.reply_parts import (
    Artifact,
    AuthRequired,
    Failed,
    InputRequired,
    Rejected,
    ReplyEnd,
    ReplyPart,
    Status,
    Usage,
)

logger = logging.getLogger(__name__)

MAX_LINE_CHARS = 4_000_000
CANCEL = '{"type":"cancel"}\n'

Fields = Mapping[str, Any]
_PIECES = re.compile(r"[^\n]*\n|[^\n]+")


def question_line(question: Question) -> str:
    """The line that the program reads first. `parts` is the whole message, one text part when it has no more."""
    fields = {
        "type": "question",
        "text": question.text,
        "chatId": question.chat_id,
        "taskId": question.task_id,
        "contextId": question.context_id,
        "messageId": question.message_id,
        "parts": question.parts or [{"text": question.text}],
        "asker": question.asker or "",
    }
    return json.dumps(fields) + "\n"


class Lines:
    """Cuts a program's output into reply parts. Text is passed on as it comes, all other parts line by line."""

    def __init__(self) -> None:
        self._line = ""
        self._is_text = False

    def feed(self, text: str) -> Iterator[ReplyPart]:
        """Yield the reply parts that are complete after this further output."""
        for piece in _PIECES.findall(text):
            self._line += piece
            self._is_text = self._is_text or self._line.lstrip()[:1] not in ("", "{")
            is_whole = piece.endswith("\n")
            if self._is_text or len(self._line) > MAX_LINE_CHARS:
                yield self._line
                self._line, self._is_text = "", not is_whole
            elif is_whole:
                yield from self.finish()

    def finish(self) -> Iterator[ReplyPart]:
        """Yield the reply part of a last line without a line break."""
        line, self._line = self._line, ""
        if (part := read_line(line)) is not None:
            yield part


def read_line(line: str) -> ReplyPart | None:
    """The reply part in one line; None when the line is ignored, because its type is unknown or its members are
    wrong.
    """
    try:
        fields = json.loads(line)
    except (ValueError, RecursionError):
        return line or None
    if not isinstance(fields, dict) or not isinstance(fields.get("type"), str):
        return line
    read = READERS.get(fields["type"])
    if read is None:
        logger.warning("a line of type %.40r is left out: no such type", fields["type"])
        return None
    try:
        return read(fields)
    except ValueError as wrong:
        logger.warning("a line of type %r is left out: %s", fields["type"], wrong)
        return None


def _member(fields: Fields, name: str, kind: type[Any], default: Any = None) -> Any:
    value = fields.get(name)
    if value is None and default is not None:
        return default
    if not isinstance(value, kind):
        raise ValueError(f"{name}: want {kind.__name__}")
    return value


def _text(fields: Fields) -> str:
    return str(_member(fields, "text", str))


def _artifact(fields: Fields) -> Artifact:
    parts = _member(fields, "parts", list)
    if not parts or not all(isinstance(part, dict) for part in parts):
        raise ValueError("parts: want objects")
    return Artifact(
        artifact_id=_member(fields, "artifactId", str),
        parts=parts,
        name=_member(fields, "name", str, ""),
        description=_member(fields, "description", str, ""),
        metadata=_metadata(fields),
        append=_member(fields, "append", bool, False),
        last_chunk=_member(fields, "lastChunk", bool, False),
    )


def _metadata(fields: Fields) -> Fields | None:
    return _member(fields, "metadata", dict, {}) or None


def _end(kind: type[ReplyEnd]) -> Callable[[Fields], ReplyEnd]:
    return lambda fields: kind(_member(fields, "text", str, ""))


READERS: dict[str, Callable[[Fields], ReplyPart]] = {
    "text": _text,
    "status": lambda fields: Status(text=_text(fields), metadata=_metadata(fields)),
    "artifact": _artifact,
    "usage": lambda fields: Usage(
        input_tokens=fields.get("inputTokens"),
        output_tokens=fields.get("outputTokens"),
        cost_usd=fields.get("costUsd"),
    ),
    **{kind.state: _end(kind) for kind in (InputRequired, AuthRequired, Failed, Rejected)},
}
