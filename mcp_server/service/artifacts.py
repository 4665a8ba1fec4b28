"""The artifacts of a caller's tasks as resources of MCP: their addresses, and in which tasks they are."""

import re
from urllib.parse import quote, unquote

from a2a_bridge.wire.errors import AGENT_NOT_FOUND, INSUFFICIENT_SCOPE, TASK_NOT_FOUND
from a2a_bridge.wire.requests import GetTask
from a2a_bridge.wire.task import Artifact, Task
from accounts.authn import TokenScope
from agents.models import Turn
from kit.async_db import db_call
from mcp_server.service.calls import ToolCaller, ToolCalls

URI_TEMPLATE = "clawbridge://tasks/{task}/artifacts/{artifact}"
LATEST_QUESTIONS = 200
TASKS_PER_PAGE = 20
ABSENT = {AGENT_NOT_FOUND, INSUFFICIENT_SCOPE, TASK_NOT_FOUND}  # for a caller these look the same

_URI = re.compile(r"clawbridge://tasks/([^/?#]+)/artifacts/([^/?#]+)")


def address_artifact(task: Task, artifact: Artifact) -> str:
    """The URI of an artifact."""
    return URI_TEMPLATE.format(task=quote(task.id, safe=""), artifact=quote(artifact.id, safe=""))


async def find_artifact(calls: ToolCalls, caller: ToolCaller, uri: str) -> tuple[Task, Artifact] | None:
    """The artifact of a URI in a task of the caller's; None for what is absent, expired or another caller's."""
    named = _URI.fullmatch(uri)
    task = await find_task(calls, caller, unquote(named[1])) if named else None
    artifact = task.artifact(unquote(named[2])) if task is not None and named else None
    return (task, artifact) if task is not None and artifact is not None else None


async def find_task(calls: ToolCalls, caller: ToolCaller, task_id: str) -> Task | None:
    """A task of the caller's, as get_task finds it.

    Raises:
        RpcError: the hub cannot tell.
    """
    result = await calls.run_of_task(caller, task_id, GetTask(task_id=task_id))
    if result.error is not None and result.error.code not in ABSENT:
        raise result.error
    return result.task if result.error is None else None


async def load_latest_tasks(calls: ToolCalls, caller: ToolCaller, cursor: str) -> tuple[list[Task], str]:
    """The kept tasks of the caller's latest questions, newest first, after that of `cursor`; and the next cursor.

    Raises:
        RpcError: the hub cannot tell.
    """
    ids = await db_call(find_latest_task_ids)(caller)
    begin = ids.index(cursor) + 1 if cursor in ids else len(ids) if cursor else 0
    shown = ids[begin : begin + TASKS_PER_PAGE]
    tasks = [task for one in shown if (task := await find_task(calls, caller, one)) is not None]
    return tasks, shown[-1] if len(ids) > begin + TASKS_PER_PAGE else ""


def find_latest_task_ids(caller: ToolCaller) -> list[str]:
    """The tasks of the caller's latest questions, newest first; some may have expired. Reads the database.

    None for a token that may not ask: it may not read tasks.
    """
    if not caller.identity.may(TokenScope.ASK, agent=caller.identity.only_agent):
        return []
    asked = Turn.objects.asked_by(caller.identity.user_id).exclude(task_id="")
    if caller.identity.only_agent:
        asked = asked.filter(agent__handle_key=caller.identity.only_agent)
    ids = asked.order_by("-asked_at", "-pk").values_list("task_id", flat=True)[:LATEST_QUESTIONS]
    return list(dict.fromkeys(ids))
