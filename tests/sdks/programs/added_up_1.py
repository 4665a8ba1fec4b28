"""Adds up the events of streams as the official Python SDK of A2A 1.0 does: JSON in at stdin, JSON out.

In: a list of `{"frames": [StreamResponse…], "task": Task}`. Out: for each the task that the frames make, and the
task that was given, both as this SDK writes them.
"""

import asyncio
import json
import sys
from typing import Any

from a2a.server.context import ServerCallContext
from a2a.server.tasks import InMemoryTaskStore, TaskManager
from a2a.types import a2a_pb2 as a2a
from google.protobuf.json_format import MessageToDict, ParseDict


async def added_up(frames: list[Any]) -> a2a.Task:
    manager = TaskManager(InMemoryTaskStore(), ServerCallContext(), None, None, None)
    for frame in frames:
        told = ParseDict(frame, a2a.StreamResponse())
        await manager.process(getattr(told, told.WhichOneof("payload")))
    task = await manager.get_task()
    assert task is not None
    return task


async def main() -> None:
    seen = [(await added_up(one["frames"]), ParseDict(one["task"], a2a.Task())) for one in json.load(sys.stdin)]
    print(json.dumps([[MessageToDict(made), MessageToDict(given)] for made, given in seen]))


asyncio.run(main())
