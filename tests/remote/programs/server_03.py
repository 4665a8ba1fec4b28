"""A server of the official SDK 0.3 for Python that does what its question spells out: `server_03.py PORT`.

Run by the Python of the environment `python-0.3`, which has no web framework: the requests are read by hand, what
answers them is the SDK's own handler, queue and store. Prints a line when it listens.

A question is JSON, `{"steps": [...]}`. A step is an event of A2A 0.3 without the ids of its task; or
`{"message": Message}`, an answer without a task.
"""

import asyncio
import json
import sys
import uuid
from typing import Any

from a2a.server.agent_execution import AgentExecutor, RequestContext
from a2a.server.context import ServerCallContext
from a2a.server.events import EventQueue
from a2a.server.request_handlers import DefaultRequestHandler
from a2a.server.request_handlers.jsonrpc_handler import JSONRPCHandler
from a2a.server.tasks import InMemoryTaskStore
from a2a.types import (
    AgentCard,
    CancelTaskRequest,
    GetTaskRequest,
    Message,
    SendMessageRequest,
    SendStreamingMessageRequest,
    TaskArtifactUpdateEvent,
    TaskResubscriptionRequest,
    TaskStatusUpdateEvent,
)
from a2a.utils import new_task
from pydantic import BaseModel

Json = dict[str, Any]
KINDS = {"status": TaskStatusUpdateEvent, "artifact": TaskArtifactUpdateEvent}
SSE_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
CALLS = {
    "message/send": (SendMessageRequest, "on_message_send"),
    "tasks/get": (GetTaskRequest, "on_get_task"),
    "tasks/cancel": (CancelTaskRequest, "on_cancel_task"),
}
STREAMS = {
    "message/stream": (SendStreamingMessageRequest, "on_message_send_stream"),
    "tasks/resubscribe": (TaskResubscriptionRequest, "on_resubscribe_to_task"),
}


class Scripted(AgentExecutor):
    """Plays the steps of a question."""

    async def execute(self, context: RequestContext, event_queue: EventQueue) -> None:
        assert context.message is not None
        steps = json.loads(context.get_user_input())["steps"]
        is_told = any("message" in step for step in steps)
        if context.current_task is None and not is_told:
            await event_queue.enqueue_event(new_task(context.message))
        for step in steps:
            await event_queue.enqueue_event(self._event(context, step))

    async def cancel(self, context: RequestContext, event_queue: EventQueue) -> None:
        await event_queue.enqueue_event(self._event(context, {"status": {"state": "canceled"}, "final": True}))

    def _event(self, context: RequestContext, step: Json) -> Any:
        said = step.get("message") or step.get("status", {}).get("message")
        if said:
            said |= {"messageId": str(uuid.uuid4()), "role": "agent"}
        if "message" in step:
            return Message.model_validate(said)
        [kind] = step.keys() & KINDS
        named = {"taskId": context.task_id, "contextId": context.context_id, **step}
        return KINDS[kind].model_validate(named)


def card_of(url: str, *, streams: bool) -> Json:
    """The card of the server that streams, or not."""
    return {
        "name": "Scripted",
        "description": "Does as it is told.",
        "version": "1",
        "url": url,
        "protocolVersion": "0.3.0",
        "preferredTransport": "JSONRPC",
        "capabilities": {"streaming": streams},
        "defaultInputModes": ["text/plain"],
        "defaultOutputModes": ["text/plain"],
        "skills": [{"id": "talk", "name": "Talk", "description": "Talks.", "tags": ["talk"]}],
    }


class Server:
    """Serves `/streams` and `/answers`, each with a card below it."""

    def __init__(self, url: str) -> None:
        self.cards = {name: card_of(f"{url}/{name}", streams=name == "streams") for name in ("streams", "answers")}
        handler = DefaultRequestHandler(agent_executor=Scripted(), task_store=InMemoryTaskStore())
        self.handlers = {
            name: JSONRPCHandler(AgentCard.model_validate(card), handler) for name, card in self.cards.items()
        }

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """One request of a connection."""
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
            first, *lines = head.strip().split("\r\n")
            lengths = [line.partition(":")[2] for line in lines if line.lower().startswith("content-length:")]
            body = await reader.readexactly(int(lengths[0])) if lengths else b""
            name = first.split(" ")[1].split("/")[1]
            if body:
                await self._call(self.handlers[name], json.loads(body), writer)
            else:
                writer.write(as_http(json.dumps(self.cards[name])))
            await writer.drain()
        except (OSError, asyncio.IncompleteReadError):
            pass  # the caller left
        writer.close()

    async def _call(self, handler: JSONRPCHandler, call: Json, writer: asyncio.StreamWriter) -> None:
        context = ServerCallContext()
        if call["method"] in STREAMS:
            kind, method = STREAMS[call["method"]]
            writer.write(SSE_HEAD)
            async for answer in getattr(handler, method)(kind.model_validate(call), context):
                writer.write(b"data: " + as_json(answer).encode() + b"\n\n")
                await writer.drain()
            return
        kind, method = CALLS[call["method"]]
        writer.write(as_http(as_json(await getattr(handler, method)(kind.model_validate(call), context))))


def as_json(answer: BaseModel) -> str:
    """As the SDK's own applications write it."""
    return answer.model_dump_json(by_alias=True, exclude_none=True)


def as_http(text: str) -> bytes:
    """A whole answer."""
    body = text.encode()
    head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n"
    return head.encode() + b"Connection: close\r\n\r\n" + body


async def main() -> None:
    port = int(sys.argv[1])
    server = await asyncio.start_server(Server(f"http://127.0.0.1:{port}").serve, "127.0.0.1", port)
    sys.stdout.write("serving\n")
    sys.stdout.flush()
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
