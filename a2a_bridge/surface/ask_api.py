"""`GET /api/v1/questions/{id}`: one ask with its timeline and exchanges; and the call that reports a problem."""

from typing import Annotated, Literal, TypedDict

import msgspec
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from a2a_bridge import settings
from a2a_bridge.models import RecordedExchange
from a2a_bridge.service.ask_spans import SpanKind
from a2a_bridge.service.asks import AskView, NotReportable, find_ask
from accounts.authn import TokenScope
from accounts.rest import Body, Conflict, caller_of
from agents.core.problems import MAX_NOTE_CHARS, AlreadyReported, EmptyNote
from agents.models import ProblemNote
from kit.describe import ErrorBody, Time, Url
from kit.money import MICRO
from kit.rows import RowSource, show, show_each

NO_ASK = "you have no such question, and no agent of yours was asked it"
NOT_YOURS = "only the caller of a question to another user's agent reports a problem with it"


class AskStep(TypedDict):
    """A step of the timeline. `endedAt`: equal to `beganAt` for a moment; null while the step goes on.

    `level`: 0 for a step of the ask itself, 1 and more for asks that its agent made. `id`: of such an ask that you
    may read.
    """

    kind: SpanKind
    name: str
    detail: str
    beganAt: Annotated[Time, RowSource("began_at")]
    endedAt: Annotated[Time | None, RowSource("ended_at")]
    level: int
    id: Annotated[str | None, RowSource("chat_id")]
    failed: Annotated[bool, RowSource("is_fault")]


class AskExchange(TypedDict):
    """A request and its response as they were sent, without secrets; long bodies are cut.

    `status`: of HTTP; 0: the client left before a response. `frames`: of a stream; 0: the response is no stream.
    `requestBody` is null where only the caller reads it: of chat completions and responses, of which the agent got
    but the question. `responseBody` is null where you may not ask the agent any more.
    """

    protocol: str
    method: str
    path: str
    receivedAt: Time
    endedAt: Time
    requestHeaders: dict[str, str]
    requestBody: str | None
    requestBytes: int
    status: int
    responseHeaders: dict[str, str]
    responseBody: str | None
    responseBytes: int
    frames: int


class AskProblem(TypedDict):
    """The caller's note to the agent's owner."""

    text: str
    reportedAt: Time


class AskUsage(TypedDict):
    """The usage that the agent reported; null: not reported. Only the agent's owner and auditors read the cost."""

    inputTokens: int | None
    outputTokens: int | None
    costUsd: Annotated[float | None, RowSource("cost_microusd", MICRO)]


class OneAsk(TypedDict):
    """One ask, as far as you may see it.

    `as`: `caller` for one of your own, `owner` where you own or audit the agent. `why`: the reason why there is no
    answer. `waitedMs`: in line; `deliveredMs`, `firstPieceMs`: since it was admitted. `contextId`: null unless the
    ask is yours. `curl`: a command that sends the message again, with your token in `$TOKEN`.
    """

    id: str
    agent: str
    caller: str
    surface: str
    question: str
    askedAt: Time
    settledAt: Time | None
    state: Literal["queued", "open", "completed", "failed", "denied"]
    reason: str | None
    why: str | None
    latencyMs: int | None
    waitedMs: int | None
    deliveredMs: int | None
    firstPieceMs: int | None
    usage: AskUsage
    taskId: str | None
    contextId: str | None
    traceId: str | None
    traceUrl: Url | None
    url: Url
    asCaller: bool
    asOwner: bool
    steps: list[AskStep]
    exchanges: list[AskExchange]
    problem: AskProblem | None
    curl: str | None


class ProblemBody(Body):
    """The note to the agent's owner."""

    text = serializers.CharField(max_length=MAX_NOTE_CHARS)


def show_ask(ask: AskView) -> OneAsk:
    """An ask as its viewer sees it."""
    turn, viewed = ask.viewed.turn, ask.viewed
    usage = show(AskUsage, turn, **({} if viewed.is_owner else {"costUsd": None}))
    return show(
        OneAsk,
        turn,
        id=turn.chat_id,
        agent=turn.asked,
        caller=turn.asker,
        state="queued" if viewed.is_queued else turn.outcome or "open",
        why=ask.why or None,
        contextId=(turn.context_id or None) if viewed.is_caller else None,
        usage=usage,
        traceUrl=ask.trace_url or None,
        url=f"{settings.PUBLIC_URL}/questions/{turn.chat_id}",
        asCaller=viewed.is_caller,
        asOwner=viewed.is_owner,
        steps=show_each(AskStep)(ask.spans),
        exchanges=[_show_exchange(one, ask) for one in ask.exchanges],
        problem=_show_problem(ask.problem),
        curl=ask.curl or None,
    )


def _show_exchange(row: RecordedExchange, ask: AskView) -> AskExchange:
    return show(
        AskExchange,
        row,
        requestHeaders=msgspec.json.decode(row.request_headers),
        responseHeaders=msgspec.json.decode(row.response_headers),
        requestBody=row.request_body if ask.viewed.may_read_request(row) else None,
        responseBody=row.response_body if ask.viewed.may_read_response else None,
    )


def _show_problem(note: ProblemNote | None) -> AskProblem | None:
    return show(AskProblem, note) if note else None


def get_ask(ask_id: str, request: Request) -> AskView:
    """An ask that the caller may read.

    Raises:
        NotFound: there is none.
    """
    ask = find_ask(ask_id, caller_of(request).pk)
    if ask is None:
        raise NotFound(NO_ASK)
    return ask


class Question(APIView):
    """`/questions/{id}`"""

    @extend_schema(operation_id="getQuestion", tags=["questions"], responses=OneAsk)
    def get(self, request: Request, ask_id: str) -> Response:
        """One question, by its id or that of its task: request and response, timeline, attempts, usage."""
        return Response(show_ask(get_ask(ask_id, request)))


class Problem(APIView):
    """`/questions/{id}/problem`"""

    scope = TokenScope.ASK

    @extend_schema(
        operation_id="reportProblem",
        tags=["questions"],
        request=ProblemBody,
        responses={201: AskProblem, 409: ErrorBody},
    )
    def post(self, request: Request, ask_id: str) -> Response:
        """Report a problem with one of your questions to the agent's owner. A question takes one report."""
        ask, body = get_ask(ask_id, request), ProblemBody.read(request)
        try:
            note = ask.report_problem(body.validated_data["text"])
        except NotReportable:
            raise NotFound(NOT_YOURS) from None
        except EmptyNote:
            raise ValidationError({"text": "write what was wrong"}) from None
        except AlreadyReported:
            raise Conflict("this question has a report already") from None
        return Response(_show_problem(note), status=201)


urlpatterns = [
    path("questions/<str:ask_id>", Question.as_view()),
    path("questions/<str:ask_id>/problem", Problem.as_view()),
]
