"""`POST /api/v1/shares`: shares an answer. A plain ASGI callable, because task stores are read by coroutines.

The other calls on shares are Django's (`share_api.py`).
"""

from dataclasses import dataclass
from typing import Annotated, Literal, TypedDict

import msgspec
from msgspec import Meta, Struct

from a2a_bridge.models import AnswerShare
from a2a_bridge.service.shares import (
    MadeShare,
    ThreadCopy,
    WantedShare,
    find_thread,
    share_answer,
    share_thread,
)
from a2a_bridge.service.tasks.reader import TaskReader
from accounts.authn import TokenScope
from accounts.quotas import QuotaExceeded
from agents.core.rest_server import RestAnswer, RestServer, json_answer
from kit import strict_json
from kit.asgi import HttpRequest, RequestRefused, Send
from kit.async_db import db_call
from kit.clock import iso
from kit.describe import DescribedAnswer, DescribedOperation, ErrorBody, Time, Url, Uuid, describe_failures
from kit.ids import read_uuid
from kit.strict_json import UnreadableText

PATH = "/api/v1/shares"
NO_THREAD = "no such thread: it is not yours, or it was deleted"
NO_TASK = "no such task: it is not yours, or the hub no longer keeps it"
Days = Annotated[int, Meta(ge=1, le=36_500)]
AudienceName = Literal["user", "group", "everyone", "link"]


class ShareBody(Struct, frozen=True, rename="camel", forbid_unknown_fields=True, kw_only=True):
    """What to share, and with whom: `taskId` or `threadId`. `login`: of the audience `user` or `group`.

    `days`: until the share ends, at most as many as the hub keeps shares; null: 7 for a link, else as many.
    """

    task_id: Annotated[str, Meta(min_length=1, max_length=64)] | None = None
    thread_id: Uuid | None = None
    audience: AudienceName
    login: Annotated[str, Meta(max_length=65)] | None = None
    days: Days | None = None


class ApiAnswerShare(TypedDict):
    """An answer that you share. `url`: its page; of a link only in the response that made it.

    `taskId`: null of a thread. `login`: the user or the group. `title`: the beginning of the question. `isShown`:
    false when it has expired, or while the agent's owner allows no sharing.
    """

    id: int
    agent: str
    taskId: str | None
    title: str
    audience: AudienceName
    login: str | None
    url: Url | None
    createdAt: Time
    expiresAt: Time
    isShown: bool


FAILURES = {
    403: "The agent's owner allows no sharing, or the token lacks the scope.",
    404: "The caller has no such task or thread, or the hub no longer keeps it.",
    409: "There is no answer yet, or none that could be shared.",
    413: "Questions and answers with their files are over 4 MiB, or the thread has over 200 questions.",
    429: "The caller shares too many answers, or too much.",
    503: "The store of tasks or the database is out of reach.",
}
OPERATIONS = (
    DescribedOperation(
        method="post",
        path=PATH,
        name="shareAnswer",
        summary="Show the answer of one of your tasks, or a whole thread, to others.",
        text="The share has a copy of questions and answers, with their files. A share of the same task or thread"
        " with the same user or group, or with everyone, is replaced. The link is in this response alone.",
        tag="shares",
        request=ShareBody,
        answers={
            201: DescribedAnswer(shape=ApiAnswerShare, text="It is shared."),
            **describe_failures(ErrorBody, FAILURES),
        },
    ),
)


@dataclass(frozen=True, slots=True)
class ShareEndpoint:
    """Reads the task for its caller, and shares it."""

    reader: TaskReader
    http: RestServer

    async def __call__(self, request: HttpRequest, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        await self.http.serve(request, send, self._answer(request), "shares.failed", explain=explain)

    async def _answer(self, request: HttpRequest) -> RestAnswer:
        body = await request.read_checked(("POST",))
        caller = await self.http.get_caller(request, TokenScope.PUBLISH)
        wanted = read_body(body)
        to = WantedShare(audience=wanted.audience, login=wanted.login or "", days=wanted.days)
        if wanted.thread_id is not None:
            made = await self._share_thread(caller.user_id, wanted.thread_id, to)
        else:
            task = await self.reader.find(wanted.task_id or "", caller.user_id)
            if task is None:
                raise RequestRefused(404, "not_found", NO_TASK)
            made = await db_call(share_answer)(caller.user_id, task, to)
        return json_answer(show_made(made, self.http.public_url), 201)

    async def _share_thread(self, caller_id: int, thread_id: str, to: WantedShare) -> MadeShare:
        public_id = read_uuid(thread_id)
        found = await db_call(find_thread)(caller_id, public_id) if public_id else None
        if found is None:
            raise RequestRefused(404, "not_found", NO_THREAD)
        copy = ThreadCopy()
        for task_id in found.task_ids:
            task = await self.reader.find(task_id, caller_id)
            if task is not None:
                await db_call(copy.add)(task)
        return await db_call(share_thread)(caller_id, found, copy, to)


def read_body(body: bytes) -> ShareBody:
    """The checked body.

    Raises:
        RequestRefused: 400, the body is no JSON, or not of the shape.
    """
    try:
        wanted = msgspec.convert(strict_json.read(body), ShareBody)
    except (UnreadableText, msgspec.ValidationError) as wrong:
        raise RequestRefused(400, "validation_failed", str(wrong)) from None
    if (wanted.task_id is None) == (wanted.thread_id is None):
        raise RequestRefused(400, "validation_failed", "want either taskId or threadId")
    if (wanted.audience in ("user", "group")) != bool(wanted.login):
        raise RequestRefused(400, "validation_failed", "login: want one for a user or a group, and only then")
    return wanted


def show_made(made: MadeShare, public_url: str) -> ApiAnswerShare:
    """A share as the answer that made it shows it: with its link."""
    path = f"/s/{made.token}" if made.token else f"/shared/{made.share.pk}"
    return show_share(made.share, f"{public_url}{path}", is_shown=True)


def show_share(share: AnswerShare, url: str | None, *, is_shown: bool) -> ApiAnswerShare:
    """A share as its owner sees it."""
    return {
        "id": share.pk,
        "agent": share.agent.handle,
        "taskId": share.task_id or None,
        "title": share.title,
        "audience": share.audience,  # type: ignore[typeddict-item]
        "login": share.user.login if share.user else None,
        "url": url,
        "createdAt": iso(share.created_at),
        "expiresAt": iso(share.expires_at),
        "isShown": is_shown,
    }


def explain(failure: Exception) -> Exception:
    """The refusal for a limit of the account; other failures stay as they are."""
    return RequestRefused(429, failure.code, str(failure)) if isinstance(failure, QuotaExceeded) else failure
