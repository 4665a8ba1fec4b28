"""The rule of every dialect: a stream's events, added up by an official SDK, are the task that GetTask returns."""

import asyncio
import json
import random
from asyncio.subprocess import PIPE
from collections.abc import Sequence
from functools import cache

import msgspec
import pytest

from a2a_bridge.service.tasks.pieces import end_of, events_of
from a2a_bridge.wire.dialects.dialect import Dialect
from a2a_bridge.wire.dialects.v03 import V03
from a2a_bridge.wire.dialects.v1 import V1
from a2a_bridge.wire.requests import FollowTask
from a2a_bridge.wire.task import Message, Role, State, StatusEvent, Task, TaskEvent, after
from agents.core.types import SettledTurn
from agents.models.choices import Outcome
from agents.transcript.pieces import ArtifactPiece, Part, Piece, StatusNote
from lab.agents import TaskPeer, online
from lab.callers import Json
from lab.hub_process import HubProcess
from tests.openclaw.caller import TASK_GENERATING
from tests.openclaw.caller import Caller as CallerOf03
from tests.sdks.clients import PROGRAMS
from tests.sdks.environments import ENVIRONMENTS, Missing
from tests.v1.caller import Caller as CallerOf1

SCRIPTS = (
    "hello",
    "reply hello",
    "say a | say b | note half | say c | complete",
    'data d {"n": 1} | raw f bytes | url u https://example.com/p | text t one',
    'data d {"n": 1} | data d {"n": 2} | more d words | last d more words',
    "text t one | text s 1 | more t two | more s 2 | last t three | say and | say so on",
    "raw f bytes | more f a caption | more f , and more of it",
    'url f https://example.com/p | more f a caption | data f {"n": 1} | raw f bytes',
    "text t one | raw t bytes | more t two | say done",
    'text t one | mark t {"n": 1} | text s one | mark t {"n": 2, "m": 1} | mark s {} | say done',
    "raw f bytes",
    "note reading | fail no paper",
    "say half of it | note stuck | reject not my job",
    "complete",
)
FOLLOWED_UP = ("say so far | text t one | note hm | ask which?", "text t two | note again | say done")
RANDOM_SCRIPTS = 8
LAGGING_STREAMS = 80
Made = tuple[Json, Json]


def random_script(seed: int) -> str:
    """Some twelve steps, in an order that an agent may take."""
    some, is_open = random.Random(seed), {"a": False, "b": False, "c": False}
    steps = []
    for number in range(12):
        name = some.choice("abc")
        more = ("more", "last", "more", "last", "mark") if is_open[name] else ()
        kind = some.choice(["say", "note", "text", "data", "raw", *more])
        content = f'{{"n": {number}}}' if kind in ("data", "mark") else f"words {number}"
        is_artifact = kind in ("text", "data", "raw", "more", "last", "mark")
        if is_artifact:
            is_open[name] = kind != "last"
        steps.append(f"{kind} {name} {content}" if is_artifact else f"{kind} {content}")
    return " | ".join(steps)


def all_scripts() -> list[str]:
    return [*SCRIPTS, *(random_script(seed) for seed in range(RANDOM_SCRIPTS))]


@cache
def streams_of(version: str) -> list[Json]:
    """Filled by the first test of a version: its streams on the hub, each with the task as it was after it."""
    return []


async def streamed(hub: HubProcess, dialect: Dialect) -> list[Json]:
    """Streams of all scripts, and of a task that asks its caller something."""
    if seen := streams_of(dialect.name):
        return seen
    is_1, token = dialect is V1, hub.mint("alice", "session")
    async with online(hub, TaskPeer, agent={} if is_1 else TASK_GENERATING) as agent:

        async def one(script: str, **members: str) -> Json:
            if is_1:
                caller = CallerOf1(hub.url, agent.handle, token)
                frames = [{event.kind: event.content} for event in await caller.stream(script, **members)]
                return {"frames": frames, "task": await caller.get(frames[0]["task"]["id"])}
            older = CallerOf03(hub.url, agent.handle, token)
            frames = await older.stream(script, **members)
            return {"frames": frames, "task": await older.get(frames[0]["id"], historyLength=100)}

        seen += [await one(script) for script in all_scripts()]
        asking = await one(FOLLOWED_UP[0])
        seen += [asking, await one(FOLLOWED_UP[1], taskId=asking["task"]["id"])]
    return seen


