"""A socket to the hub, from the first frame to the end of the connection.

Each question of a connection is answered in a task of its own.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from enum import Enum
from typing import Any

from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed
from websockets.typing import Subprotocol

from clawbridge.connect import frames
from clawbridge.connect.answers import Answer
from clawbridge.connect.frames import Question, Welcome
from clawbridge.connect.replies import ProgramReply
from clawbridge.connect.reply_parts import Failed, text_of
from clawbridge.connect.tasks import cancel_all


class Ending(Enum):
    """The end of a connection, or of a whole run. Only `LOST` is worth another try."""

    LOST = "the connection was lost"
    STOPPED = "this side asked to stop"
    DISMISSED = "the hub closed the connection for good"
    SUPERSEDED = "another process took over this session"
    REFUSED = "the hub refused the token"


logger = logging.getLogger(__name__)

MAX_AT_ONCE = 20
MAX_HELD = 1_000
"""A hub that sends more unanswered questions than this is broken; its questions are dropped."""


class OpenQuestions:
    """Answers up to 20 questions at a time; more wait for their turn."""

    def __init__(
        self, answer: Callable[[Question], Awaitable[None]], report_canceled: Callable[[str], Awaitable[None]]
    ) -> None:
        self._answer = answer
        self._report_canceled = report_canceled
        self._slots = asyncio.Semaphore(MAX_AT_ONCE)
        self._tasks: set[asyncio.Task[None]] = set()
        self._by_chat: dict[str, asyncio.Task[None]] = {}
        self._is_open = True

    def take(self, question: Question) -> bool:
        """Set the answer going and return at once; False when it is dropped."""
        if not self._is_open or len(self._tasks) >= MAX_HELD:
            logger.warning("question %r dropped: not taking more", question.chat_id)
            return False
        task = self._by_chat[question.chat_id] = self._start(self._answer_in_turn(question))
        task.add_done_callback(lambda done: self._forget(question.chat_id, done))
        return True

    def drop(self, chat_id: str) -> None:
        """Cancel an answer whose caller no longer waits, and report its end once the answer has cleaned up."""
        if task := self._by_chat.get(chat_id):
            task.cancel()
            self._start(self._report_dropped(chat_id, task))

    async def finish(self, *, within_s: float) -> None:
        """Take no more questions, and wait some time for the open ones to end."""
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

    async def _answer_in_turn(self, question: Question) -> None:
        async with self._slots:
            with suppress(ConnectionClosed):
                await self._answer(question)

    async def _report_dropped(self, chat_id: str, task: asyncio.Task[None]) -> None:
        await asyncio.wait({task})
        if task.cancelled():
            with suppress(ConnectionClosed):
                await self._report_canceled(chat_id)


OPEN_WAIT_S = 10.0
CLOSE_WAIT_S = 1.5
MAX_FRAME_BYTES = 8 * 1024 * 1024
FINISH_WAIT_S = 5.0
TOO_MANY_REQUESTS = "too_many_requests"
FATAL_CODES = frozenset({"auth_failed", "token_revoked"})


async def open_socket(url: str, token: str, subprotocol: str = "", **options: Any) -> ClientConnection:
    """A socket to the hub. `token`: empty for none.

    Raises:
        OSError: the hub cannot be reached.
        WebSocketException: the hub refused the socket.
    """
    return await connect(
        url,
        additional_headers={"Authorization": f"Bearer {token}"} if token else {},
        subprotocols=[Subprotocol(subprotocol)] if subprotocol else None,
        compression=None,
        max_size=MAX_FRAME_BYTES,
        open_timeout=OPEN_WAIT_S,
        close_timeout=CLOSE_WAIT_S,
        **options,
    )


class HubConnection:
    """Reads the hub's frames and answers its questions, until the socket or its purpose ends."""

    def __init__(
        self,
        socket: ClientConnection,
        *,
        answer: Answer,
        streams: bool,
        silence_s: float,
        on_welcome: Callable[[Welcome], None],
    ) -> None:
        self._socket = socket
        self._answer = answer
        self._streams = streams
        self._takes_more = False
        self._replies: dict[str, ProgramReply] = {}
        self._silence_s = silence_s
        self._on_welcome = on_welcome
        self._questions = OpenQuestions(self._reply, self._report_canceled)
        self._send_lock = asyncio.Lock()
        self._is_leaving = False

    async def serve(self, register: str) -> Ending:
        """Register and stay; the answer says why it ended. OpenQuestions left open then are dropped."""
        try:
            # The hub may have closed the socket already; what it sent before that, a refusal, is read next.
            with suppress(ConnectionClosed):
                await self._send(register)
            while (ending := await self._next()) is None:
                pass
            return ending
        except ConnectionClosed as closed:
            if not self._is_leaving:
                logger.info("the hub's socket closed (%s)", closed)
            return Ending.LOST
        except TimeoutError:
            logger.warning("no word from the hub for %g s", self._silence_s)
            return Ending.LOST
        finally:
            try:
                await self._questions.cancel()
            finally:
                await self._close()

    async def finish(self) -> None:
        """Take no more questions, give running ones 5 s, and close the socket."""
        self._is_leaving = True
        await self._questions.finish(within_s=FINISH_WAIT_S)
        await self._questions.cancel()
        await self._close()

    async def _next(self) -> Ending | None:
        async with asyncio.timeout(self._silence_s):
            raw = await self._socket.recv()
        return await self._take(raw)

    async def _take(self, raw: str | bytes) -> Ending | None:
        try:
            return await self._handle(frames.read_object(raw))
        except frames.UnreadableFrame as bad:
            logger.warning("a frame was ignored: %s", bad)
            return None

    async def _handle(self, fields: dict[str, Any]) -> Ending | None:
        """Do what a frame says; frames of other types are for other clients."""
        match text_of(fields, "type"):
            case "prompt":
                self._questions.take(frames.read_question(fields))
            case "cancel":
                chat_id = frames.read_text(fields, "chatId")
                if not self._has_ended(chat_id):
                    if reply := self._replies.get(chat_id):
                        reply.drop_requests()
                    self._questions.drop(chat_id)
            case "permission_response":
                request_id, decision = frames.read_text(fields, "requestId"), frames.read_decision(fields)
                for reply in self._replies.values():
                    reply.take_decision(request_id, decision)
            case "ping":
                # The hub may have closed the socket meanwhile; what it sent before that, a bye, is read next.
                with suppress(ConnectionClosed):
                    await self._send(frames.pong(fields.get("ts")))
            case "welcome":
                welcome = frames.read_welcome(fields)
                self._takes_more = welcome.takes_more_than_text
                self._on_welcome(welcome)
            case "error":
                code, message = frames.read_shown(fields, "code"), frames.read_shown(fields, "message")
                if code == TOO_MANY_REQUESTS:
                    for reply in self._replies.values():
                        reply.deny_requests(message)
                return error_ending(code, message)
            case "bye":
                return bye_ending(frames.read_shown(fields, "reason"), retry=fields.get("retry") is not False)
        return None

    async def _reply(self, question: Question) -> None:
        reply = ProgramReply(question, self._send, takes_more=self._takes_more)
        self._replies[question.chat_id] = reply
        await (reply.send_streamed if self._streams else reply.send_whole)(self._answer)
        # `_report_canceled` deletes a canceled reply; a later question may have the same chat id.
        if self._replies.get(question.chat_id) is reply:
            del self._replies[question.chat_id]

    def _has_ended(self, chat_id: str) -> bool:
        return chat_id in self._replies and self._replies[chat_id].has_ended

    async def _report_canceled(self, chat_id: str) -> None:
        """Report that a canceled answer has ended: the hub frees the agent for other questions only then."""
        if not self._has_ended(chat_id):
            await self._send(frames.task_status(chat_id, Failed("canceled")))
        self._replies.pop(chat_id, None)

    async def _send(self, text: str) -> None:
        async with self._send_lock:
            await self._socket.send(text)

    async def _close(self) -> None:
        try:
            async with asyncio.timeout(CLOSE_WAIT_S):  # a peer that reads nothing blocks the close frame too
                await self._socket.close(1000, "stop")
        except TimeoutError:
            self._socket.transport.abort()


def error_ending(code: str, message: str) -> Ending | None:
    """Log an error of the hub, and return the kind of end if the error ends the connection."""
    if code not in FATAL_CODES:
        logger.warning("the hub reports %s: %s", code, message)
        return None
    logger.error("the hub refused the token (%s): %s", code, message)
    return Ending.REFUSED


def bye_ending(reason: str, *, retry: bool) -> Ending:
    """Log why the hub closes the connection, and return the kind of end."""
    if retry:
        logger.info("the hub closes the connection for now: %s", reason)
        return Ending.LOST
    logger.warning("the hub closes the connection: %s", reason)
    return Ending.SUPERSEDED if reason == "superseded" else Ending.DISMISSED
