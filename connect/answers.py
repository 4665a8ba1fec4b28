"""What an agent is made of: a function from a question to the pieces of its answer."""

import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

from connect.frames import Question

logger = logging.getLogger(__name__)

MAX_REPLY_BYTES = 1_000_000

Answer = Callable[[Question], AsyncIterator[str]]
"""Called once per question. When nobody waits for the answer any more it is cancelled or closed early."""


class AnswerFailed(Exception):
    """There is no (whole) answer; the text of this error is shown to the asker at the end of the reply."""


async def echo(question: Question) -> AsyncIterator[str]:
    """Answer a question with its own text."""
    yield question.text


async def sendable(question: Question, answer: Answer) -> AsyncGenerator[str, None]:
    """Yield an answer's pieces so that the hub can take them: valid text, of bounded size, ending in words.

    A failure becomes the last piece, on a line of its own; only cancellation comes out as an exception.
    """
    ending = ""
    try:
        async with aclosing(_within_cap(question, answer)) as pieces:
            async for piece in pieces:
                ending = piece[-1:] or ending
                yield piece
        return
    except AnswerFailed as failed:
        failure = clean(str(failed))
    except Exception:
        logger.exception("the answer to chat %r failed", question.chat_id)
        failure = "the agent failed to answer"
    yield failure if ending in ("", "\n") else f"\n{failure}"


def clean(text: str) -> str:
    """Replace what neither UTF-8 nor a database takes: lone surrogates and NUL."""
    return text.replace("\0", "\ufffd").encode(errors="replace").decode()


async def _within_cap(question: Question, answer: Answer) -> AsyncGenerator[str, None]:
    room = MAX_REPLY_BYTES
    pieces = answer(question)
    try:
        async for piece in pieces:
            raw = clean(piece).encode()
            yield raw[:room].decode(errors="ignore")
            room -= len(raw)
            if room < 0:
                raise AnswerFailed(f"the reply was cut: it is longer than {MAX_REPLY_BYTES} bytes")
    finally:
        if isinstance(pieces, AsyncGenerator):
            await pieces.aclose()
