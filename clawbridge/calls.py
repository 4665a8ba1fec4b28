"""The requests to a hub, and how the hub's answers are read, without I/O: `Client` and `AsyncClient` share it.

A `Call` yields a request, gets the response to it, and returns the value that the caller wants.
"""

from collections.abc import Generator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar, get_args
from urllib.parse import urlsplit

import msgspec

from clawbridge import BadArguments, HubError, Refused, TaskNotFound, Unauthorized, Unreachable
from clawbridge.checks import hub_address
from clawbridge.shapes import Part, QuestionPage, QuestionState, Task, UploadedFile

LOOPBACK = ("localhost", "127.0.0.1", "::1")
AGENTS = "/api/v1/agents"
QUESTIONS = "/api/v1/questions"
THREADS = "/api/v1/threads"
FILES = "/api/v1/files"
NO_TASK = "task not found"
STATES: tuple[str, ...] = get_args(QuestionState)
MAX_ID_CHARS = 64
MAX_WAIT_DIGITS = 9
Value = TypeVar("Value")


@dataclass(frozen=True, slots=True)
class HubRequest:
    """A request of HTTP. `body`: any JSON. `file`: name, content and media type of a file, instead of a body."""

    method: str
    path: str
    query: Mapping[str, Any] | None = None
    body: Any = None
    headers: Mapping[str, str] = field(default_factory=dict)
    file: tuple[str, bytes, str] | None = None


@dataclass(frozen=True, slots=True)
class HubResponse:
    """A response of HTTP from the hub at `hub`."""

    hub: str
    status: int
    headers: Mapping[str, str]
    content: bytes

    def read(self, wanted: type[Value]) -> Value:
        """The JSON of the response as a value of that type.

        Raises:
            HubError: the response is an error, or its JSON is of another type.
        """
        if not 200 <= self.status < 300:
            raise refusal(self)
        return decode(self.hub, self.content or b"null", wanted)


HubCall = Generator[HubRequest, HubResponse, Value]


def decode(hub: str, content: bytes | str, wanted: type[Value]) -> Value:
    """JSON of the hub as a value of that type.

    Raises:
        Unreachable: the JSON is of another type.
    """
    try:
        return msgspec.json.decode(content, type=wanted)
    except (msgspec.DecodeError, RecursionError) as problem:
        raise unexpected(hub, problem) from None


def convert(hub: str, answer: Any, wanted: type[Value]) -> Value:
    """A value that was decoded already, as a value of that type.

    Raises:
        Unreachable: the JSON is of another type.
    """
    try:
        return msgspec.convert(answer, wanted)
    except msgspec.ValidationError as problem:
        raise unexpected(hub, problem) from None


def unexpected(hub: str, problem: Exception) -> Unreachable:
    """The error for a response that cannot be read."""
    return Unreachable(f"{hub} answered what no Clawbridge hub answers: {problem}")


def no_answer(hub: str, problem: Exception) -> Unreachable:
    """The error for a hub that does not answer."""
    return Unreachable(f"no answer from {hub}: {str(problem) or type(problem).__name__}")


def refusal(response: HubResponse) -> HubError:
    """The error that the hub's response describes."""
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


def list_agents(
    search: str, *, mine: bool, limit: int, offset: int, tag: str = "", sort: str = "", favourites: bool = False
) -> HubRequest:
    """The request of a page of agents: an `AgentPage`."""
    query: dict[str, Any] = {"q": search, "limit": limit, "offset": offset}
    query |= {name: "true" for name, is_on in {"mine": mine, "favourites": favourites}.items() if is_on}
    query |= {name: value for name, value in {"tag": tag, "sort": sort}.items() if value}
    return HubRequest("GET", AGENTS, query)


def list_questions(*, agent: str, search: str, state: str, limit: int, before: str) -> HubRequest:
    """The request of a page of the caller's questions: a `QuestionPage`."""
    wanted = {"agent": agent.removeprefix("@"), "q": search, "state": state, "before": before}
    query = {"limit": limit} | {name: value for name, value in wanted.items() if value}
    return HubRequest("GET", QUESTIONS, query)


def read_ask(ask_id: str) -> HubRequest:
    """The request of one ask: an `AskedOnce`.

    Raises:
        BadArguments: the text is no id.
    """
    return HubRequest("GET", f"{QUESTIONS}/{check_id(ask_id)}")


def report_problem(ask_id: str, text: str) -> HubRequest:
    """The request that reports a problem with an ask to the agent's owner.

    Raises:
        BadArguments: the text is no id.
    """
    return HubRequest("POST", f"{QUESTIONS}/{check_id(ask_id)}/problem", body={"text": text})


def check_id(text: str) -> str:
    """The id of a task or an ask.

    Raises:
        BadArguments: the text is none.
    """
    if not text or len(text) > MAX_ID_CHARS or not all(c.isascii() and (c.isalnum() or c in "-_.") for c in text):
        raise BadArguments(f"{text!r} is no id: want one that `clawbridge tasks` lists")
    return text


