"""Remote A2A servers on real ports: the official SDK's own, one of 0.3 by hand, and raw ones that do as told."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

import uvicorn
from a2a.helpers import get_message_text, new_task
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, Part, TaskState
from starlette.applications import Starlette

from lab.processes import free_port
from lab.waiting import eventually
from tests.listening import listening

Json = dict[str, Any]


@dataclass
class Seen:
    """The requests that reached a server."""

    contexts: list[str] = field(default_factory=list)
    tasks: list[str] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    parts: list[list[Any]] = field(default_factory=list)
    canceled: list[str] = field(default_factory=list)
    requests: list[Json] = field(default_factory=list)
    callers: list[str] = field(default_factory=list)


class Talker(AgentExecutor):
    """Does what the question says: `stream`, `note`, `ask`, `hold`, `fail`, `reject`, `file`; else it echoes."""

    def __init__(self, seen: Seen) -> None:
        self.seen = seen

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        assert context.task_id is not None
        assert context.context_id is not None
        text = get_message_text(context.message)
        self.seen.contexts.append(context.context_id)
        self.seen.tasks.append(context.task_id)
        self.seen.texts.append(text)
        self.seen.parts.append(list(context.message.parts))
        headers = context.call_context.state["headers"] if context.call_context else {}
        self.seen.callers.append(headers.get("clawbridge-caller", ""))
        if context.current_task is None:
            await event_queue.enqueue_event(
                new_task(
                    context.task_id, context.context_id, TaskState.TASK_STATE_SUBMITTED, history=[context.message]
                )
            )
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        word = text.split()[0]
        await getattr(self, f"_{word}", self._echo)(updater, text)

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        self.seen.canceled.append(context.task_id)
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()

    async def _echo(self, updater: TaskUpdater, text: str) -> None:
        await updater.add_artifact([Part(text=f"echo: {text}")], name="reply")
        await updater.complete()

    async def _stream(self, updater: TaskUpdater, text: str) -> None:
        for number in range(4):
            await updater.add_artifact(
                [Part(text=f"{number} ")], artifact_id="a", append=number > 0, last_chunk=number == 3
            )
        await updater.complete()

    async def _note(self, updater: TaskUpdater, text: str) -> None:
        await updater.update_status(TaskState.TASK_STATE_WORKING, self._words(updater, "half way"))
        await self._echo(updater, text)

    async def _ask(self, updater: TaskUpdater, text: str) -> None:
        await updater.requires_input(self._words(updater, "which one?"))

    async def _hold(self, updater: TaskUpdater, text: str) -> None:
        await asyncio.Event().wait()

    async def _fail(self, updater: TaskUpdater, text: str) -> None:
        await updater.failed(self._words(updater, "out of paper"))

    async def _reject(self, updater: TaskUpdater, text: str) -> None:
        await updater.reject(self._words(updater, "not on Sundays"))

    async def _status(self, updater: TaskUpdater, text: str) -> None:
        await updater.complete(self._words(updater, "said by the status"))

    async def _file(self, updater: TaskUpdater, text: str) -> None:
        parts = [Part(raw=b"abc", filename="a.bin", media_type="application/octet-stream")]
        await updater.add_artifact(parts, artifact_id="file", name="a file")
        await updater.complete()

    def _words(self, updater: TaskUpdater, words: str) -> Any:
        return updater.new_agent_message([Part(text=words)])


@dataclass(frozen=True)
class Remote:
    """A running server."""

    url: str
    seen: Seen

    @property
    def card_url(self) -> str:
        return f"{self.url}/.well-known/agent-card.json"


async def has_come(seen: list[str]) -> bool:
    """True if a list of `Seen` has begun: for `eventually`."""
    return bool(seen)


@asynccontextmanager
async def sdk_server(binding: str = "JSONRPC", *, streams: bool = True) -> AsyncIterator[Remote]:
    """The official SDK's server stack with a Talker behind it."""
    port, seen = free_port(), Seen()
    url = f"http://127.0.0.1:{port}"
    async with serving(sdk_app(url, seen, binding, streams=streams), port):
        yield Remote(url, seen)


def sdk_app(url: str, seen: Seen, binding: str = "JSONRPC", *, streams: bool = True) -> Any:
    """The SDK's stack as an application; its tasks outlive a server."""
    rpc = AgentInterface(url=f"{url}/a2a", protocol_binding=binding, protocol_version="1.0")
    card = AgentCard(
        name="Far talker",
        description="Lives elsewhere.",
        version="7",
        supported_interfaces=[rpc],
        capabilities=AgentCapabilities(streaming=streams),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="talk", name="Talk", description="Talks.", tags=["talk"])],
    )
    handler = DefaultRequestHandler(agent_executor=Talker(seen), task_store=InMemoryTaskStore(), agent_card=card)
    routes = create_agent_card_routes(card)
    if binding == "JSONRPC":
        routes += create_jsonrpc_routes(handler, "/a2a")
    else:
        routes += create_rest_routes(handler, path_prefix="/a2a")
    return _recording(Starlette(routes=routes), seen)


