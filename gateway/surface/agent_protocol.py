"""`/ap/v1/agent`: tasks, steps and artifacts of the Agent Protocol (docs/reference/gateway.md).

Plain ASGI, because a step waits for an agent.
"""

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from uuid import UUID

from django.utils.http import content_disposition_header

from accounts.authn import TokenScope
from agents.core.rest_server import RestAnswer, RestServer, json_answer
from gateway.service import protocol_tasks
from gateway.service.protocol_shapes import invalid, read_agent, read_body, read_form, read_page
from gateway.service.protocol_tasks import StepRunner
from gateway.wire.errors import FrameRefused, reply_error, request_error
from kit.asgi import HttpRequest, Send
from kit.async_db import db_call

PATH = "/ap/v1/agent"
READS = ("GET", "HEAD")
INERT = (
    (b"content-type", b"application/octet-stream"),
    (b"content-security-policy", b"sandbox; default-src 'none'"),
    (b"x-content-type-options", b"nosniff"),
)
_ID = "[^/]+"

Names = Mapping[str, UUID]
Handle = Callable[["AgentProtocol", HttpRequest, Names], Awaitable[RestAnswer]]


@dataclass(frozen=True, slots=True)
class AgentProtocol:
    """Serves `ROUTES`. Owners see their own tasks alone."""

    http: RestServer
    runner: StepRunner

    async def __call__(self, request: HttpRequest, send: Send) -> None:
        """Answer one request; nothing a client sends makes this raise."""
        await self.http.serve(request, send, self._answer(request), "gateway.http_failed", explain=request_error)

    async def _answer(self, request: HttpRequest) -> RestAnswer:
        for path, reads, creates in ROUTES:
            if found := path.fullmatch(request.path):
                handle = creates if request.method == "POST" and creates is not None else reads
                return await handle(self, request, _ids_in(found.groupdict()))
        raise protocol_tasks.absent("address")

    async def create_task(self, request: HttpRequest, names: Names) -> RestAnswer:
        """`POST /tasks`"""
        body = await request.read_checked(("POST",))
        identity = await self.http.get_caller(request, TokenScope.ASK)
        wanted = read_body(body)
        agent = read_agent(wanted.additional_input)
        try:
            await self.runner.router.find_addressee(agent, identity.user_id)
        except FrameRefused as refused:
            raise invalid(f"additional_input.agent: {refused}") from None
        return json_answer(await db_call(protocol_tasks.create_task)(identity.user_id, agent, wanted))

    async def run_step(self, request: HttpRequest, names: Names) -> RestAnswer:
        """`POST /tasks/{task_id}/steps`: waits for the agent."""
        body = await request.read_checked(("POST",))
        identity = await self.http.get_caller(request, TokenScope.ASK)
        step = await self.runner.begin(identity, names["task"], read_body(body), request.traceparent)
        done = await self.http.wait(request, identity, step)
        if isinstance(done, FrameRefused):
            raise reply_error(done)
        return json_answer(done)

    async def add_artifact(self, request: HttpRequest, names: Names) -> RestAnswer:
        """`POST /tasks/{task_id}/artifacts`: a form."""
        body = await request.read_checked(("POST",), takes_form=True)
        identity = await self.http.get_caller(request, TokenScope.ASK)
        upload = read_form(request.headers.get("content-type", ""), body)
        return json_answer(await db_call(protocol_tasks.add_artifact)(identity.user_id, names["task"], upload))

    async def download_artifact(self, request: HttpRequest, names: Names) -> RestAnswer:
        """`GET /tasks/{task_id}/artifacts/{artifact_id}`: its bytes, to be saved and never shown."""
        user_id = await self.reader(request)
        found = await db_call(protocol_tasks.get_artifact)(user_id, names["task"], names["artifact"])
        disposition = content_disposition_header(True, found.file_name) or "attachment"
        headers = (*INERT, (b"content-disposition", disposition.encode("latin-1")))
        return RestAnswer(200, bytes(found.data), headers)

    async def reader(self, request: HttpRequest) -> int:
        """The user of a request that reads."""
        await request.read_checked(READS)
        return (await self.http.get_caller(request, TokenScope.READ)).user_id


def _read(load: Callable[..., object]) -> Handle:
    """Answers with what `load` finds of a user, by the ids in the address."""

    async def answer(self: AgentProtocol, request: HttpRequest, names: Names) -> RestAnswer:
        return json_answer(await db_call(load)(await self.reader(request), *names.values()))

    return answer


def _list(load: Callable[..., object]) -> Handle:
    """As `_read`, of a list: `load` gets its page, too."""

    async def answer(self: AgentProtocol, request: HttpRequest, names: Names) -> RestAnswer:
        user_id = await self.reader(request)
        return json_answer(await db_call(load)(user_id, *names.values(), page=read_page(request)))

    return answer


def _route(
    path: str, reads: Handle, creates: Handle | None = None
) -> tuple[re.Pattern[str], Handle, Handle | None]:
    named = re.sub(r"\{(\w+)\}", rf"(?P<\1>{_ID})", PATH + path)
    return re.compile(named), reads, creates


ROUTES = (
    _route("/tasks", _list(protocol_tasks.list_tasks), AgentProtocol.create_task),
    _route("/tasks/{task}", _read(protocol_tasks.get_task)),
    _route("/tasks/{task}/steps", _list(protocol_tasks.list_steps), AgentProtocol.run_step),
    _route("/tasks/{task}/steps/{step}", _read(protocol_tasks.get_step)),
    _route("/tasks/{task}/artifacts", _list(protocol_tasks.list_artifacts), AgentProtocol.add_artifact),
    _route("/tasks/{task}/artifacts/{artifact}", AgentProtocol.download_artifact),
)


def is_agent_protocol(path: str) -> bool:
    """True if `AgentProtocol` serves a path."""
    return path.startswith(f"{PATH}/")


def _ids_in(names: Mapping[str, str]) -> Names:
    """The ids in an address.

    Raises:
        RequestRefused: 404, one of them is no id.
    """
    ids = {}
    for name, text in names.items():
        try:
            ids[name] = UUID(text)
        except ValueError:
            raise protocol_tasks.absent(name) from None
    return ids
