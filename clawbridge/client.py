"""Clients of one hub's public API: `Client`, and `AsyncClient` for asyncio. Every read has a timeout."""

import asyncio
import time
from collections.abc import AsyncGenerator, Callable, Generator, Sequence
from contextlib import aclosing, closing
from typing import Any, Self, TypeVar

import httpx2

from clawbridge import VERSION, BadArguments, Broken, calls
from clawbridge.calls import HubCall, HubRequest, HubResponse
from clawbridge.sending import OutgoingMessage, Update
from clawbridge.shapes import AgentPage, ArtifactFile, Message, Part, QuestionPage, Task, TaskStreamEvent, files_of

CONNECT_WITHIN_S = 10.0
SILENT_FOR_S = 30.0  # the hub sends a byte every 3 s while an agent works
UNAVAILABLE_STATUSES = (502, 503, 504)  # statuses of a hub that is not available, or of its proxy
MAX_EVENT_BYTES = 16 * 1024 * 1024
HEADERS = {"A2A-Version": "1.0"}
Value = TypeVar("Value")
Question = str | Sequence[Part]


def http_options(url: str, token: str, within_s: float) -> dict[str, Any]:
    """The arguments of httpx2's clients.

    Raises:
        BadArguments: the token cannot be one.
    """
    if not calls.is_token(token):
        raise BadArguments("the token has characters that no token has")
    headers = {"User-Agent": f"clawbridge/{VERSION}"} | ({"Authorization": f"Bearer {token}"} if token else {})
    timeout = httpx2.Timeout(within_s, connect=min(within_s, CONNECT_WITHIN_S))
    return {"base_url": url, "headers": headers, "timeout": timeout, "follow_redirects": False}


def request_options(request: HubRequest) -> dict[str, Any]:
    """The arguments of httpx2 for a request."""
    headers = HEADERS | dict(request.headers)
    found = {"method": request.method, "url": request.path, "headers": headers, "params": request.query}
    if request.file is not None:
        return found | {"files": {"file": request.file}}
    return found if request.body is None else found | {"json": request.body}


def stream_error(hub: str, problem: httpx2.HTTPError, message: OutgoingMessage) -> Exception:
    """The error of a stream: `Broken` if the message may have reached the hub, so that the stream can go on."""
    if isinstance(problem, httpx2.SSEError):
        return calls.unexpected(hub, problem)
    if isinstance(problem, httpx2.ConnectError | httpx2.ConnectTimeout) and not message.was_sent:
        return calls.no_answer(hub, problem)
    message.was_sent = True
    return Broken(str(problem))


def stream_refusal(response: HubResponse, message: OutgoingMessage) -> Exception:
    """The error of a stream that is refused; `Broken` where a hub restarts that may have the message."""
    return Broken() if message.was_sent and response.status in UNAVAILABLE_STATUSES else calls.refusal(response)


