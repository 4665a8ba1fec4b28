"""The reference as a whole, for the page and for /llms.txt."""

import inspect
import json
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

from msgspec import Struct

from a2a_bridge.cards.merged import merged_card
from a2a_bridge.cards.parts import Today
from a2a_bridge.dialects.dialect import STREAMS, Operation
from a2a_bridge.dialects.hub import GetTaskParams, HubDialect, SendMessageParams
from a2a_bridge.reference import errors, lines
from a2a_bridge.reference.shapes import Field, fields_of, summary
from a2a_bridge.requests import List
from a2a_bridge.tasks.record import (
    Artifact,
    ArtifactEvent,
    Message,
    Role,
    State,
    StatusEvent,
    Task,
    after,
)
from agents.links.channel import frames
from agents.live import FROM_LIVE
from agents.models import Agent
from agents.pieces import Part

HANDLE = "owner/slug"
QUESTION = "what's a lifetime?"
AT = "2026-01-02T03:04:05.678Z"
HUB = HubDialect()
SUMMARIES = {
    Operation.SEND: "Ask, and answer with the finished task.",
    Operation.STREAM: "Ask, and tell the task's progress as it happens.",
    Operation.GET: "A task of the caller's with this agent.",
}


@dataclass(frozen=True, slots=True)
class Method:
    """One JSON-RPC method."""

    name: str
    summary: str
    streams: bool
    params: list[Field]
    request: str
    answer: str


@dataclass(frozen=True, slots=True)
class Shape:
    """One frame of a socket."""

    type: str
    summary: str
    fields: list[Field]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reference:
    """Everything, in the order in which it is told."""

    methods: list[Method]
    codes: list[errors.Code]
    refusals: list[errors.Refusal]
    failures: list[errors.Refusal]
    limits: list[list[str]]
    from_agent: list[Shape]
    replies: list[Shape]
    to_agent: list[Shape]
    to_operator: list[Shape]
    settings: list[list[str]]


@cache
def reference() -> Reference:
    """The reference of this hub's code; it does not change while the process lives."""
    return Reference(
        methods=[_method(name, operation) for name, operation in HUB.methods.items()],
        codes=errors.codes(),
        refusals=errors.refusals(),
        failures=errors.failures(),
        limits=lines.rows("methods.md", "Limits"),
        from_agent=_shapes(frames.FROM_AGENT.values()),
        replies=[_reply("reply", frames.Reply), _reply("reply_chunk", frames.ReplyChunk)],
        to_agent=_shapes(frames.TO_AGENT),
        to_operator=_shapes(FROM_LIVE),
        settings=lines.rows("settings.md", ""),
    )


def sample_card(public_url: str) -> str:
    """An AgentCard, as JSON."""
    agent = Agent(handle=HANDLE, name="rust expert", description="answers Rust questions", daily_budget=1000)
    return _json(merged_card(agent, Today(queries=17, online=True), public_url))


def _method(name: str, operation: Operation) -> Method:
    params: dict[str, Any] = {"id": "task-…"}
    if operation is not Operation.GET:
        message = {"messageId": "m1", "role": "ROLE_USER", "parts": [{"text": QUESTION}]}
        params = {"message": message}
    request = {"jsonrpc": "2.0", "method": name, "params": params, "id": "1"}
    shape = GetTaskParams if operation is Operation.GET else SendMessageParams
    streams = operation in STREAMS
    return Method(
        name, SUMMARIES[operation], streams, list(fields_of(shape)), _json(request), _answer(streams=streams)
    )


def summary_of(function: object) -> str:
    """The first line of what a function says of itself."""
    return (inspect.getdoc(function) or "").partition("\n")[0]


def _answer(*, streams: bool) -> str:
    asked = Task(
        id="task-…",
        caller_id=0,
        handle=HANDLE,
        context_id="m1",
        chat_id="",
        home="",
        state=State.WORKING,
        updated_at=AT,
        history=(Message("m1", Role.USER, (Part(text=QUESTION),)),),
    )
    chunk = ArtifactEvent(1, AT, Artifact("reply-1", (Part(text="how long"),)))
    whole = ArtifactEvent(2, AT, Artifact("reply-1", (Part(text="how long a reference is good"),)))
    end = StatusEvent(3, AT, State.COMPLETED)
    done = after(asked, [whole, end])
    if not streams:
        return _json({"jsonrpc": "2.0", "result": HUB.task(done, None), "id": "1"})
    told = (
        *HUB.opening(asked, List()),
        *HUB.event(asked, chunk, is_last=False),
        *HUB.event(done, end, is_last=True),
    )
    return "\n\n".join(f"data: {json.dumps(one, ensure_ascii=False)}" for one in told)


def _shapes(structs: Iterable[type[Struct]]) -> list[Shape]:
    return [_reply(str(struct.__struct_config__.tag), struct) for struct in structs]


def _reply(type_: str, struct: type[Struct]) -> Shape:
    return Shape(type_, summary(struct), list(fields_of(struct)))


def _json(value: object) -> str:
    return json.dumps(value, indent=2, ensure_ascii=False)
