"""Sends one answer to the hub, whole or as it comes, cut into chunks that the hub accepts."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from uuid import uuid4

from clawbridge.connect import frames
from clawbridge.connect.answers import Answer, as_text, sendable
from clawbridge.connect.frames import Question
from clawbridge.connect.reply_parts import (
    Artifact,
    Decision,
    Failed,
    ProgramPermissionRequest,
    ReplyEnd,
    ReplyPart,
    Status,
    Usage,
)
from clawbridge.connect.tasks import running

MAX_CHUNK_CHARS = 16_000
"""At most 64,000 bytes of UTF-8, under the hub's 64 KiB per chunk."""

QUICK_CHUNKS = 500
QUICK_LINGER_S = 0.05
SLOW_CHUNKS = 800
SLOW_LINGER_S = 1.0


class Chunks:
    """Text of one reply on its way to the hub, which takes 1,000 chunks of a reply.

    The first 500 chunks leave soon after their text came, the next 300 once a second, and after that only
    full ones: a reply of 1,000,000 bytes has at most 62 of those, so it always fits.
    """

    def __init__(self) -> None:
        self._text = ""
        self._taken = 0

    @property
    def taken(self) -> int:
        """The number of pieces of the reply: chunks, and pieces that were counted."""
        return self._taken

    @property
    def is_empty(self) -> bool:
        """True if nothing waits to be sent."""
        return not self._text

    @property
    def is_full(self) -> bool:
        """True if there is enough text for a chunk of full size."""
        return len(self._text) >= MAX_CHUNK_CHARS

    @property
    def linger_s(self) -> float | None:
        """The seconds to gather text before a chunk that is not full may leave; None means until the end."""
        if self._taken < QUICK_CHUNKS:
            return QUICK_LINGER_S
        return SLOW_LINGER_S if self._taken < SLOW_CHUNKS else None

    def count(self) -> None:
        """Count a sent piece that is no chunk of text."""
        self._taken += 1

    def add(self, text: str) -> None:
        """Append text to the text that waits to be sent."""
        self._text += text

    def take(self) -> str:
        """Give the next chunk, as large as it may be."""
        chunk, self._text = self._text[:MAX_CHUNK_CHARS], self._text[MAX_CHUNK_CHARS:]
        self._taken += 1
        return chunk


MAX_WAITING_PIECES = 8
LAST_ARTIFACT = 900  # the rest of the hub's 1,000 pieces is for text
TOO_MANY = "the reply was cut: it has too many artifacts"

Send = Callable[[str], Awaitable[None]]
Inbox = asyncio.Queue[ReplyPart | None]