class Client:
    """Calls one hub with one token.

        with Client("https://hub.example", token) as hub:
            print(hub.ask("@demo/echo", "hello").text)

    `url`: of the hub. `token`: `cw_app_…` or `cw_sess_…`. `within_s`: how long the hub may be silent.

    The methods raise a `HubError`: `BadArguments`, `Unreachable`, `Unauthorized`, `TaskNotFound` or `Refused`.
    """

    def __init__(self, url: str, token: str = "", *, within_s: float = SILENT_FOR_S) -> None:
        self.url = calls.checked_hub(url)
        self._http = httpx2.Client(**http_options(self.url, token, within_s))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *failure: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the connections."""
        self._http.close()

    def ask(self, agent: str, question: Question, *, context_id: str = "", task_id: str = "") -> Task | Message:
        """Ask an agent, `@owner/slug`, and wait for its answer.

        `context_id`: of a conversation to continue. `task_id`: of a task that waits for this answer.

        Returns a task that has ended or waits for the caller (`status`), or the message of an agent without tasks.
        """
        message = OutgoingMessage(agent, question, task_id=task_id, context_id=context_id)
        with closing(self._follow(message, None)) as updates:
            for _ in updates:
                pass
        return self._run(message.answer())

    def stream(
        self,
        agent: str,
        question: Question,
        *,
        context_id: str = "",
        task_id: str = "",
        on_reconnect: Callable[[], None] | None = None,
    ) -> Generator[Update]:
        """Ask an agent; its answer piece by piece, and the states of the task.

        A stream that breaks is continued where it ended; `on_reconnect` is called before. To leave early ends the
        stream, not the task: see `cancel`.
        """
        message = OutgoingMessage(agent, question, task_id=task_id, context_id=context_id)
        return self._follow(message, on_reconnect)

    def reply(self, task_id: str, text: Question) -> Task | Message:
        """Answer a task that waits for input, and wait for what its agent makes of it."""
        return self.ask(self.agent_of(task_id), text, task_id=task_id)

    def agents(self, search: str = "", *, mine: bool = False, limit: int = 100, offset: int = 0) -> AgentPage:
        """The agents that the caller may ask, by handle; with `search`, by relevance. `mine`: own, drafts too."""
        return self._run(
            calls.read_answer(calls.list_agents(search, mine=mine, limit=limit, offset=offset), AgentPage)
        )

    def tasks(
        self, *, agent: str = "", search: str = "", state: str = "", limit: int = 25, before: str = ""
    ) -> QuestionPage:
        """The caller's questions, newest first. `state`: one of `STATES`. `before`: `next` of the page before."""
        request = calls.list_questions(agent=agent, search=search, state=state, limit=limit, before=before)
        return self._run(calls.read_answer(request, QuestionPage))

    def task(self, task_id: str, *, agent: str = "") -> Task:
        """A task as it is now."""
        return self._run(calls.read_task(task_id, agent))

    def artifacts(self, task_id: str, *, agent: str = "") -> list[ArtifactFile]:
        """The files of a task's answer, texts and data too, each with a name that is safe in a folder."""
        return files_of(self.task(task_id, agent=agent).artifacts)

    def upload(self, name: str, content: bytes, media_type: str) -> Part:
        """Upload a file of up to 10 MiB; returns the part by which a question names it."""
        return self._run(calls.upload_file(name, content, media_type))

    def cancel(self, task_id: str, *, agent: str = "") -> Task:
        """Cancel a task."""
        return self._run(calls.cancel_task(task_id, agent))

    def rate(self, task_id: str, rating: str, note: str = "", *, agent: str = "") -> Task:
        """Rate the answer of a task: `up` or `down`, or `none` to take the rating away."""
        return self._run(calls.rate_task(task_id, rating, note, agent))

    def agent_of(self, task_id: str) -> str:
        """The handle, without @, of the agent that a task was asked of."""
        return self._run(calls.find_agent(task_id))

    def call(self, request: HubRequest) -> Any:
        """The JSON that the hub answers to any request; None for an empty answer."""
        return self._run(calls.read_answer(request, object))

    def read_text(self, request: HubRequest) -> str:
        """The text that the hub answers to any request."""
        return self._run(calls.read_text(request))

    def _run(self, call: HubCall[Value]) -> Value:
        try:
            request = next(call)
            while True:
                request = call.send(self._exchange(request))
        except StopIteration as end:
            value: Value = end.value
            return value

    def _exchange(self, request: HubRequest) -> HubResponse:
        try:
            response = self._http.request(**request_options(request))
        except httpx2.HTTPError as problem:
            raise calls.no_answer(self.url, problem) from None
        return HubResponse(self.url, response.status_code, response.headers, response.content)

    def _follow(self, message: OutgoingMessage, on_reconnect: Callable[[], None] | None) -> Generator[Update]:
        while True:
            try:
                with closing(self._events(message)) as events:
                    for event_id, event in events:
                        yield from message.take(event_id, event)
                        if message.is_settled:
                            return
            except Broken:
                pass
            pause_s = message.pause_s(self.url)
            if on_reconnect:
                on_reconnect()
            time.sleep(pause_s)

    def _events(self, message: OutgoingMessage) -> Generator[tuple[str, TaskStreamEvent]]:
        try:
            with self._http.stream(**request_options(message.request())) as response:
                if not response.is_success:
                    response.read()
                    refused = HubResponse(self.url, response.status_code, response.headers, response.content)
                    raise stream_refusal(refused, message)
                message.was_sent = True
                for event in httpx2.EventSource(response, MAX_EVENT_BYTES):
                    if event.data:
                        yield event.id, calls.decode(self.url, event.data, TaskStreamEvent)
        except httpx2.HTTPError as problem:
            raise stream_error(self.url, problem, message) from None


