"""What is sent to a hub, and how its answers are read, without I/O: `Client` and `AsyncClient` share it.

A `Call` yields a request, gets the response to it, and returns the value that the caller wants.
"""

from collections.abc import Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar
from urllib.parse import urlsplit
from uuid import uuid4

import msgspec

from clawbridge.errors import BadArguments, HubError, Refused, TaskNotFound, Unauthorized, Unreachable
from clawbridge.shapes import Message, Part, QuestionPage, Status, StreamEvent, Task

LOOPBACK = ("localhost", "127.0.0.1", "::1")
AGENTS = "/api/v1/agents"
QUESTIONS = "/api/v1/questions"
NO_TASK = "task not found"
STATES = (
    "queued",
    "open",
    "input_required",
    "auth_required",
    "completed",
    "rejected",
    "canceled",
    "failed",
    "denied",
)
MAX_ID_CHARS = 64
MAX_WAIT_DIGITS = 9
MAX_RECONNECTS = 5  # in a row, without an event between them
FIRST_PAUSE_S = 0.5
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class Request:
    """A request of HTTP. `body`: any JSON."""

    method: str
    path: str
    query: Mapping[str, Any] | None = None
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Response:
    """A response of HTTP from the hub at `hub`."""

    hub: str
    status: int
    headers: Mapping[str, str]
    content: bytes

    def read(self, wanted: type[Value]) -> Value:
        """Its JSON as a value of that type.

        Raises:
            HubError: it is an error, or no such JSON.
        """
        if not 200 <= self.status < 300:
            raise refusal(self)
        return decode(self.hub, self.content or b"null", wanted)


Call = Generator[Request, Response, Value]


def decode(hub: str, content: bytes | str, wanted: type[Value]) -> Value:
    """JSON of the hub as a value of that type.

    Raises:
        Unreachable: it is none.
    """
    try:
        return msgspec.json.decode(content, type=wanted)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise unexpected(hub, problem) from None


def convert(hub: str, answer: Any, wanted: type[Value]) -> Value:
    """A value that was decoded already, as a value of that type.

    Raises:
        Unreachable: it is none.
    """
    try:
        return msgspec.convert(answer, wanted)
    except msgspec.ValidationError as problem:
        raise unexpected(hub, problem) from None


def unexpected(hub: str, problem: Exception) -> Unreachable:
    """The error of an answer that cannot be read."""
    return Unreachable(f"{hub} answered what no Clawbridge hub answers: {problem}")


def no_answer(hub: str, problem: Exception) -> Unreachable:
    """The error of a hub that does not answer."""
    return Unreachable(f"no answer from {hub}: {str(problem) or type(problem).__name__}")


def refusal(response: Response) -> HubError:
    """The error that the hub's answer says."""
    try:
        body = msgspec.json.decode(response.content)
    except (msgspec.DecodeError, RecursionError):
        body = None
    error = body.get("error") if isinstance(body, dict) else None
    text = (error if isinstance(error, dict) else body or {}).get("message") if error else None
    if not isinstance(text, str):
        problem = f"{response.hub} answered HTTP {response.status}"
        if target := response.headers.get("Location"):  # not followed: the token is for this hub
            return Unreachable(f"{problem}: it redirects to {target}")
        return Unreachable(f"{problem}: no Clawbridge hub?")
    reason = error if isinstance(error, str) else ""
    if response.status in (401, 403):
        return Unauthorized(text, reason, response.status)
    if text == NO_TASK:
        return TaskNotFound(text, reason, response.status)
    wait = response.headers.get("Retry-After", "")
    if not wait.isdecimal() or len(wait) > MAX_WAIT_DIGITS:
        return Refused(text, reason, response.status)
    return Refused(f"{text}, retry in {wait} s", reason, response.status, int(wait))


def list_agents(search: str, *, mine: bool, limit: int, offset: int) -> Request:
    """The request of a page of agents: an `AgentPage`."""
    query = {"q": search, "limit": limit, "offset": offset} | ({"mine": "true"} if mine else {})
    return Request("GET", AGENTS, query)


