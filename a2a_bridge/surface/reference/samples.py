"""Requests and answers as they go over the wire, made by the dialects themselves from one sample task."""

import json
from collections.abc import Sequence
from typing import Any

from msgspec import to_builtins

from a2a_bridge.service.tasks.pieces import end_of, events_of, reply_message
from a2a_bridge.surface.asgi import RpcWire
from a2a_bridge.surface.cards import UsageToday, extended_card, merged_card, strict_card
from a2a_bridge.wire.dialects.dialect import (
    SAMPLE_CONFIG_ID,
    SAMPLE_PUSH_TOKEN,
    SAMPLE_PUSH_URL,
    SAMPLE_QUESTION,
    SAMPLE_TASK_ID,
    STREAMS,
    Dialect,
    Method,
    Operation,
    get_renderer,
)
from a2a_bridge.wire.requests import ListTasks, PushTarget, Request, Send
from a2a_bridge.wire.task import Message, Role, State, StatusEvent, Task, TaskEvent, TaskPage, after
from agents.core.types import SettledTurn
from agents.models import Agent
from agents.models.choices import Interruption, Outcome, TurnFailure
from agents.transcript.pieces import Json, Part, StatusNote
from kit import sse
from kit.jsonrpc import RpcError

HANDLE = "owner/slug"
AT = "2026-01-02T03:04:05.678Z"
RPC_ID = "1"
PIECES = ("how long ", "a reference is good")
TARGET = PushTarget(url=SAMPLE_PUSH_URL, config_id=SAMPLE_CONFIG_ID, token=SAMPLE_PUSH_TOKEN)
ASKED = Task(
    id=SAMPLE_TASK_ID,
    caller_id=0,
    handle=HANDLE,
    context_id="m1",
    chat_id="",
    home="",
    state=State.SUBMITTED,
    updated_at=AT,
    history=(Message("m1", Role.USER, (Part(text=SAMPLE_QUESTION),)),),
)
WORKING = StatusEvent(1, AT, State.WORKING)


def request_of(method: Method) -> Json:
    """A whole request."""
    request = {"jsonrpc": "2.0", "id": RPC_ID, "method": method.name}
    return request if method.sample is None else {**request, "params": method.sample}


def answer_to(one: Dialect, method: Method, public_url: str) -> str:
    """The response: JSON to read, or a stream as it is. A dialect without the request answers with its error."""
    wire = RpcWire(one, RPC_ID)
    try:
        wanted = method.read(method.sample)
    except RpcError as refused:
        return pretty(json.loads(wire.error(refused)))
    if method.operation in STREAMS:
        return stream_of(one, wanted, method.operation)
    return pretty(json.loads(wire.result(_result(one, wanted, method.operation, public_url))))


def stream_of(one: Dialect, wanted: Request, operation: Operation) -> str:
    """A task from its beginning, or for who comes late from its first piece on; event by event, with their ids."""
    events = story()
    seen = 0 if operation is Operation.STREAM else 2
    begun, end = after(ASKED, events[:seen]), after(ASKED, events)
    wire = RpcWire(one, RPC_ID)
    frames = [(begun.seq, shown) for shown in one.render_opening(begun, wanted)]
    render_event = one.follow(begun)
    for event in events[seen:]:
        is_last = event is events[-1]
        task = end if is_last else after(ASKED, events[: event.seq])
        frames += [(event.seq, shown) for shown in render_event(task, event, is_last=is_last)]
    return "".join(
        sse.event(wire.frame(shown), one.frame_id(SAMPLE_TASK_ID, seq)).decode() for seq, shown in frames
    ).strip()


def story(settled: SettledTurn | None = None, pieces: Sequence[str | StatusNote] = PIECES) -> list[TaskEvent]:
    """The events of the sample task, as the hub would make them of an agent's pieces and their end."""
    events: list[TaskEvent] = [WORKING]
    events += events_of(after(ASKED, events), pieces, AT)
    settled = settled or SettledTurn(Outcome.COMPLETED, "", "".join(map(str, pieces)))
    return [*events, *end_of(after(ASKED, events), settled, wait_s=60, at=AT)]


def direct_of(one: Dialect) -> str:
    """A plain reply where it is no task, empty in a dialect whose replies always are."""
    method = one.method(Operation.SEND)
    wanted = method.read(method.sample)
    if one.render_message is None or not (isinstance(wanted, Send) and wanted.plain_is_direct):
        return ""
    shown = one.render_message(ASKED.context_id, reply_message(after(ASKED, story())))
    return pretty({"jsonrpc": "2.0", "id": RPC_ID, "result": to_builtins(shown)})


def status_of(one: Dialect, state: State) -> str:
    """A state as the dialect writes it."""
    ends = {
        State.COMPLETED: SettledTurn(Outcome.COMPLETED, "", "a reply"),
        State.INPUT_REQUIRED: SettledTurn(Outcome.COMPLETED, Interruption.INPUT_REQUIRED, "which one?"),
        State.AUTH_REQUIRED: SettledTurn(Outcome.COMPLETED, Interruption.AUTH_REQUIRED, "may I?"),
        State.CANCELED: SettledTurn(Outcome.FAILED, TurnFailure.CANCELED),
        State.REJECTED: SettledTurn(Outcome.FAILED, TurnFailure.REJECTED),
        State.FAILED: SettledTurn(Outcome.FAILED, TurnFailure.TIMEOUT),
    }
    events = story(ends[state]) if state in ends else [WORKING] if state is State.WORKING else []
    shown: str = to_builtins(one.render_task(after(ASKED, events), None))["status"]["state"]
    return shown


def cards(public_url: str) -> dict[str, str]:
    """The renderings of one card, as JSON."""
    agent, today = sample_agent(), UsageToday(queries=17, online=True)
    return {
        "merged": pretty(merged_card(agent, today, public_url)),
        "strict": pretty(strict_card(agent, today, public_url)),
    }


def sample_agent() -> Agent:
    """An agent that is nowhere stored."""
    return Agent(handle=HANDLE, name="rust expert", description="answers Rust questions", daily_budget=1000)


def pretty(value: Any) -> str:
    """JSON to read."""
    return json.dumps(value, indent=2, ensure_ascii=False)


def _result(one: Dialect, wanted: Request, operation: Operation, public_url: str) -> object:
    done = after(ASKED, story())
    match operation:
        case Operation.SEND:
            return one.render_answer(done, wanted)
        case Operation.CANCEL:
            canceled = story(SettledTurn(Outcome.FAILED, TurnFailure.CANCELED), [StatusNote("reading")])
            return one.render_task(after(ASKED, canceled), None)
        case Operation.LIST if isinstance(wanted, ListTasks):
            return get_renderer(one.render_page)(TaskPage((done,), 1, is_last=True), wanted, "")
        case Operation.CREATE_PUSH | Operation.GET_PUSH:
            return get_renderer(one.render_push)(SAMPLE_TASK_ID, TARGET)
        case Operation.LIST_PUSH:
            return get_renderer(one.render_push_page)(SAMPLE_TASK_ID, [TARGET], "")
        case Operation.DELETE_PUSH:
            return {}
        case Operation.SHOW_CARD:
            return extended_card(sample_agent(), UsageToday(queries=17, online=True), public_url, reply_wait_s=60)
    return one.render_task(done, None)
