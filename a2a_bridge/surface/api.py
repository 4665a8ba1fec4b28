"""`GET /api/v1/questions`: the questions of a user to agents, with the replies of tasks that are kept.

The call is a plain ASGI callable, because task stores are read by coroutines (docs/adr/0103).
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from urllib.parse import parse_qsl

from msgspec import Struct

from a2a_bridge.service.my_questions import (
    WAITING,
    AskedQuestion,
    Cursor,
    Limit,
    QuestionQuery,
    TaskId,
    Typed,
    ZoneName,
    find_questions,
    read_query,
)
from a2a_bridge.service.tasks.reader import TaskReader
from a2a_bridge.wire.task import State, Task
from accounts.authn import TokenScope
from accounts.error_responses import UNAVAILABLE_TEXT
from agents.core.rest_server import RestAnswer, RestServer, json_answer
from agents.transcript.pieces import text_in
from clawbridge.shapes import QuestionState
from kit import asgi
from kit.asgi import RequestRefused, Send
from kit.async_db import AccountCall
from kit.clock import iso
from kit.describe import DescribedAnswer, DescribedOperation, ErrorBody, Parameter, Time, Url

logger = logging.getLogger(__name__)

PATH = "/api/v1/questions"
METHODS = ("GET", "HEAD")
MAX_REPLY_CHARS = 2_000
MAX_PREVIEW_CHARS = 400
MAX_PARAMETERS = 64
PARAMETERS = (
    Parameter(
        name="q",
        shape=Typed,
        text="words, 6 at most, in any case, that are each in the question's first 10000 characters",
    ),
    Parameter(name="agent", shape=Typed, text="of this agent alone, by its handle"),
    Parameter(name="state", shape=QuestionState),
    Parameter(name="task", shape=TaskId, text="of this task alone, by its id"),
    Parameter(name="day", shape=date, text="asked on this day"),
    Parameter(name="tz", shape=ZoneName, text="the time zone of the day, such as `Europe/Berlin`; default UTC"),
    Parameter(name="before", shape=Cursor, text="the `next` of the page before"),
    Parameter(name="limit", shape=Limit, text="default 25"),
)


class ApiQuestion(Struct, frozen=True, rename="camel", kw_only=True):
    """One question to an agent. `question` is blank once it was kept as long as the agent's owner wants.

    `input_required`, `auth_required`: its task waits for you; once it was canceled: `canceled`; answered, or no
    longer kept: `completed`.

    `isKept`: whether its task can still be read. `reply`: the text of the task's last turn, cut at 2000 characters
    (`replyIsCut`); of a failed or refused one the error; null for other turns, without text, and once the task is
    gone. `replyPreview`: its beginning without Markdown, in one line of at most 400 characters. `url`: the page
    with the task. `repeats`: how often it was refused within one minute.
    """

    id: str
    agent: str
    asked_at: Time
    question: str
    question_is_cut: bool
    state: QuestionState
    reason: str | None
    latency_ms: int | None
    repeats: int
    task_id: str | None
    is_kept: bool
    url: Url | None
    reply: str | None
    reply_is_cut: bool
    reply_preview: str | None


class Questions(Struct, frozen=True):
    """A page of questions, newest first; those that wait for a free agent stand before those of the first page.

    `next`: the `before` of the next page, null at the end. A page that was filtered may be short and have a next
    one: each looks at the 10000 questions before its cursor.
    """

    items: list[ApiQuestion]
    next: str | None


OPERATIONS = (
    DescribedOperation(
        method="get",
        path=PATH,
        name="getQuestions",
        summary="What you asked of agents, newest first, with the replies of tasks that are kept.",
        tag="questions",
        parameters=PARAMETERS,
        answers={200: Questions, 503: DescribedAnswer(shape=ErrorBody, text=UNAVAILABLE_TEXT)},
    ),
)


@dataclass(frozen=True, slots=True)
class QuestionList:
    """Serves the list. `preview`: `to_line` of `kit.markdown`; `search`: runs the search, which may be slow."""

    reader: TaskReader
    http: RestServer
    preview: Callable[[str, int], str]
    search: AccountCall

    async def __call__(self, request: asgi.HttpRequest, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        await self.http.serve(request, send, self._answer(request), "questions.failed")

    async def _answer(self, request: asgi.HttpRequest) -> RestAnswer:
        await request.read_checked(METHODS)
        caller = await self.http.get_caller(request, TokenScope.READ)
        query = query_of(request)
        page = await self.search(caller.user_id, request.receive, find_questions, caller.user_id, query)
        # One after the other: tasks may be large, and only the beginning of each reply stays in memory.
        items = [await self._show(one, caller.user_id) for one in page.questions]
        return json_answer(Questions([one for one in items if query.state in (None, one.state)], page.next))

    async def _show(self, one: AskedQuestion, caller_id: int) -> ApiQuestion:
        task = await self.reader.find(one.task_id, caller_id) if one.task_id and one.is_askable else None
        reply = reply_of(task, one) if task else ""
        return ApiQuestion(
            id=one.chat_id,
            agent=one.handle,
            asked_at=iso(one.asked_at),
            question=one.text,
            question_is_cut=one.is_cut,
            state=state_now(one, task),
            reason=one.reason or None,
            latency_ms=one.latency_ms,
            repeats=one.repeats,
            task_id=one.task_id or None,
            is_kept=task is not None,
            url=f"{self.http.public_url}/agents/{one.handle}?task={one.task_id}" if task else None,
            reply=reply[:MAX_REPLY_CHARS] or None,
            reply_is_cut=len(reply) > MAX_REPLY_CHARS,
            reply_preview=self.preview(reply, MAX_PREVIEW_CHARS) or None,
        )


def state_now(question: AskedQuestion, task: Task | None) -> QuestionState:
    """The state of a question whose task may have been answered or canceled, or be gone, since it waited."""
    if question.state not in WAITING:
        return question.state
    if task is None or task.chat_id != question.chat_id:
        return "completed"
    if task.is_interrupted:
        return question.state
    return "canceled" if task.state == State.CANCELED else "completed"


def reply_of(task: Task, question: AskedQuestion) -> str:
    """The text of a task's last turn, if that is this question's; instead of a reply what its state says."""
    if task.chat_id != question.chat_id:
        return ""
    return task.reply_text or (text_in(task.message.parts) if task.message is not None else "")


def query_of(request: asgi.HttpRequest) -> QuestionQuery:
    """The checked query of a request.

    Raises:
        RequestRefused: 400, a value has the wrong form.
    """
    text = str(request.scope.get("query_string", b""), "latin-1")
    try:
        return read_query(dict(parse_qsl(text, max_num_fields=MAX_PARAMETERS)))
    except ValueError as wrong:
        raise RequestRefused(400, "validation_failed", str(wrong)) from None
