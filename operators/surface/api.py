"""The calls of operators over HTTP in one table, served by plain ASGI, because a routed ask waits for its reply.

A request is checked by the guard of all surfaces (`accounts.authn`); then the call is made.
"""

import asyncio
import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from msgspec import UNSET
from msgspec.structs import replace

from accounts.authn import TokenScope
from agents.core.ask_starter import AskingUser
from agents.core.errors import Offline, Unavailable
from agents.core.rest_server import RestAnswer, RestServer, json_answer
from agents.core.waiting import RunningTurn, left_out_of
from agents.models.choices import Outcome, Surface, TurnFailure
from kit.asgi import HttpRequest, RequestRefused, Send
from kit.clock import iso
from kit.describe import (
    COMMON_FAILURES,
    DescribedAnswer,
    DescribedOperation,
    ErrorBody,
    Parameter,
    Uuid,
    describe_failures,
)
from operators.service.prompts import PromptRequest, PromptService
from operators.wire.errors import REFUSED, NoSuchSession, describe_error, failure_text, status_and_code
from operators.wire.frames import (
    ProbeAnswer,
    ProbeBody,
    ProbeSent,
    PromptBody,
    PromptSent,
    RouteAnswer,
    RouteBody,
    read_body,
)

Names = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Pending:
    """An answer that waits for an agent."""

    answer: Coroutine[Any, Any, Any]


@dataclass(frozen=True, slots=True)
class OperatorCall:
    """A call by POST. The groups of `path` name its variable parts; `operation` has the shapes of its bodies."""

    path: re.Pattern[str]
    run: Callable[[PromptService, AskingUser, Names, Any], Awaitable[Any]]
    operation: DescribedOperation


async def prompt(prompt_service: PromptService, asker: AskingUser, names: Names, body: PromptBody) -> PromptSent:
    """Prompt a session; never waits for the reply."""
    wanted = PromptRequest(
        session_id=session_id_of(names["id"]), text=body.text, attachments=body.attachments or ()
    )
    running, routed_to = await prompt_service.prompt(asker, wanted, surface=Surface.PROMPT)
    chat_id = running.ask.chat_id
    return PromptSent(ok=True, chat_id=chat_id, ts=now(), routed_to_agent=routed_to or UNSET)


async def route(
    prompt_service: PromptService, asker: AskingUser, names: Names, body: RouteBody
) -> RouteAnswer | Pending:
    """Prompt a peer; an ask waits for the reply."""
    running, session_id = await prompt_service.route(asker, names["peer"], body.prompt, body.mode)
    sent = RouteAnswer(ok=True, chat_id=running.ask.chat_id, session_id=session_id, mode=body.mode)
    return Pending(_with_reply(sent, running, prompt_service.reply_wait_s)) if body.mode == "ask" else sent


async def probe(prompt_service: PromptService, asker: AskingUser, names: Names, body: ProbeBody) -> ProbeAnswer:
    """Prompt many peers; never waits for a reply."""
    found = await prompt_service.probe(asker, body.prompt, body.peers)
    return ProbeAnswer([ProbeSent(one.name, one.session_id, one.status) for one in found])


