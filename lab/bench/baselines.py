"""`python -m lab.bench.baselines sdk|short|bare PORT`: the servers that hubs are compared with.

`sdk`: an echo agent on the official `a2a-sdk`, which answers as the SDK's own helpers make it, by four events:
task, working, artifact, completed. With `short` instead, a plain question gets one finished task at once.
A question that begins with `hold` stays open. `bare`: an ASGI endpoint with nothing behind it, the yardstick of
`lab.bench.agnt`, which answers each envelope with one of the size of an answered ping.
"""

import asyncio
import socket
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import uvicorn
from a2a.helpers import get_message_text, new_task, new_text_artifact
from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.routes import create_jsonrpc_routes
from a2a.server.tasks import InMemoryTaskStore, TaskUpdater
from a2a.types import AgentCapabilities, AgentCard, AgentInterface, AgentSkill, TaskState
from starlette.applications import Starlette


class EchoExecutor(AgentExecutor):
    """Echoes each question; `short`: in one event where possible."""

    def __init__(self, *, short: bool) -> None:
        self._short = short

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        assert context.task_id is not None
        assert context.context_id is not None
        text = get_message_text(context.message)
        task = new_task(
            context.task_id, context.context_id, TaskState.TASK_STATE_SUBMITTED, history=[context.message]
        )
        if self._short and not text.startswith(("stream", "hold")):
            task.artifacts.append(new_text_artifact("reply", f"echo: {text}"))
            task.status.state = TaskState.TASK_STATE_COMPLETED
            task.status.timestamp.GetCurrentTime()
            await event_queue.enqueue_event(task)
            return
        await event_queue.enqueue_event(task)
        updater = TaskUpdater(event_queue, context.task_id, context.context_id)
        await updater.start_work()
        if text.startswith("hold"):
            await asyncio.Event().wait()
        await updater.add_artifact(list(new_text_artifact("reply", f"echo: {text}").parts), name="reply")
        await updater.complete()

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.task_id is not None
        assert context.context_id is not None
        await TaskUpdater(event_queue, context.task_id, context.context_id).cancel()


def sdk_application(port: int, *, short: bool) -> Starlette:
    """The SDK's own stack around the echo agent, on `/`."""
    card = AgentCard(
        name="EchoExecutor",
        description="Says what it is asked.",
        version="1",
        supported_interfaces=[
            AgentInterface(url=f"http://127.0.0.1:{port}/", protocol_binding="JSONRPC", protocol_version="1.0")
        ],
        capabilities=AgentCapabilities(streaming=True),
        default_input_modes=["text/plain"],
        default_output_modes=["text/plain"],
        skills=[AgentSkill(id="echo", name="EchoExecutor", description="Says what it is asked.", tags=["echo"])],
    )
    handler = DefaultRequestHandler(
        agent_executor=EchoExecutor(short=short), task_store=InMemoryTaskStore(), agent_card=card
    )

    return Starlette(routes=create_jsonrpc_routes(handler, "/", enable_v0_3_compat=True))


class ReadyServer(uvicorn.Server):
    """Prints a line when it serves."""

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        print(f"ready http://127.0.0.1:{self.config.port}", flush=True)


def serve(app: Any, port: int, **options: Any) -> None:
    """Serve an application with the quickest parts that uvicorn has. `options`: more of `uvicorn.Config`."""
    config = uvicorn.Config(
        app, port=port, loop="uvloop", http="httptools", access_log=False, log_level="warning", **options
    )
    ReadyServer(config).run()


HEADERS = [(b"content-type", b"application/json")]
RESULT = {"active_venues": 10_000, "tier": "enterprise", "agent_id": "bench", "network_version": "1.0"}

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode


async def bare_application(
    scope: dict[str, Any], receive: Callable[[], Awaitable[Any]], send: Callable[[Any], Awaitable[None]]
) -> None:
    """Answer one request."""
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    envelope = _decode(body) | {"payload": RESULT}
    answer = _encode(envelope)
    length = (b"content-length", str(len(answer)).encode())
    await send({"type": "http.response.start", "status": 200, "headers": [*HEADERS, length]})
    await send({"type": "http.response.body", "body": answer})


if __name__ == "__main__":
    kind, listening_port = sys.argv[1], int(sys.argv[2])
    if kind == "bare":
        serve(bare_application, listening_port, interface="asgi3", lifespan="off")
    else:
        serve(sdk_application(listening_port, short=kind == "short"), listening_port)
