"""The rule of every dialect: a stream's events, added up by an official SDK, are the task that GetTask returns."""

import asyncio
import json
import random
from asyncio.subprocess import PIPE
from collections.abc import Awaitable, Callable

import pytest

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
    "raw f bytes",
    "note reading | fail no paper",
    "say half of it | note stuck | reject not my job",
    "complete",
)
FOLLOWED_UP = ("say so far | text t one | note hm | ask which?", "text t two | note again | say done")
RANDOM_SCRIPTS = 8
Made = tuple[Json, Json]


def random_script(seed: int, *, has_files: bool) -> str:
    """Some twelve steps, in an order that an agent may take."""
    some, is_open = random.Random(seed), {"a": False, "b": False, "c": False}
    steps = []
    for number in range(12):
        name = some.choice("abc")
        kinds = ["say", "note", "text", "data", *(("more", "last") * 2 if is_open[name] else ())]
        kinds += ["raw"] if has_files else []
        kind = some.choice(kinds)
        content = {"data": f'{{"n": {number}}}'}.get(kind, f"words {number}")
        is_artifact = kind in ("text", "data", "raw", "more", "last")
        if is_artifact:
            is_open[name] = kind != "last"
        steps.append(f"{kind} {name} {content}" if is_artifact else f"{kind} {content}")
    return " | ".join(steps)


def all_scripts(*, has_files: bool = True) -> list[str]:
    """0.3 shows no files: what they replace, or what text replaces them, is not told there (docs/adr/0046)."""
    return [*SCRIPTS, *(random_script(seed, has_files=has_files) for seed in range(RANDOM_SCRIPTS))]


async def streamed_by_1(hub: HubProcess, token: str) -> list[Json]:
    """Streams of 1.0, each with the task as it was after it."""
    async with online(hub, TaskPeer) as agent:
        caller = CallerOf1(hub.url, agent.handle, token)

        async def one(script: str, **members: str) -> Json:
            frames = [{event.kind: event.content} for event in await caller.stream(script, **members)]
            return {"frames": frames, "task": await caller.get(frames[0]["task"]["id"])}

        seen = [await one(script) for script in all_scripts()]
        asking = await one(FOLLOWED_UP[0])
        return [*seen, asking, await one(FOLLOWED_UP[1], taskId=asking["task"]["id"])]


async def streamed_by_03(hub: HubProcess, token: str) -> list[Json]:
    """The same of 0.3."""
    async with online(hub, TaskPeer, agent=TASK_GENERATING) as agent:
        caller = CallerOf03(hub.url, agent.handle, token)

        async def one(script: str, **members: str) -> Json:
            frames = await caller.stream(script, **members)
            return {"frames": frames, "task": await caller.get(frames[0]["id"], historyLength=100)}

        seen = [await one(script) for script in all_scripts(has_files=False)]
        asking = await one(FOLLOWED_UP[0])
        return [*seen, asking, await one(FOLLOWED_UP[1], taskId=asking["task"]["id"])]


async def added_up(environment: str, program: str, seen: list[Json]) -> list[Made]:
    """For each stream the task that the SDK makes of its events, and the task that the hub told."""
    try:
        folder = await asyncio.to_thread(ENVIRONMENTS[environment].ready)
    except Missing as missing:
        pytest.skip(str(missing))
    text = json.dumps(seen)
    if program.endswith(".py"):
        command, stdin = [str(folder / "bin" / "python"), str(PROGRAMS / program)], text
    else:  # Node finds packages from where it runs, so the program comes by stdin
        command, stdin = ["node", "--input-type=module", "-", text], (PROGRAMS / program).read_text()
    process = await asyncio.create_subprocess_exec(*command, stdin=PIPE, stdout=PIPE, stderr=PIPE, cwd=folder)
    out, complaints = await process.communicate(stdin.encode())
    assert process.returncode == 0, complaints.decode()
    return [(made, given) for made, given in json.loads(out)]


@pytest.mark.parametrize(
    ("streamed", "environment", "program"),
    [
        pytest.param(streamed_by_1, "python-1", "added_up_1.py", id="1.0-python"),
        pytest.param(streamed_by_1, "js-1", "added_up_1.mjs", id="1.0-js"),
        pytest.param(streamed_by_03, "python-0.3", "added_up_03.py", id="0.3-python"),
        pytest.param(streamed_by_03, "js-0.3", "added_up_03.mjs", id="0.3-js"),
    ],
)
async def test_the_events_of_a_stream_add_up_to_the_task(
    embedded_hub: HubProcess,
    streamed: Callable[[HubProcess, str], Awaitable[list[Json]]],
    environment: str,
    program: str,
) -> None:
    seen = await streamed(embedded_hub, embedded_hub.mint("alice", "session"))
    tasks = await added_up(environment, program, seen)
    assert len(tasks) == len(SCRIPTS) + RANDOM_SCRIPTS + 2
    for one, (made, given) in zip(seen, tasks, strict=True):
        assert made == given, one["task"]["history"][0]
