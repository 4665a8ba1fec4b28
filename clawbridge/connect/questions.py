"""The questions of one connection, each answered in a task of its own."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any

from websockets.exceptions import ConnectionClosed

from clawbridge.connect.frames import Question
from clawbridge.connect.tasks import cancel_all

logger = logging.getLogger(__name__)

MAX_AT_ONCE = 20
MAX_HELD = 1_000
"""A hub that sends more unanswered questions than this is broken; its questions are dropped."""


class Questions:
    """Answers up to 20 questions at a time; more wait for their turn."""

    def __init__(
        self, answer: Callable[[Question], Awaitable[None]], tell_canceled: Callable[[str], Awaitable[None]]
    ) -> None:
        self._answer = answer
        self._tell_canceled = tell_canceled
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._by_chat: dict[str, asyncio.Task[None]] = {}
        self._is_open = True

    def take(self, question: Question) -> bool:
        """Set the answer going and return at once; False when it is dropped."""
        if not self._is_open or len(self._tasks) >= MAX_HELD:
            logger.warning("question %r dropped: not taking more", question.chat_id)
            return False
        task = self._by_chat[question.chat_id] = self._start(self._see_through(question))
        task.add_done_callback(lambda done: self._forget(question.chat_id, done))
        return True

    def drop(self, chat_id: str) -> None:
        """No caller waits for that answer any more: end it, and report it once it has cleaned up."""
        if task := self._by_chat.get(chat_id):
            task.cancel()
            self._start(self._tell_dropped(chat_id, task))

    async def finish(self, *, within_s: float) -> None:
        """Take no more questions, and give those at hand some time to end."""
        self._is_open = False
        if self._tasks:
            await asyncio.wait(self._tasks, timeout=within_s)

    async def cancel(self) -> None:
        """Drop every question; returns when their answers have cleaned up."""
        self._is_open = False
        await cancel_all(set(self._tasks))

    def _forget(self, chat_id: str, done: asyncio.Task[None]) -> None:
        if self._by_chat.get(chat_id) is done:  # not a later question with the same chat id
            del self._by_chat[chat_id]

    def _start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _see_through(self, question: Question) -> None:
        async with self._slots:
            with suppress(ConnectionClosed):
                await self._answer(question)

    async def _tell_dropped(self, chat_id: str, task: asyncio.Task[None]) -> None:
        await asyncio.wait({task})
        if task.cancelled():
            with suppress(ConnectionClosed):
                await self._tell_canceled(chat_id)