async def added_up(environment: str, program: str, seen: list[Json]) -> list[Made]:
    """For each stream the task that the SDK makes of its events, and the task that the hub told."""
    try:
        folder = await asyncio.to_thread(ENVIRONMENTS[environment].ready)
    except Missing as missing:
        pytest.skip(str(missing))
    text = json.dumps(seen)
    if program.endswith(".py"):
        command, stdin = [str(folder / "bin" / "python"), str(PROGRAMS / program)], text
    else:  # Node finds packages from where it runs, so the program comes by stdin, and its long argument too
        command, argument = ["node", "--input-type=module", "-"], f"process.argv.push({json.dumps(text)});\n"
        stdin = argument + (PROGRAMS / program).read_text()
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=folder)
    out, complaints = await process.communicate(stdin.encode())
    assert process.returncode == 0, complaints.decode()
    return [(made, given) for made, given in json.loads(out)]


def random_pieces(some: random.Random, *, is_remote: bool) -> list[Piece]:
    """Pieces that an agent, or a remote server, may send; also parts for an artifact that was never begun."""
    contents = (
        lambda n: Part(text=f"words {n}"),
        lambda n: Part(data={"n": n}),
        lambda n: Part(data=[n]),
        lambda n: Part(raw="YQ==", media_type="image/png", filename=f"{n}.png"),
        lambda n: Part(url=f"https://example.com/{n}"),
    )
    pieces: list[Piece] = []
    for number in range(15):
        if some.random() < 0.3:
            pieces.append(some.choice((f"chunk {number}", StatusNote(f"note {number}"))))
            continue
        pieces.append(
            ArtifactPiece(
                some.choice("abc"),
                tuple(some.choice(contents)(number) for _ in range(some.randint(1, 2))),
                name=some.choice(("", f"name {number}")),
                metadata=some.choice((msgspec.UNSET, {}, {"n": number}, {some.choice("xy"): number})),
                append=some.random() < 0.6,
                last_chunk=some.random() < 0.2,
                lead="" if is_remote else None,
            )
        )
    return pieces


def random_story(some: random.Random, *, is_remote: bool) -> tuple[Task, list[TaskEvent]]:
    """A task as its caller asked it, and all that happens to it."""
    at, said = "2026-01-02T03:04:05.678Z", Message("m1", Role.USER, (Part(text="q"),))
    asked = Task(
        id="task-1",
        caller_id=1,
        handle="a/b",
        context_id="c",
        chat_id="1",
        home="",
        state=State.SUBMITTED,
        updated_at=at,
        history=(said,),
    )
    pieces = random_pieces(some, is_remote=is_remote)
    events: list[TaskEvent] = [StatusEvent(1, at, State.WORKING)]
    events += events_of(after(asked, events), pieces, at)
    text = "".join(piece for piece in pieces if isinstance(piece, str))
    settled = SettledTurn(Outcome.COMPLETED, "", text)
    return asked, [*events, *end_of(after(asked, events), settled, wait_s=60, at=at)]


def lagging_stream(dialect: Dialect, seed: int, *, is_late: bool) -> Json:
    """A stream whose events are shown any time after they happened; `is_late`: its caller joins at any moment."""
    some = random.Random(seed)
    asked, events = random_story(some, is_remote=dialect is V03 and some.random() < 0.5)
    joins_at = some.randrange(len(events)) if is_late else 0
    task = after(asked, events[:joins_at])
    frames = [*dialect.render_opening(task, FollowTask(task_id=task.id))]
    render = dialect.follow(task)
    ended = after(asked, events)
    seen = joins_at
    while seen < len(events):
        known = some.randint(seen + 1, len(events))
        task = after(asked, events[:known])
        for event in events[seen:known]:
            frames += render(task, event, is_last=task == ended and event is events[-1])
        seen = known
    return {"frames": msgspec.to_builtins(frames), "task": msgspec.to_builtins(dialect.render_task(ended, None))}


SDKS: Sequence[tuple[Dialect, str, str]] = (
    (V1, "python-1", "added_up_1.py"),
    (V1, "js-1", "added_up_1.mjs"),
    (V03, "python-0.3", "added_up_03.py"),
    (V03, "js-0.3", "added_up_03.mjs"),
)


@pytest.mark.parametrize(("dialect", "environment", "program"), SDKS, ids=[one[1] for one in SDKS])
async def test_the_events_of_a_stream_add_up_to_the_task(
    embedded_hub: HubProcess, dialect: Dialect, environment: str, program: str
) -> None:
    """The streams are those of a hub, and streams made here, whose caller joins late and lags."""
    is_late = environment != "js-1"  # that SDK drops from the history what the state of its first task says
    seen = await streamed(embedded_hub, dialect)
    seen = [*seen, *(lagging_stream(dialect, seed, is_late=is_late) for seed in range(LAGGING_STREAMS))]
    tasks = await added_up(environment, program, seen)
    assert len(tasks) == len(SCRIPTS) + RANDOM_SCRIPTS + 2 + LAGGING_STREAMS
    for number, (made, given) in enumerate(tasks):
        assert made == given, (number, seen[number]["task"])
