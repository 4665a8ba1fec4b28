"""The parts of an agent: a function from a question to the pieces of its answer."""

import json
import logging
from abc import ABC, abstractmethod
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from typing import Self

from clawbridge.connect import frames
from clawbridge.connect.frames import Question
from clawbridge.connect.reply_parts import (
    Artifact,
    Failed,
    Json,
    ProgramPermissionRequest,
    ReplyEnd,
    ReplyPart,
    Status,
    Usage,
    clean,
    cleaned,
    cut,
)

logger = logging.getLogger(__name__)

MAX_REPLY_BYTES = 1_000_000
MAX_TEXT_BYTES = 16_000
LINE_END = "\n"

Answer = Callable[[Question], AsyncIterator[ReplyPart]]
"""Called once per question. When no caller waits for the answer any more, it is cancelled or closed early."""


class AnswerFailed(Exception):
    """An answer failed or broke off; the text of this error is sent to the caller, as that of `Failed` is."""


class CannotStart(ValueError):
    """The program that answers questions cannot start; the text is one line."""


class ProgramAnswer(ABC):
    """An `Answer` by programs that can be ended. The agent runs inside its context."""

    async def __aenter__(self) -> Self:
        """Get ready before the first question. Raises CannotStart."""
        return self

    async def __aexit__(self, *failure: object) -> None:  # noqa: B027  most take nothing
        """Let go of what `__aenter__` took."""

    @abstractmethod
    def __call__(self, question: Question) -> AsyncIterator[ReplyPart]:
        """Yield the reply."""

    @abstractmethod
    def kill(self) -> None:
        """End every running program at once."""


async def echo(question: Question) -> AsyncIterator[str]:
    """Answer a question with its own text."""
    yield question.text


async def sendable(question: Question, answer: Answer) -> AsyncGenerator[ReplyPart, None]:
    """Yield an answer's pieces so that the hub can take them: valid text, of bounded size.

    A failure becomes the last piece; only cancellation comes out as an exception.
    """
    try:
        async with aclosing(_within_cap(question, answer)) as parts:
            async for part in parts:
                yield part
                if isinstance(part, ReplyEnd):
                    return
        return
    except AnswerFailed as failed:
        failure = str(failed)
    except Exception:
        logger.exception("the answer to chat %r failed", question.chat_id)
        failure = "the agent failed to answer"
    yield Failed(cut(clean(failure), MAX_TEXT_BYTES))


async def as_text(parts: AsyncGenerator[ReplyPart, None]) -> AsyncGenerator[ReplyPart, None]:
    """The parts as text, for a hub that takes text only: other parts are lines of their own, without notes."""
    ending = ""
    async with aclosing(parts):
        async for part in parts:
            if isinstance(part, ProgramPermissionRequest):
                yield part
                continue
            text = part if isinstance(part, str) else _as_words(part)
            if not isinstance(part, str) and text and ending not in ("", "\n"):
                text = f"\n{text}"
            ending = text[-1:] or ending
            yield text


async def _within_cap(question: Question, answer: Answer) -> AsyncGenerator[ReplyPart, None]:
    room = MAX_REPLY_BYTES
    parts = answer(question)
    try:
        async for part in parts:
            if isinstance(part, str):
                raw = clean(part).encode()
                room -= len(raw)
                yield raw[: len(raw) + min(room, 0)].decode(errors="ignore")
            elif isinstance(part, Usage):
                yield part
            elif isinstance(part, ProgramPermissionRequest):
                preview = cut(clean(part.input_preview), MAX_TEXT_BYTES)
                yield replace(part, tool=clean(part.tool), input_preview=preview)
            elif (sound := _clean_part(part)) is not None:
                room -= frames.size_of(sound)
                if room >= 0 or isinstance(sound, ReplyEnd):
                    yield sound
            if room < 0:
                raise AnswerFailed(f"the reply was cut: it is longer than {MAX_REPLY_BYTES} bytes")
    finally:
        if isinstance(parts, AsyncGenerator):
            await parts.aclose()


def _clean_part(part: Status | Artifact | ReplyEnd) -> Status | Artifact | ReplyEnd | None:
    """The part with texts that the hub takes; None for a note without text."""
    match part:
        case Artifact():
            return replace(
                part,
                parts=cleaned(part.parts),
                name=clean(part.name),
                description=clean(part.description),
                metadata=cleaned(part.metadata),
            )
        case Status():
            text = cut(clean(part.text), MAX_TEXT_BYTES)
            return replace(part, text=text, metadata=cleaned(part.metadata)) if text.strip() else None
        case ReplyEnd():
            text = cut(clean(part.text), MAX_TEXT_BYTES)
            return replace(part, text=text if text.strip() else part.state.replace("_", " "))


def _as_words(part: Status | Artifact | Usage | ReplyEnd) -> str:
    match part:
        case Artifact():
            return _artifact_as_words(part.parts)
        case ReplyEnd():
            return part.text
    return ""


def _artifact_as_words(parts: Sequence[Json]) -> str:
    """The texts as they are; other parts on lines of their own."""
    words = ""
    for part in parts:
        if "text" in part:
            words += str(part["text"])
        else:
            words += f"{'' if words[-1:] in ('', LINE_END) else LINE_END}{_line_about(part)}{LINE_END}"
    return words


def _line_about(part: Json) -> str:
    """JSON, an address, or of a file that it is left out."""
    if "data" in part:
        return json.dumps(part["data"], ensure_ascii=False)
    named = ", ".join(str(part[name]) for name in ("filename", "mediaType") if part.get(name))
    return str(part["url"]) if "url" in part else f"[left out: a file{f', {named}' if named else ''}]"


def left_out(question: Question) -> Status | None:
    """A note of the parts of a question that a program that reads text alone does not get; None if it gets all.

    The text has the JSON of data, addresses, and a line about each file.
    """
    parts = enumerate(question.parts)
    files = [f"message.parts[{i}]" for i, part in parts if isinstance(part, Mapping) and "raw" in part]
    if not files:
        return None
    return Status(text=f"Left out, the agent reads text alone: {', '.join(files)}", metadata={"leftOut": files})
