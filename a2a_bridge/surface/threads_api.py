"""The native API's calls on threads: those of their caller alone.

A thread of another caller and an absent one give the same 404.
"""

from collections.abc import Sequence
from typing import Annotated, Any, Literal, TypedDict

from django.http import StreamingHttpResponse
from django.urls import path
from drf_spectacular.utils import extend_schema
from rest_framework import serializers
from rest_framework.exceptions import NotFound, ValidationError
from rest_framework.request import Request
from rest_framework.response import Response
from rest_framework.views import APIView

from a2a_bridge.models import MAX_TITLE_CHARS, Thread
from a2a_bridge.service.threads import changes
from a2a_bridge.service.threads.changes import BadTitle, StillUnderWay
from a2a_bridge.service.threads.exchanges import Exchange
from a2a_bridge.service.threads.exporting import MEDIA_TYPES
from a2a_bridge.service.threads.listing import (
    CURRENT,
    STATES,
    Hit,
    ListedThread,
    find_threads,
    get_thread,
    list_threads,
)
from a2a_bridge.service.threads.reading import PART_TASKS, read_part
from a2a_bridge.surface.thread_files import file_of
from accounts.paging import PageQuery, page, read_filters, read_query
from accounts.rest import Body, Conflict, caller_of
from agents.api.files import AnyType
from kit.clock import iso
from kit.describe import ErrorBody, Page, Time, Uuid
from kit.rows import RowSource, show

NO_THREAD = "no such thread"
MAX_LIMIT = 100
MAX_WORDS_CHARS = 200
MAX_KEY = 10**18


class ThreadHit(TypedDict):
    """The newest place with the words of a search: in the question of a task, or in its answer."""

    taskId: str
    inAnswer: bool
    text: str


class ApiThread(TypedDict):
    """A conversation with an agent: the tasks of one A2A context. `id` is the last part of its page's address.

    `title`: the beginning of the first question, or what its caller typed. To continue it, ask its agent with
    `contextId`. `questions`: the number of its tasks. `hit`: only of a search with `q`.
    """

    id: Annotated[Uuid, RowSource("thread.public_id")]
    title: Annotated[str, RowSource("thread.title")]
    agent: Annotated[str, RowSource("thread.agent.handle")]
    contextId: Annotated[str, RowSource("thread.context_id")]
    beganAt: Annotated[Time, RowSource("thread.began_at")]
    lastAskedAt: Annotated[Time, RowSource("thread.last_asked_at")]
    archived: bool
    questions: int
    hit: ThreadHit | None


class ThreadFile(TypedDict):
    """A file of a question or an answer, without its content, which the task and the export have."""

    name: str
    mediaType: str | None
    sizeBytes: int | None
    url: str | None


class ThreadText(TypedDict):
    """Words of the caller or the agent; an agent's text is Markdown. `isCut`: the text is only the beginning."""

    by: Literal["caller", "agent"]
    text: str
    isCut: bool
    files: list[ThreadFile]


class ThreadExchange(TypedDict):
    """A task of a thread: the question, what was said in between, and the answer. `reason`: why there is none."""

    taskId: str
    chatId: str
    state: Literal[
        "submitted", "working", "input_required", "auth_required", "completed", "failed", "canceled", "rejected"
    ]
    askedAt: Time
    endedAt: Time | None
    said: list[ThreadText]
    reason: str | None


class ThreadDetail(ApiThread):
    """A thread with its last questions and their answers, in the order in which they were asked.

    `before`: the `before` of a query for the questions before these; null if these are the first ones.
    """

    exchanges: list[ThreadExchange]
    before: int | None


class ThreadFilters(PageQuery):
    """The threads to list."""

    limit = serializers.IntegerField(default=25, min_value=1)
    q = serializers.CharField(
        required=False,
        max_length=MAX_WORDS_CHARS,
        help_text="words, in any form and order, that a title has, or a question with its answer",
    )
    agent = serializers.CharField(required=False, max_length=MAX_WORDS_CHARS, help_text="a handle")
    state = serializers.ChoiceField(choices=STATES, default=CURRENT)


class PartQuery(serializers.Serializer[Any]):
    """The part of a thread to show."""

    before = serializers.IntegerField(
        required=False, min_value=1, max_value=MAX_KEY, help_text="the `before` of the part after it"
    )
    limit = serializers.IntegerField(
        default=PART_TASKS, min_value=1, max_value=PART_TASKS, help_text="the most questions to show"
    )


class ExportQuery(serializers.Serializer[Any]):
    """The form of an export."""

    form = serializers.ChoiceField(choices=tuple(MEDIA_TYPES), default="markdown")


class ExportedMessage(TypedDict):
    """A message of an exported task; its parts are those of A2A 1.0."""

    messageId: str
    role: str
    parts: list[dict[str, Any]]


class ExportedArtifact(TypedDict):
    """An artifact of an exported task; its parts are those of A2A 1.0."""

    artifactId: str
    name: str
    parts: list[dict[str, Any]]


class ExportedTask(TypedDict):
    """A task of an exported thread, with all parts of its messages and artifacts."""

    id: str
    chatId: str
    askedAt: Time
    state: str
    updatedAt: Time
    messages: list[ExportedMessage]
    artifacts: list[ExportedArtifact]


