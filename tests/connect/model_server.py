"""A model server that answers as a script says, by the wires of the coding agents' own models.

The wires are Anthropic's Messages, OpenAI's Responses and Gemini's generateContent, each with server-sent events.
"""

import json
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from lab.receivers import Handler, serving_http

Json = dict[str, Any]
INPUT_TOKENS, OUTPUT_TOKENS = 1203, 80
JSON_TYPE = "application/json"


@dataclass(frozen=True)
class Say:
    text: str


@dataclass(frozen=True)
class UseTool:
    """The model asks the program to run a tool. `namespace`: that of the tool, as Codex names servers of MCP."""

    name: str
    arguments: Json
    namespace: str = ""


@dataclass(frozen=True)
class Hold:
    """The model answers nothing; the connection stays open until the program closes it."""


Step = Say | UseTool | Hold


@dataclass
class ModelServer:
    """The script of the model, and the requests that took a step of it.

    A request that offers no tools is for a title or the like: it takes no step, and is answered with "ok".
    """

    url: str
    steps: list[Step]
    requests: list[Json] = field(default_factory=list)
    is_held: threading.Event = field(default_factory=threading.Event)
    was_closed: threading.Event = field(default_factory=threading.Event)
    others: list[str] = field(default_factory=list)

    def step(self, request: Json) -> Step:
        """The next step of the script; a script that is at its end says so."""
        if not request.get("tools"):
            return Say("ok")
        self.requests.append(request)
        return self.steps.pop(0) if self.steps else Say("the script is at its end")


@contextmanager
def serving_model(*steps: Step) -> Iterator[ModelServer]:
    """A model server with that script, until the block ends."""

    class ModelHandler(Handler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])) or b"{}")
            path = self.path.partition("?")[0]
            render = next((render for end, render in STREAMS.items() if path.endswith(end)), None)
            if render is None and path.endswith(":generateContent"):
                self.answer(200, json.dumps(gemini_answer(model.step(request))).encode(), Content_Type=JSON_TYPE)
            elif render is None:
                model.others.append(self.path)
                self.answer(404, b"{}", Content_Type=JSON_TYPE)
            else:
                self.stream(render, model.step(request))

        def do_GET(self) -> None:
            model.others.append(self.path)
            self.answer(404, b"{}", Content_Type=JSON_TYPE)

        def stream(self, render: Any, step: Step) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/event-stream")
            self.send_header("Connection", "close")
            self.end_headers()
            self.close_connection = True
            if isinstance(step, Hold):
                self.wfile.flush()
                model.is_held.set()
                with suppress(ConnectionResetError):
                    assert not self.rfile.read(1)
                model.was_closed.set()
                return
            for event in render(step):
                name = f"event: {event['type']}\n" if "type" in event else ""
                self.wfile.write(f"{name}data: {json.dumps(event)}\n\n".encode())

    with serving_http(ModelHandler) as port:
        model = ModelServer(f"http://127.0.0.1:{port}", list(steps))
        yield model


def anthropic_events(step: Say | UseTool) -> Iterable[Json]:
    """`POST /v1/messages` with `stream`."""
    usage = {"input_tokens": INPUT_TOKENS, "output_tokens": 1}
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude-opus-4-6", "content": []}
    yield {"type": "message_start", "message": message | {"stop_reason": None, "usage": usage}}
    if isinstance(step, Say):
        block, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": step.text}
    else:
        block = {"type": "tool_use", "id": f"toolu_{step.name}", "name": step.name, "input": {}}
        delta = {"type": "input_json_delta", "partial_json": json.dumps(step.arguments)}
    yield {"type": "content_block_start", "index": 0, "content_block": block}
    yield {"type": "content_block_delta", "index": 0, "delta": delta}
    yield {"type": "content_block_stop", "index": 0}
    reason = "end_turn" if isinstance(step, Say) else "tool_use"
    ended = {"stop_reason": reason, "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": OUTPUT_TOKENS}}
    yield {"type": "message_stop"}


def openai_events(step: Say | UseTool) -> Iterable[Json]:
    """`POST /v1/responses` with `stream`."""
    yield {"type": "response.created", "response": {"id": "resp_1"}}
    if isinstance(step, Say):
        content = [{"type": "output_text", "text": step.text, "annotations": []}]
        item: Json = {"type": "message", "id": "msg_1", "role": "assistant", "content": content}
    else:
        item = {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": step.name}
        item |= {"arguments": json.dumps(step.arguments)}
        item |= {"namespace": step.namespace} if step.namespace else {}
    yield {"type": "response.output_item.done", "output_index": 0, "item": item}
    usage = {"input_tokens": INPUT_TOKENS, "output_tokens": OUTPUT_TOKENS}
    usage |= {"total_tokens": INPUT_TOKENS + OUTPUT_TOKENS}
    yield {"type": "response.completed", "response": {"id": "resp_1", "output": [item], "usage": usage}}


def gemini_answer(step: Step) -> Json:
    """One `GenerateContentResponse`."""
    part: Json = {"text": step.text} if isinstance(step, Say) else {}
    if isinstance(step, UseTool):
        part = {"functionCall": {"name": step.name, "args": step.arguments}}
    candidate = {"content": {"role": "model", "parts": [part]}, "finishReason": "STOP", "index": 0}
    counts = {"promptTokenCount": INPUT_TOKENS, "candidatesTokenCount": OUTPUT_TOKENS}
    return {
        "candidates": [candidate],
        "usageMetadata": counts | {"totalTokenCount": INPUT_TOKENS + OUTPUT_TOKENS},
        "modelVersion": "gemini-2.5-pro",
    }


STREAMS = {
    "/messages": anthropic_events,
    "/responses": openai_events,
    ":streamGenerateContent": lambda step: [gemini_answer(step)],
}
