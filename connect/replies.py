"""Sends one answer to the hub, whole or as it comes."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from datetime import UTC, datetime

from connect import frames
from connect.answers import Answer, sendable
from connect.chunks import Chunks
from connect.frames import Question
from connect.tasks import running

MAX_WAITING_PIECES = 8

Send = Callable[[str], Awaitable[None]]
Inbox = asyncio.Queue[str | None]


async def send_whole(question: Question, answer: Answer, send: Send) -> None:
    """Send the answer as one `reply`, once it is complete."""
    async with aclosing(sendable(question, answer)) as pieces:
        text = "".join([piece async for piece in pieces])
    await send(frames.reply(question.chat_id, text, now=datetime.now(UTC)))


async def send_streamed(question: Question, answer: Answer, send: Send) -> None:
    """Send the answer as `reply_chunk` frames while it comes, then an empty one that says it is done."""

    async def send_chunk(text: str, done: bool) -> None:
        await send(frames.reply_chunk(question.chat_id, text, done=done, now=datetime.now(UTC)))

    chunks, inbox = Chunks(), Inbox(MAX_WAITING_PIECES)
    async with running(_pump(sendable(question, answer), inbox)):
        is_over = False
        while not is_over:
            is_over = await _gather(inbox, chunks)
            while chunks.is_full:
                await send_chunk(chunks.take(), False)
            if not chunks.is_empty and (is_over or chunks.linger_s is not None):
                await send_chunk(chunks.take(), False)
    await send_chunk("", True)


async def _pump(pieces: AsyncGenerator[str, None], inbox: Inbox) -> None:
    async with aclosing(pieces):
        async for piece in pieces:
            await inbox.put(piece)
    await inbox.put(None)


async def _gather(inbox: Inbox, chunks: Chunks) -> bool:
    """Wait until there is a chunk worth sending; the answer is whether it holds the end of the reply."""
    if chunks.is_empty:
        if (piece := await inbox.get()) is None:
            return True
        chunks.add(piece)
    try:
        async with asyncio.timeout(chunks.linger_s):
            while not chunks.is_full:
                if (piece := await inbox.get()) is None:
                    return True
                chunks.add(piece)
    except TimeoutError:
        pass
    return False
