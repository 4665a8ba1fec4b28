"""The caller's questions as `GET /api/v1/questions` lists them, and the task of an id with its agent."""

from datetime import datetime

import msgspec

from clawbridge.hub_client import HubClient, Task, agent_path
from clawbridge.terminal import CommandFailure, ExitCode, bad_arguments

PATH = "/api/v1/questions"
STATES = (
    "queued",
    "open",
    "input_required",
    "auth_required",
    "completed",
    "rejected",
    "canceled",
    "failed",
    "denied",
)
WAITING_STATES = ("input_required", "auth_required")
MAX_ID_CHARS = 64
NO_TASK = "task not found"


class QuestionRow(msgspec.Struct, rename="camel"):
    """The columns of a question in a list."""

    asked_at: datetime
    state: str
    agent: str
    task_id: str | None
    question: str


class QuestionPage(msgspec.Struct):
    """A page of questions, newest first."""

    items: list[QuestionRow]
    next: str | None


def find_agent(client: HubClient, task_id: str) -> str:
    """The handle of the agent of a task that the caller asked.

    Raises:
        Failure: it is no id, or none of the caller's questions has it.
    """
    if not task_id or len(task_id) > MAX_ID_CHARS or not all(c.isalnum() or c in "-_." for c in task_id):
        raise bad_arguments(f"{task_id!r} is no id of a task: want one that `clawbridge tasks` lists")
    before: str | None = ""
    while before is not None:
        query = {"task": task_id, "limit": 1} | ({"before": before} if before else {})
        page = client.read(client.call("GET", PATH, query=query), QuestionPage)
        for one in page.items:
            if one.task_id == task_id and one.agent:
                return one.agent
        before = page.next
    text = f"no question of yours has the task {task_id}; `clawbridge tasks` lists them"
    raise CommandFailure(ExitCode.REFUSED, text)


def read_task(client: HubClient, handle: str, task_id: str) -> Task:
    """The task as the hub has it, without its history.

    Raises:
        Failure: the hub no longer keeps it, or the caller may not ask its agent any more.
    """
    try:
        answer = client.call("GET", f"{agent_path(handle)}/tasks/{task_id}", query={"historyLength": 0})
    except CommandFailure as refused:
        if refused.message != NO_TASK:
            raise
        raise CommandFailure(ExitCode.REFUSED, f"the hub no longer keeps {task_id}: ask again") from None
    return client.read(answer, Task)