class AsyncClient:
    """Calls one hub with one token, from asyncio; the methods are those of `Client`.

    async with AsyncClient("https://hub.example", token) as hub:
        async for update in hub.stream("@demo/echo", "hello"):
            print(update.text, end="")
    """

    def __init__(self, url: str, token: str = "", *, within_s: float = SILENT_FOR_S) -> None:
        self.url = calls.checked_hub(url)
        self._http = httpx2.AsyncClient(**http_options(self.url, token, within_s))

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *failure: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def ask(
        self, agent: str, question: Question, *, context_id: str = "", task_id: str = ""
    ) -> Task | Message:
        """See `Client.ask`. To cancel the wait does not cancel the task."""
        message = OutgoingMessage(agent, question, task_id=task_id, context_id=context_id)
        async with aclosing(self._follow(message, None)) as updates:
            async for _ in updates:
                pass
        return await self._run(message.answer())

    def stream(
        self,
        agent: str,
        question: Question,
        *,
        context_id: str = "",
        task_id: str = "",
        on_reconnect: Callable[[], None] | None = None,
    ) -> AsyncGenerator[Update]:
        """See `Client.stream`."""
        message = OutgoingMessage(agent, question, task_id=task_id, context_id=context_id)
        return self._follow(message, on_reconnect)

    async def reply(self, task_id: str, text: Question) -> Task | Message:
        """See `Client.reply`."""
        return await self.ask(await self.agent_of(task_id), text, task_id=task_id)

    async def agents(
        self, search: str = "", *, mine: bool = False, limit: int = 100, offset: int = 0
    ) -> AgentPage:
        """See `Client.agents`."""
        request = calls.list_agents(search, mine=mine, limit=limit, offset=offset)
        return await self._run(calls.read_answer(request, AgentPage))

    async def tasks(
        self, *, agent: str = "", search: str = "", state: str = "", limit: int = 25, before: str = ""
    ) -> QuestionPage:
        """See `Client.tasks`."""
        request = calls.list_questions(agent=agent, search=search, state=state, limit=limit, before=before)
        return await self._run(calls.read_answer(request, QuestionPage))

    async def task(self, task_id: str, *, agent: str = "") -> Task:
        """See `Client.task`."""
        return await self._run(calls.read_task(task_id, agent))

    async def artifacts(self, task_id: str, *, agent: str = "") -> list[ArtifactFile]:
        """See `Client.artifacts`."""
        return files_of((await self.task(task_id, agent=agent)).artifacts)

    async def upload(self, name: str, content: bytes, media_type: str) -> Part:
        """See `Client.upload`."""
        return await self._run(calls.upload_file(name, content, media_type))

    async def cancel(self, task_id: str, *, agent: str = "") -> Task:
        """See `Client.cancel`."""
        return await self._run(calls.cancel_task(task_id, agent))

    async def rate(self, task_id: str, rating: str, note: str = "", *, agent: str = "") -> Task:
        """See `Client.rate`."""
        return await self._run(calls.rate_task(task_id, rating, note, agent))

    async def agent_of(self, task_id: str) -> str:
        """See `Client.agent_of`."""
        return await self._run(calls.find_agent(task_id))

    async def call(self, request: HubRequest) -> Any:
        """See `Client.call`."""
        return await self._run(calls.read_answer(request, object))

    async def read_text(self, request: HubRequest) -> str:
        """See `Client.read_text`."""
        return await self._run(calls.read_text(request))

    async def _run(self, call: HubCall[Value]) -> Value:
        try:
            request = next(call)
            while True:
                request = call.send(await self._exchange(request))
        except StopIteration as end:
            value: Value = end.value
            return value

    async def _exchange(self, request: HubRequest) -> HubResponse:
        try:
            response = await self._http.request(**request_options(request))
        except httpx2.HTTPError as problem:
            raise calls.no_answer(self.url, problem) from None
        return HubResponse(self.url, response.status_code, response.headers, response.content)

    async def _follow(
        self, message: OutgoingMessage, on_reconnect: Callable[[], None] | None
    ) -> AsyncGenerator[Update]:
        while True:
            try:
                async with aclosing(self._events(message)) as events:
                    async for event_id, event in events:
                        for update in message.take(event_id, event):
                            yield update
                        if message.is_settled:
                            return
            except Broken:
                pass
            pause_s = message.pause_s(self.url)
            if on_reconnect:
                on_reconnect()
            await asyncio.sleep(pause_s)

    async def _events(self, message: OutgoingMessage) -> AsyncGenerator[tuple[str, TaskStreamEvent]]:
        try:
            async with self._http.stream(**request_options(message.request())) as response:
                if not response.is_success:
                    await response.aread()
                    refused = HubResponse(self.url, response.status_code, response.headers, response.content)
                    raise stream_refusal(refused, message)
                message.was_sent = True
                async for event in httpx2.EventSource(response, MAX_EVENT_BYTES):
                    if event.data:
                        yield event.id, calls.decode(self.url, event.data, TaskStreamEvent)
        except httpx2.HTTPError as problem:
            raise stream_error(self.url, problem, message) from None