class ExportedThread(TypedDict):
    """The JSON of an export: the thread, and its tasks, the oldest first."""

    format: Literal["clawbridge-thread"]
    version: int
    id: Uuid
    title: str
    agent: str
    contextId: str
    beganAt: Time
    lastAskedAt: Time
    exportedAt: Time
    tasks: list[ExportedTask]


class ThreadBody(Body):
    """The changes of a thread."""

    title = serializers.CharField(required=False, max_length=MAX_TITLE_CHARS)
    archived = serializers.BooleanField(required=False)


class ThreadsView(APIView):
    """The base of the calls on threads."""

    def get_own(self, request: Request, thread_id: str) -> Thread:
        """A thread of the caller; others' and absent ones are the same 404."""
        own = get_thread(caller_of(request).pk, thread_id)
        if own is None:
            raise NotFound(NO_THREAD)
        return own


class CallerThreads(ThreadsView):
    """`/threads`"""

    @extend_schema(parameters=[ThreadFilters], responses=Page[ApiThread])
    def get(self, request: Request) -> Response:
        """Your conversations with agents, the one asked last first; `q` searches questions, answers and titles."""
        filters = read_filters(ThreadFilters, request)
        found = find_threads(caller_of(request).pk, **filters)

        def show_all(threads: Sequence[Thread]) -> list[ApiThread]:
            return [show_listed(one) for one in list_threads(threads, found)]

        return page(request, found.rows, show_all, ThreadFilters, most=MAX_LIMIT)


class CallerThread(ThreadsView):
    """`/threads/{id}`"""

    @extend_schema(parameters=[PartQuery], responses=ThreadDetail)
    def get(self, request: Request, thread_id: str) -> Response:
        """One of your threads with its last questions and answers."""
        own = self.get_own(request, thread_id)
        query = read_query(PartQuery, request)
        part = read_part(own, query.get("before"), tasks=query["limit"])
        exchanges = [show_exchange(one) for one in part.exchanges]
        detail: ThreadDetail = {**_shown(own), "exchanges": exchanges, "before": part.before}
        return Response(detail)

    @extend_schema(request=ThreadBody, responses={200: ApiThread})
    def patch(self, request: Request, thread_id: str) -> Response:
        """Rename a thread, archive it (`archived: true`), or put it back.

        The next question in an archived thread puts it back, too.
        """
        own = self.get_own(request, thread_id)
        wanted = ThreadBody.read(request, partial=True).validated_data
        try:
            if "title" in wanted:
                changes.rename(own, wanted["title"])
        except BadTitle as bad:
            raise ValidationError({"title": str(bad)}) from None
        if "archived" in wanted:
            changes.set_archived(own, archived=wanted["archived"])
        return Response(_shown(own))

    @extend_schema(request=None, responses={204: None, 409: ErrorBody})
    def delete(self, request: Request, thread_id: str) -> Response:
        """Delete a thread with its questions and answers; 409 while one of its questions is being answered."""
        try:
            changes.delete(self.get_own(request, thread_id))
        except StillUnderWay as busy:
            raise Conflict(str(busy)) from None
        return Response(status=204)


class CallerThreadExport(ThreadsView):
    """`/threads/{id}/export`"""

    content_negotiation_class = AnyType

    @extend_schema(
        parameters=[ExportQuery],
        responses={
            (200, "text/markdown"): bytes,
            (200, "application/json"): ExportedThread,
            429: ErrorBody,
            503: ErrorBody,
        },
    )
    def get(self, request: Request, thread_id: str) -> StreamingHttpResponse:
        """A thread as a file: `markdown` to read, or `json` with all parts of its messages and artifacts."""
        own = self.get_own(request, thread_id)
        form = read_query(ExportQuery, request)["form"]
        return file_of(request, own, form, caller_of(request).pk)


def show_listed(one: ListedThread) -> ApiThread:
    """A thread of a list."""
    return show(
        ApiThread,
        one,
        archived=one.thread.archived_at is not None,
        hit=_hit(one.hit) if one.hit else None,
    )


def show_exchange(one: Exchange) -> ThreadExchange:
    """A question with its answer."""
    return {
        "taskId": one.task_id,
        "chatId": one.chat_id,
        "state": one.state.value,
        "askedAt": iso(one.asked_at),
        "endedAt": iso(one.ended_at) if one.has_ended else None,
        "said": [
            {
                "by": "caller" if said.is_caller else "agent",
                "text": said.text,
                "isCut": said.is_cut,
                "files": [
                    {
                        "name": file.name,
                        "mediaType": file.media_type or None,
                        "sizeBytes": file.size_bytes,
                        "url": file.url or None,
                    }
                    for file in said.files
                ],
            }
            for said in one.said
        ],
        "reason": one.reason or None,
    }


def _shown(own: Thread) -> ApiThread:
    [listed] = list_threads([own])
    return show_listed(listed)


def _hit(hit: Hit) -> ThreadHit:
    return {"taskId": hit.task_id, "inAnswer": hit.is_answer, "text": "".join(text for text, _ in hit.parts)}


urlpatterns = [
    path("threads", CallerThreads.as_view(), name="threads-api"),
    path("threads/<str:thread_id>", CallerThread.as_view(), name="thread-api"),
    path("threads/<str:thread_id>/export", CallerThreadExport.as_view(), name="thread-export-api"),
]