def list_questions(*, agent: str, search: str, state: str, limit: int, before: str) -> Request:
    """The request of a page of the caller's questions: a `QuestionPage`."""
    wanted = {"agent": agent.removeprefix("@"), "q": search, "state": state, "before": before}
    return Request("GET", QUESTIONS, {"limit": limit} | {name: value for name, value in wanted.items() if value})


def read_answer(request: Request, wanted: type[Value]) -> Call[Value]:
    """The answer to one request."""
    return (yield request).read(wanted)


def find_agent(task_id: str) -> Call[str]:
    """The handle of the agent of a task that the caller asked.

    Raises:
        BadArguments: it is no id of a task.
        TaskNotFound: none of the caller's questions has it.
    """
    if not task_id or len(task_id) > MAX_ID_CHARS or not all(c.isalnum() or c in "-_." for c in task_id):
        raise BadArguments(f"{task_id!r} is no id of a task: want one that `clawbridge tasks` lists")
    before: str | None = ""
    while before is not None:
        query = {"task": task_id, "limit": 1} | ({"before": before} if before else {})
        page = (yield Request("GET", QUESTIONS, query)).read(QuestionPage)
        for one in page.items:
            if one.task_id == task_id and one.agent:
                return one.agent
        before = page.next
    raise TaskNotFound(f"no question of yours has the task {task_id}; `clawbridge tasks` lists them", "", 404)


def read_task(task_id: str, agent: str = "") -> Call[Task]:
    """The task as the hub has it, without its history. `agent`: looked up where it is not given.

    Raises:
        TaskNotFound: the hub no longer keeps it, or the caller may not ask its agent any more.
    """
    path = agent_path(agent or (yield from find_agent(task_id)))
    response = yield Request("GET", f"{path}/tasks/{task_id}", {"historyLength": 0})
    return read_kept(response, task_id)


def cancel_task(task_id: str, agent: str = "") -> Call[Task]:
    """Cancel a task; the task after that.

    Raises:
        Refused: it has ended.
    """
    path = agent_path(agent or (yield from find_agent(task_id)))
    response = yield Request("POST", f"{path}/tasks/{task_id}:cancel", body={})
    return read_kept(response, task_id)


def read_kept(response: Response, task_id: str) -> Task:
    """The task of a response.

    Raises:
        TaskNotFound: the hub no longer keeps it.
    """
    try:
        return response.read(Task)
    except TaskNotFound as refused:
        text = f"the hub no longer keeps {task_id}: ask again"
        raise TaskNotFound(text, refused.reason, refused.status) from None


@dataclass(frozen=True, slots=True, kw_only=True)
class Update:
    """What one event of a stream adds: a piece of the reply (`parts`), or a new state of the task (`status`).

    `artifact_id`: of the artifact that `parts` belong to, empty for a message without a task, which is `message`.
    """

    task_id: str
    context_id: str
    status: Status | None = None
    artifact_id: str = ""
    parts: Sequence[Part] = ()
    message: Message | None = None

    @property
    def text(self) -> str:
        """The texts of the piece."""
        return "".join(part.text for part in self.parts if part.text)


