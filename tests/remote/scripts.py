"""A server of the official SDK that does what its question spells out, in every way the hub can call one."""

import json
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from a2a.client import Client, ClientConfig, ClientFactory
from a2a.helpers import get_message_text, new_task
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_agent_card_routes, create_jsonrpc_routes
from a2a.server.routes.rest_routes import create_rest_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.server.tasks.task_manager import append_artifact_to_task
from a2a.types import (
    AgentCapabilities,
    AgentCard,
    AgentInterface,
    AgentSkill,
    Artifact,
    GetTaskRequest,
    Message,
    Part,
    Role,
    SendMessageRequest,
    Task,
    TaskArtifactUpdateEvent,
    TaskState,
)
from google.protobuf.json_format import MessageToDict, ParseDict
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Mount, Route

from kit.ids import unguessable
from lab.callers import TLS
from lab.processes import free_port
from tests.remote.servers import Json, card_03, serving

WITHIN_S = 30


@dataclass(frozen=True)
class Way:
    """One way to call a server."""

    version: str
    binding: str
    streams: bool

    @property
    def name(self) -> str:
        return f"{self.version}-{self.binding}-{'streams' if self.streams else 'answers'}".replace(
            "+", "-"
        ).lower()

    def card(self, url: str) -> AgentCard:
        """The card of an agent at `url` that is called in this way."""
        way = AgentInterface(url=url, protocol_binding=self.binding, protocol_version=self.version)
        return AgentCard(
            name="Scripted",
            description="Does as it is told.",
            version="1",
            supported_interfaces=[way],
            capabilities=AgentCapabilities(streaming=self.streams),
            default_input_modes=["text/plain"],
            default_output_modes=["text/plain"],
            skills=[AgentSkill(id="talk", name="Talk", description="Talks.", tags=["talk"])],
        )


KINDS = (("1.0", "JSONRPC"), ("1.0", "HTTP+JSON"), ("0.3", "JSONRPC"))
WAYS = [Way(version, binding, streams) for version, binding in KINDS for streams in (True, False)]


class Scripted(AgentExecutor):
    """Reads its question as JSON: `{"events": [TaskArtifactUpdateEvent, …], "asks": …, "words": …}`.

    `{"message": Message}`: it answers with that, without a task.
    """

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        assert context.task_id is not None
        assert context.context_id is not None
        script = json.loads(get_message_text(context.message))
        if "message" in script:
            said = {"messageId": unguessable(), "role": "ROLE_AGENT", **script["message"]}
            await event_queue.enqueue_event(ParseDict(said, Message()))
            return
        if context.current_task is None:
            begun = new_task(
                context.task_id, context.context_id, TaskState.TASK_STATE_SUBMITTED, history=[context.message]
            )
            await event_queue.enqueue_event(begun)
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        for one in script["events"]:
            named = {**one, "taskId": context.task_id, "contextId": context.context_id}
            await event_queue.enqueue_event(ParseDict(named, TaskArtifactUpdateEvent()))
        words = script.get("words")
        message = updater.new_agent_message([Part(text=words)]) if words else None
        await (updater.requires_input(message) if script.get("asks") else updater.complete(message))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        raise NotImplementedError


@asynccontextmanager
async def scripted_server() -> AsyncIterator[str]:
    """Serves `/{way}` with a card of its own for each way; its address."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    routes = [Mount(f"/{way.name}", routes=_routes(f"{url}/{way.name}/a2a", way)) for way in WAYS]
    async with serving(Starlette(routes=routes), port):
        yield url


def _routes(url: str, way: Way) -> list[BaseRoute]:
    card = way.card(url)
    handler = DefaultRequestHandler(agent_executor=Scripted(), task_store=InMemoryTaskStore(), agent_card=card)
    if way.version == "0.3":
        calls = create_jsonrpc_routes(handler, "/a2a", enable_v0_3_compat=True)
        older = json.loads(json.dumps(card_03(streams=way.streams)).replace("{url}/a2a", url))
        return [Route("/.well-known/agent-card.json", lambda request: JSONResponse(older)), *calls]
    shown = create_agent_card_routes(card)
    if way.binding == "JSONRPC":
        return [*shown, *create_jsonrpc_routes(handler, "/a2a")]
    return [*shown, *create_rest_routes(handler, path_prefix="/a2a")]


@dataclass
class Seen:
    """The view that a client of the official SDK has of a task over its turns.

    `updates`: the artifact updates of its streams. `streamed`: the artifacts by adding those up as the SDK does.
    `stored`: the task as GetTask shows it.
    """

    updates: list[Json]
    streamed: list[Json]
    stored: Task

    @property
    def artifacts(self) -> list[Json]:
        return [_shown(one) for one in self.stored.artifacts]

    @property
    def words(self) -> str:
        return "".join(part.text for part in self.stored.status.message.parts)


async def play(card: AgentCard, turns: Sequence[Json], *, token: str = "") -> Seen:
    """Ask an agent to play these turns of one task; what its caller sees."""
    async with _client(card, token) as client:
        return await _play(client, turns)


async def hear(card: AgentCard, message: Json, *, token: str = "") -> Json:
    """Ask an agent to answer with a message; what its caller sees of it, but for its ids."""
    async with _client(card, token) as client:
        script = [Part(text=json.dumps({"message": message}))]
        asked = Message(role=Role.ROLE_USER, parts=script, message_id=unguessable())
        [answer] = [one async for one in client.send_message(SendMessageRequest(message=asked))]
    assert answer.HasField("message"), answer
    said: Json = MessageToDict(answer.message)
    return {name: value for name, value in said.items() if name not in ("messageId", "contextId")}


@asynccontextmanager
async def _client(card: AgentCard, token: str) -> AsyncIterator[Client]:
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    async with httpx.AsyncClient(headers=headers, timeout=WITHIN_S, trust_env=False, verify=TLS) as http:
        config = ClientConfig(httpx_client=http, supported_protocol_bindings=["JSONRPC", "HTTP+JSON"])
        yield ClientFactory(config).create(card)


async def _play(client: Client, turns: Sequence[Json]) -> Seen:
    task = Task()
    updates: list[Json] = []
    for turn in turns:
        message = Message(
            role=Role.ROLE_USER,
            parts=[Part(text=json.dumps(turn))],
            message_id=unguessable(),
            task_id=task.id,
            context_id=task.context_id,
        )
        async for answer in client.send_message(SendMessageRequest(message=message)):
            if answer.HasField("task"):
                task.CopyFrom(answer.task)
            elif answer.HasField("artifact_update"):
                append_artifact_to_task(task, answer.artifact_update)
                updates.append(_update(answer.artifact_update))
    stored = await client.get_task(GetTaskRequest(id=task.id))
    return Seen(updates, [_shown(one) for one in task.artifacts], stored)


def _update(event: TaskArtifactUpdateEvent) -> Json:
    return {"artifact": _shown(event.artifact), "append": event.append, "lastChunk": event.last_chunk}


def _shown(artifact: Artifact) -> Json:
    shown: dict[str, Any] = MessageToDict(artifact)
    return shown