class ProgramReply:
    """Sends the reply to one question. `takes_more`: the hub takes more than text."""

    def __init__(self, question: Question, send: Send, *, takes_more: bool) -> None:
        self._question = question
        self._chat_id = question.chat_id
        self._send = send
        self._takes_more = takes_more
        self._chunks = Chunks()
        self._usage: Usage | None = None
        self._asked: dict[str, ProgramPermissionRequest] = {}
        self.has_ended = False

    async def send_whole(self, answer: Answer) -> None:
        """Send the answer's text as one `reply`, once it is complete; notes and artifacts as they come."""
        texts: list[str] = []
        end: ReplyEnd | None = None
        async with aclosing(self._reply_parts(answer)) as parts:
            async for part in parts:
                if isinstance(part, str):
                    texts.append(part)
                elif isinstance(part, Usage):
                    self._usage = part
                elif isinstance(part, ReplyEnd):
                    end = part
                elif not await self._send_piece(part):
                    end = Failed(TOO_MANY)
                    break
        if end is None:
            text = "".join(texts)
            await self._send(frames.reply(self._chat_id, text, usage=self._usage))
            self.has_ended = True
            return
        self._chunks.add("".join(texts))
        await self._send_text(is_over=True)
        await self._end(end)

    async def send_streamed(self, answer: Answer) -> None:
        """Send the answer in pieces while it comes, then its end."""
        inbox = Inbox(MAX_WAITING_PIECES)
        async with running(_pump(self._reply_parts(answer), inbox)) as pump:
            while True:
                is_over, other = await _gather(inbox, self._chunks)
                if isinstance(other, Usage):
                    self._usage = other
                    continue
                if isinstance(other, Status) and not self._takes_notes:
                    continue  # without a chunk before it: what is left of the cap is for what must not be lost
                await self._send_text(is_over=is_over or other is not None)
                if is_over or isinstance(other, ReplyEnd):
                    await self._end(other if isinstance(other, ReplyEnd) else None)
                    await asyncio.wait({pump})  # a program that has sent its last part may still be cleaning up
                    return
                if other is not None and not await self._send_piece(other):
                    await self._end(Failed(TOO_MANY))
                    return

    def take_decision(self, request_id: str, decision: Decision) -> None:
        """Pass a decision to the program, if this reply has made the request."""
        if asked := self._asked.pop(request_id, None):
            asked.on_decision(decision)

    def deny_requests(self, why: str) -> None:
        """Deny the program what it asks permission for: the hub took no more requests, and does not say which."""
        asked, self._asked = self._asked, {}
        for request in asked.values():
            request.on_decision(Decision(is_allowed=False, message=why))

    def drop_requests(self) -> None:
        """Stop passing decisions on: the question was canceled."""
        self._asked.clear()

    @property
    def _takes_notes(self) -> bool:
        return self._chunks.taken < SLOW_CHUNKS

    def _reply_parts(self, answer: Answer) -> AsyncGenerator[ReplyPart, None]:
        parts = sendable(self._question, answer)
        return parts if self._takes_more else as_text(parts)

    async def _send_text(self, *, is_over: bool) -> None:
        """Send what is worth a chunk, and all there is before something else."""
        while self._chunks.is_full:
            await self._send_chunk(self._chunks.take())
        if not self._chunks.is_empty and (is_over or self._chunks.linger_s is not None):
            await self._send_chunk(self._chunks.take())

    async def _send_piece(self, part: Status | Artifact | ProgramPermissionRequest) -> bool:
        """Send it; False when there is no room for another artifact. Late notes are left out."""
        if isinstance(part, ProgramPermissionRequest):
            request_id = str(uuid4())
            self._asked[request_id] = part
            await self._send(frames.permission_request(self._chat_id, request_id, part))
            return True
        if isinstance(part, Status):
            if self._takes_notes:
                self._chunks.count()
                await self._send(frames.task_status(self._chat_id, part))
            return True
        if self._chunks.taken >= LAST_ARTIFACT:
            return False
        self._chunks.count()
        await self._send(frames.task_artifact(self._chat_id, part))
        return True

    async def _end(self, end: ReplyEnd | None) -> None:
        if end is None:
            await self._send_chunk("", done=True)
        else:
            await self._send(frames.task_status(self._chat_id, end, usage=self._usage))
        self.has_ended = True

    async def _send_chunk(self, text: str, *, done: bool = False) -> None:
        usage = self._usage if done else None
        await self._send(frames.reply_chunk(self._chat_id, text, done=done, usage=usage))


async def _pump(parts: AsyncGenerator[ReplyPart, None], inbox: Inbox) -> None:
    async with aclosing(parts):
        async for part in parts:
            await inbox.put(part)
    await inbox.put(None)


async def _gather(
    inbox: Inbox, chunks: Chunks
) -> tuple[bool, Status | Artifact | Usage | ProgramPermissionRequest | ReplyEnd | None]:
    """Wait until there is a chunk worth sending, or something else: whether the reply is over, and that."""
    if chunks.is_empty:
        part = await inbox.get()
        if not isinstance(part, str):
            return part is None, part
        chunks.add(part)
    try:
        async with asyncio.timeout(chunks.linger_s):
            while not chunks.is_full:
                part = await inbox.get()
                if not isinstance(part, str):
                    return part is None, part
                chunks.add(part)
    except TimeoutError:
        pass
    return False, None