class Sending:
    """Sends one message: makes its requests, reads the updates of its task, and continues a stream that broke.

    The message has an `Idempotency-Key`: however often it is sent, the agent is asked once.
    """

    def __init__(self, agent: str, message: str | Sequence[Part], *, task_id: str, context_id: str) -> None:
        self.task_id = task_id
        self.context_id = context_id
        self.message: Message | None = None
        self.was_sent = False  # whether the hub may have the message
        self._agent = agent
        self._path = agent_path(agent)
        self._status: Status | None = None
        self._known: dict[str, str] = {}  # texts of artifacts that were passed on, or are of earlier messages
        self._last_event_id = ""
        self._failures = 0
        parts = [Part(text=message)] if isinstance(message, str) else list(message)
        self._message: dict[str, Any] = {
            "messageId": str(uuid4()),
            "role": "ROLE_USER",
            "parts": [msgspec.to_builtins(part) for part in parts],
        }
        self._message |= {"taskId": task_id} if task_id else {}
        self._message |= {"contextId": context_id} if context_id and not task_id else {}

    @property
    def is_settled(self) -> bool:
        """Whether the agent has answered, ended the task or asked for input."""
        return self.message is not None or (self._status is not None and self._status.is_settled)

    def request(self) -> Request:
        """The request that sends the message, or continues its stream behind the last event."""
        headers = {"Idempotency-Key": self._message["messageId"]}
        headers |= {"Last-Event-ID": self._last_event_id} if self._last_event_id else {}
        return Request("POST", f"{self._path}/message:stream", body={"message": self._message}, headers=headers)

    def take(self, event_id: str, event: StreamEvent) -> Iterator[Update]:
        """Take an event; what it adds to those before."""
        if event_id != self._last_event_id:  # else the hub repeats itself
            self._last_event_id, self._failures = event_id, 0
        if event.task:
            task = event.task
            self.task_id, self.context_id, self._status = task.id, task.context_id, task.status
            yield self._update(status=task.status)
            for artifact in task.artifacts:
                passed_on = self._known.get(artifact.artifact_id)
                if task.status.has_ended and passed_on is None:
                    yield self._update(artifact_id=artifact.artifact_id, parts=artifact.parts)
                elif passed_on and artifact.text != passed_on and artifact.text.startswith(passed_on):
                    rest = Part(text=artifact.text.removeprefix(passed_on))  # its events were missed
                    yield self._update(artifact_id=artifact.artifact_id, parts=[rest])
                self._known[artifact.artifact_id] = artifact.text
        if event.artifact_update:
            update, artifact = event.artifact_update, event.artifact_update.artifact
            if update.append or not update.last_chunk or artifact.artifact_id not in self._known:
                yield self._update(artifact_id=artifact.artifact_id, parts=artifact.parts)
            before = self._known.get(artifact.artifact_id, "") if update.append else ""
            self._known[artifact.artifact_id] = before + artifact.text
        if event.status_update:
            self._status = event.status_update.status
            yield self._update(status=self._status)
        if event.message:
            self.message = event.message
            yield self._update(message=event.message, parts=event.message.parts)

    def pause_s(self, hub: str) -> float:
        """How long to wait after the stream broke.

        Raises:
            Unreachable: it broke too often in a row.
        """
        self._failures += 1
        if self._failures > MAX_RECONNECTS:
            raise Unreachable(f"the connection to {hub} broke {self._failures} times")
        return FIRST_PAUSE_S * float(2 ** (self._failures - 1))

    def answer(self) -> Call[Task | Message]:
        """What the agent answered: the task as the hub has it, or the message without a task."""
        if self.message is not None:
            return self.message
        return (yield from read_task(self.task_id, self._agent))

    def _update(self, **fields: Any) -> Update:
        return Update(task_id=self.task_id, context_id=self.context_id, **fields)


def agent_path(handle: str) -> str:
    """Where an agent is asked, from `@owner/slug` or `owner/slug`.

    Raises:
        BadArguments: it is no handle.
    """
    owner, slash, slug = handle.removeprefix("@").partition("/")
    if not (owner and slash and slug) or not all(c.isascii() and (c.isalnum() or c in "-_") for c in owner + slug):
        raise BadArguments(f"{handle!r} is no handle: want @owner/slug, such as @demo/echo")
    return f"/api/a2a/v1/agents/{owner}/{slug}"


def checked_hub(url: str) -> str:
    """The address of a hub in one spelling.

    Raises:
        BadArguments: it is none.
    """
    problem = BadArguments(f"hub {url!r}: want an address such as https://hub.example")
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        raise problem from None
    extras = (parts.username, parts.password, parts.query, parts.fragment)
    if (
        parts.scheme not in ("http", "https")
        or not parts.hostname
        or port == 0
        or any(extras)
        or not url.isascii()
    ):
        raise problem
    return f"{parts.scheme}://{parts.netloc.lower()}{parts.path.rstrip('/')}"


def is_token(text: str) -> bool:
    """Whether a text has only characters that tokens have."""
    return text.isascii() and text.isprintable() and " " not in text


def is_open_to_listeners(hub: str) -> bool:
    """Whether a token travels to this hub unencrypted, over a network."""
    parts = urlsplit(hub)
    return parts.scheme == "http" and parts.hostname not in LOOPBACK