def list_threads(search: str, *, agent: str, state: str, limit: int, offset: int) -> HubRequest:
    """The request of a page of the caller's threads: a `ThreadPage`."""
    wanted = {"q": search, "agent": agent.removeprefix("@")}
    query = {"state": state, "limit": limit, "offset": offset}
    return HubRequest("GET", THREADS, query | {name: value for name, value in wanted.items() if value})


def thread_path(thread_id: str) -> str:
    """The path of a thread.

    Raises:
        BadArguments: the text is no id of a thread.
    """
    if not thread_id or len(thread_id) > MAX_ID_CHARS or not all(c.isalnum() or c == "-" for c in thread_id):
        raise BadArguments(f"{thread_id!r} is no id of a thread: want one that `clawbridge threads` lists")
    return f"{THREADS}/{thread_id}"


def read_text(request: HubRequest) -> HubCall[str]:
    """The text that answers one request."""
    response = yield request
    if not 200 <= response.status < 300:
        raise refusal(response)
    return response.content.decode("utf-8", "replace")


def upload_file(name: str, content: bytes, media_type: str) -> HubCall[Part]:
    """A file that the hub keeps, as a part of a message."""
    kept = (yield HubRequest("POST", FILES, file=(name, content, media_type))).read(UploadedFile)
    return Part(url=kept.url, filename=kept.filename, media_type=kept.mime)


def read_answer(request: HubRequest, wanted: type[Value]) -> HubCall[Value]:
    """The answer to one request."""
    return (yield request).read(wanted)


def find_agent(task_id: str) -> HubCall[str]:
    """The handle of the agent of a task that the caller asked.

    Raises:
        BadArguments: the text is no id of a task.
        TaskNotFound: no question of the caller has that task.
    """
    if not task_id or len(task_id) > MAX_ID_CHARS or not all(c.isalnum() or c in "-_." for c in task_id):
        raise BadArguments(f"{task_id!r} is no id of a task: want one that `clawbridge tasks` lists")
    before: str | None = ""
    while before is not None:
        query = {"task": task_id, "limit": 1} | ({"before": before} if before else {})
        page = (yield HubRequest("GET", QUESTIONS, query)).read(QuestionPage)
        for one in page.items:
            if one.task_id == task_id and one.agent:
                return one.agent
        before = page.next
    raise TaskNotFound(f"no question of yours has the task {task_id}; `clawbridge tasks` lists them", "", 404)


def read_task(task_id: str, agent: str = "") -> HubCall[Task]:
    """The task as the hub has it, without its history. `agent`: looked up where it is not given.

    Raises:
        TaskNotFound: the hub no longer keeps it, or the caller may not ask its agent any more.
    """
    path = agent_path(agent or (yield from find_agent(task_id)))
    response = yield HubRequest("GET", f"{path}/tasks/{task_id}", {"historyLength": 0})
    return read_kept(response, task_id)


def cancel_task(task_id: str, agent: str = "") -> HubCall[Task]:
    """Cancel a task; the task after that.

    Raises:
        Refused: the task has ended.
    """
    path = agent_path(agent or (yield from find_agent(task_id)))
    response = yield HubRequest("POST", f"{path}/tasks/{task_id}:cancel", body={})
    return read_kept(response, task_id)


def rate_task(task_id: str, rating: str, note: str, agent: str = "") -> HubCall[Task]:
    """Rate the answer of a task: `up` or `down`, or `none` to take the rating away; the task.

    Raises:
        TaskNotFound: the hub no longer keeps the task, or the caller may not ask its agent any more.
        Refused: the task has no answer.
    """
    path = agent_path(agent or (yield from find_agent(task_id)))
    response = yield HubRequest("POST", f"{path}/tasks/{task_id}:rate", body={"rating": rating, "note": note})
    return read_kept(response, task_id)


def read_kept(response: HubResponse, task_id: str) -> Task:
    """The task of a response.

    Raises:
        TaskNotFound: the hub no longer keeps it.
    """
    try:
        return response.read(Task)
    except TaskNotFound as refused:
        text = f"the hub no longer keeps {task_id}: ask again"
        raise TaskNotFound(text, refused.reason, refused.status) from None


def agent_path(handle: str) -> str:
    """The path at which an agent is asked, from `@owner/slug` or `owner/slug`.

    Raises:
        BadArguments: the text is no handle.
    """
    owner, slash, slug = handle.removeprefix("@").partition("/")
    if not (owner and slash and slug) or not all(c.isascii() and (c.isalnum() or c in "-_") for c in owner + slug):
        raise BadArguments(f"{handle!r} is no handle: want @owner/slug, such as @demo/echo")
    return f"/api/a2a/v1/agents/{owner}/{slug}"


def checked_hub(url: str) -> str:
    """The address of a hub in one spelling.

    Raises:
        BadArguments: the text is no address of a hub.
    """
    try:
        return hub_address(url)
    except ValueError as problem:
        raise BadArguments(str(problem)) from None


def is_token(text: str) -> bool:
    """True if a text has only characters that tokens have."""
    return text.isascii() and text.isprintable() and " " not in text


def is_open_to_listeners(hub: str) -> bool:
    """True if a token travels to this hub unencrypted, over a network."""
    parts = urlsplit(hub)
    return parts.scheme == "http" and parts.hostname not in LOOPBACK
