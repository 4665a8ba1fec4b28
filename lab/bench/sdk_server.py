"""`python -m lab.bench.sdk_server PORT [short]`: the yardstick, an echo agent on the official `a2a-sdk`.

It answers as the SDK's own helpers make an agent answer, by four events: task, working, artifact, completed. With
`short` a plain question gets one finished task at once. A question that begins with `hold` stays open.
"""

import asyncio
import socket
import sys
from typing import Any

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


def application(port: int, *, short: bool) -> Starlette:
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


if __name__ == "__main__":
    asked_port = int(sys.argv[1])
    serve(application(asked_port, short="short" in sys.argv[2:]), asked_port)