def _recording(app: Any, seen: Seen) -> Any:
    """The application, with the path and the headers of each request seen."""

    async def record(scope: Any, receive: Any, send: Any) -> None:
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        seen.requests.append({"path": scope["path"], "headers": headers})
        await app(scope, receive, send)

    return record


@asynccontextmanager
async def serving(app: Any, port: int) -> AsyncIterator[None]:
    """An ASGI application on a port of this loop."""
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_level="error", lifespan="off"))

    async def started() -> bool:
        return server.started

    running = asyncio.create_task(server.serve())
    await eventually(started, "the remote server is up", every_s=0.02)
    try:
        yield
    finally:
        server.should_exit = server.force_exit = True
        await running
        for connection in list(server.server_state.connections):  # a forced exit leaves what still answers open
            connection.transport.abort()
        await asyncio.sleep(0)  # what is aborted is closed in the next round


@dataclass(frozen=True)
class Asked:
    """One raw request."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Json:
        value: Json = json.loads(self.body)
        return value


Answer = Callable[[Asked, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def raw_server(answer: Answer, *, card: Json | None = None) -> AsyncIterator[Remote]:
    """A server of bytes: it shows a card, and lets `answer` write whatever it likes to every other request."""
    seen = Seen()

    async def handle(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, asyncio.IncompleteReadError):
            asked = await _read(reader)
            if asked.path == "/.well-known/agent-card.json":
                writer.write(as_http(json.dumps(shown).encode()))
            else:
                seen.requests.append({"path": asked.path, "headers": asked.headers})
                await answer(asked, writer)
            await writer.drain()
        writer.close()

    async with listening(handle) as port:
        url = f"http://127.0.0.1:{port}"
        shown = json.loads(json.dumps(card or card_10()).replace("{url}", url))
        yield Remote(url, seen)


async def _read(reader: asyncio.StreamReader) -> Asked:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.strip().split("\r\n")
    headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    method, path, _ = first.split(" ")
    return Asked(method, path, headers, body)


def card_10(binding: str = "JSONRPC", *, streams: bool = True) -> Json:
    """A card of 1.0; `{url}` is where its server is."""
    way = {"url": "{url}/a2a", "protocolBinding": binding, "protocolVersion": "1.0"}
    return {"name": "Raw", "version": "1", "supportedInterfaces": [way], "capabilities": {"streaming": streams}}


def card_03(*, streams: bool = True) -> Json:
    """A card of 0.3."""
    return {
        "name": "Old",
        "version": "1",
        "url": "{url}/a2a",
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": streams},
        "skills": [],
    }


def as_http(body: bytes, content_type: str = "application/json", status: str = "200 OK", more: str = "") -> bytes:
    """A whole answer."""
    head = f"HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"


def frame(asked: Asked, result: Any) -> bytes:
    """One event of a stream over JSON-RPC."""
    return b"data: " + json.dumps({"jsonrpc": "2.0", "id": asked.json["id"], "result": result}).encode() + b"\n\n"


def in_full(asked: Asked, result: Any) -> bytes:
    """The same in one answer."""
    return as_http(json.dumps({"jsonrpc": "2.0", "id": asked.json["id"], "result": result}).encode())


SAID_10 = {"message": {"role": "ROLE_AGENT", "parts": [{"text": "fine"}]}}
SAID_03 = {"kind": "message", "role": "agent", "messageId": "m", "parts": [{"kind": "text", "text": "fine"}]}


def offering(path: str, binding: str = "JSONRPC", version: str = "1.0", **more: Any) -> Json:
    """A card whose server is called at this path of its own address."""
    if version == "0.3":
        return {**card_03(streams=False), "url": path, **more}
    way = {"url": path, "protocolBinding": binding, "protocolVersion": version}
    return {**card_10(streams=False), "supportedInterfaces": [way], **more}


class Changing:
    """A server that shows `card` at /card.json and answers everything else; `paths`: where it was called."""

    def __init__(self, card: Json) -> None:
        self.card = card
        self.paths: list[str] = []

    async def answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        if asked.path == "/card.json":
            writer.write(as_http(_json_bytes(self.card)))
            return
        self.paths.append(asked.path)
        if asked.path.endswith("/message:send"):
            writer.write(as_http(_json_bytes(SAID_10)))
            return
        said = SAID_03 if asked.json["method"] == "message/send" else SAID_10
        writer.write(as_http(_json_bytes({"jsonrpc": "2.0", "id": asked.json["id"], "result": said})))


def _json_bytes(value: Any) -> bytes:
    return json.dumps(value).encode()
