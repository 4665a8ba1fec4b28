"""`python -m lab.bench.rendering`: what a dialect costs for each event, as bytes on their way out."""

import os
import time
from collections.abc import Callable, Mapping
from pathlib import Path

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "hub.settings")
django.setup()

import msgspec  # noqa: E402

from a2a_bridge.wire.dialects.dialect import Dialect  # noqa: E402
from a2a_bridge.wire.requests import FollowTask  # noqa: E402
from a2a_bridge.wire.task import (  # noqa: E402
    Artifact,
    ArtifactEvent,
    Message,
    Role,
    State,
    StatusEvent,
    Task,
    TaskEvent,
    after,
)
from a2a_bridge.wire.versions import DIALECTS  # noqa: E402
from agents.transcript.pieces import Part  # noqa: E402
from lab.bench.command import Option, Options, bench  # noqa: E402
from lab.figures import BenchResult  # noqa: E402

GOAL_US = 100.0
TIMES = 2_000
AT = "2026-01-02T03:04:05.678Z"
TEXT = "what is the status of the build on the main branch, and who broke it last? " * 4


def measure(options: Options, folder: Path) -> BenchResult:
    """Render a task's events in every dialect."""
    task, events = _story()
    took = {one.name: _costs_us(one, task, events, options.times) for one in DIALECTS}
    result = BenchResult("rendering", "Processor time to render an event as JSON, microseconds", runs=[took])
    names = [*events, "snapshot"]
    rows = [[name, *(f"{each[one]:.1f}" for one in names)] for name, each in took.items()]
    result.table("By dialect", ["dialect", *names], rows)
    for name, each in took.items():
        result.goal(f"{name}: slowest event, us", "at most", GOAL_US, max(each.values()))
    return result


def _costs_us(dialect: Dialect, task: Task, events: Mapping[str, TaskEvent], times: int) -> dict[str, float]:
    render_event = dialect.follow(task)
    costs = {
        name: _us(lambda event=event: render_event(task, event, is_last=event.seq == task.seq), times)  # type: ignore[misc]
        for name, event in events.items()
    }
    return costs | {"snapshot": _us(lambda: dialect.render_opening(task, FollowTask(task_id=task.id)), times)}


def _us(render: Callable[[], object], times: int) -> float:
    began = time.process_time()
    for _ in range(times):
        msgspec.json.encode({"jsonrpc": "2.0", "id": 1, "result": render()})
    return (time.process_time() - began) / times * 1e6


def _story() -> tuple[Task, dict[str, TaskEvent]]:
    """A task with everything in it, and one event of each kind."""
    events: dict[str, TaskEvent] = {
        "note": StatusEvent(1, AT, State.WORKING, _message("m1", "reading")),
        "chunk": ArtifactEvent(2, AT, Artifact("reply-1", (Part(text=TEXT),))),
        "data": ArtifactEvent(3, AT, Artifact("facts", (Part(data={"a": list(range(50)), "b": TEXT}),), "Facts")),
        "end": StatusEvent(4, AT, State.COMPLETED),
    }
    asked = Task(
        id="task-0123456789abcdef0123456789abcdef",
        caller_id=1,
        handle="owner/slug",
        context_id="context-0123456789abcdef0123456789abcdef",
        chat_id="chat",
        home="home",
        state=State.SUBMITTED,
        updated_at=AT,
        history=(Message("m0", Role.USER, (Part(text=TEXT),)),),
    )
    return after(asked, events.values()), events


def _message(message_id: str, text: str) -> Message:
    return Message(message_id, Role.AGENT, (Part(text=text),))


if __name__ == "__main__":
    bench("rendering", measure, Option("--times", TIMES, "how often each is rendered"))