_REFUSALS = {
    403: "Your role does not reach, the owner blocks you, or the cookie came from another site.",
    408: COMMON_FAILURES[408],
    409: "It is offline, busy, archived, ambiguous or at its cap. Nothing was sent.",
    429: "Its budget is spent, or you ask too fast: Retry-After says when to come back. Nothing was sent.",
    503: COMMON_FAILURES[503],
}
CALLS = (
    OperatorCall(
        re.compile(r"/api/v1/sessions/(?P<id>[^/]+)/prompt"),
        prompt,
        DescribedOperation(
            method="post",
            path="/api/v1/sessions/{public_id}/prompt",
            parameters=[Parameter(name="public_id", shape=Uuid, place="path")],
            name="promptSession",
            summary="Prompt a session; the reply comes as an event.",
            text="Takes the role prompter. A text that begins with `@owner/slug` goes there instead.",
            tag="sessions",
            request=PromptBody,
            answers={
                200: DescribedAnswer(shape=PromptSent, text="It is on its way."),
                **describe_failures(ErrorBody, _REFUSALS),
            },
        ),
    ),
    OperatorCall(
        re.compile(r"/api/v1/peers/probe"),
        probe,
        DescribedOperation(
            method="post",
            path="/api/v1/peers/probe",
            name="probePeers",
            summary="Tell many sessions the same.",
            tag="peers",
            request=ProbeBody,
            answers={
                200: DescribedAnswer(shape=ProbeAnswer, text="Whom it was sent to, and whom not."),
                **describe_failures(ErrorBody, _REFUSALS),
            },
        ),
    ),
    OperatorCall(
        re.compile(r"/api/v1/peers/(?P<peer>.+)/route", re.DOTALL),
        route,
        DescribedOperation(
            method="post",
            path="/api/v1/peers/{peer}/route",
            name="routeToPeer",
            summary="Prompt a session or a published agent by name, and with `ask` wait for the reply.",
            text="`peer` is `slug`, `@slug`, `owner/slug` or `@owner/slug`; its slash may be encoded or not.",
            tag="peers",
            request=RouteBody,
            answers={
                200: DescribedAnswer(shape=RouteAnswer, text="The reply; or, in time, none."),
                **describe_failures(ErrorBody, _REFUSALS | {502: "It was sent, or may have been, and failed."}),
            },
        ),
    ),
)
OPERATIONS = tuple(call.operation for call in CALLS)


def session_id_of(text: str) -> UUID:
    """A session's public id.

    Raises:
        NoSuchSession: no session can have such an id.
    """
    try:
        return UUID(text)
    except ValueError:
        raise NoSuchSession from None


def now() -> str:
    """The time of an answer."""
    return iso(datetime.now(UTC))


async def _with_reply(sent: RouteAnswer, running: RunningTurn, wait_s: float) -> RouteAnswer:
    """The answer with the reply, when the turn has ended; the deadline of the turn is that of the caller.

    Raises:
        RequestRefused: it failed otherwise than by timeout.
    """
    settled = await asyncio.shield(running.settled)
    if settled.outcome is Outcome.COMPLETED:
        left_out = left_out_of(running.pieces) or UNSET
        return replace(sent, reply=settled.text, reply_ts=now(), left_out=left_out)
    message = settled.own_words or failure_text(settled.reason, wait_s)
    if settled.reason == TurnFailure.NOT_DELIVERED:
        raise RequestRefused(*status_and_code(Offline), message)
    if settled.reason != TurnFailure.TIMEOUT:
        raise RequestRefused(502, settled.reason, message)
    return replace(sent, ok=False, timed_out=True, error=message)


@dataclass(frozen=True, slots=True)
class Operators:
    """Serves `CALLS`."""

    prompt_service: PromptService
    http: RestServer

    async def __call__(self, request: HttpRequest, call: OperatorCall, names: Names, send: Send) -> None:
        """Answer one request for a call; nothing a client sends makes this raise."""
        work = self._answer(request, call, names)
        await self.http.serve(
            request, send, work, "operators.failed", explain=explain, unavailable=Unavailable.text
        )

    async def _answer(self, request: HttpRequest, call: OperatorCall, names: Names) -> RestAnswer:
        body = await request.read_checked(("POST",))
        identity = await self.http.get_caller(request, TokenScope.ASK)
        wanted = read_body(body, call.operation.request)
        asker = AskingUser(user_id=identity.user_id, login=identity.login, traceparent=request.traceparent)
        answer = await call.run(self.prompt_service, asker, names, wanted)
        if isinstance(answer, Pending):
            with self.http.callers.hold(identity.credential_id):
                answer = await answer.answer
        return json_answer(answer)


def explain(failure: Exception) -> Exception:
    """The refusal for an error of operators; other failures stay as they are."""
    return describe_error(failure) if isinstance(failure, REFUSED) else failure
