"""Adds up the events of streams as the official Python client of A2A 0.3 does: JSON in at stdin, JSON out.

In: a list of `{"frames": [Task or event…], "task": Task}`. Out: for each the task that the frames make, and the
task that was given, both as this SDK writes them.
"""

import asyncio
import json
import sys
from typing import Any

from a2a.client.client_task_manager import ClientTaskManager
from a2a.types import Task, TaskArtifactUpdateEvent, TaskStatusUpdateEvent

KINDS = {"task": Task, "status-update": TaskStatusUpdateEvent, "artifact-update": TaskArtifactUpdateEvent}


async def added_up(frames: list[Any]) -> Task:
    manager = ClientTaskManager()
    for frame in frames:
        await manager.process(KINDS[frame["kind"]].model_validate(frame))
    return manager.get_task_or_raise()


async def main() -> None:
    seen = [(await added_up(one["frames"]), Task.model_validate(one["task"])) for one in json.load(sys.stdin)]
    written = [[json.loads(task.model_dump_json(exclude_none=True)) for task in pair] for pair in seen]
    print(json.dumps(written))


asyncio.run(main())
