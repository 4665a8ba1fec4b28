"""The things that a caller may ask and read: agents as a list, as tools and as prompts; artifacts of tasks as
resources.
"""

import hashlib
import re
from typing import NamedTuple
from urllib.parse import quote, unquote

from django.db.models import Q, QuerySet

from a2a_bridge.wire.errors import AGENT_NOT_FOUND, INSUFFICIENT_SCOPE, TASK_NOT_FOUND
from a2a_bridge.wire.requests import GetTask
from a2a_bridge.wire.task import Artifact, Task
from accounts.authn import TokenScope
from agents.models import Agent, Turn
from agents.pages.availability import load_availability
from agents.pages.directory import find
from kit.async_db import db_call
from mcp_server.service.calls import ToolCaller, ToolCalls
from mcp_server.wire.tools import MAX_HANDLE_CHARS, AgentList, ListAgents, ListedAgent

MAX_LISTED = 50
AGENTS_PER_PAGE = 50  # in lists of tools and of prompts; an agent has up to 6 prompts
MAX_SHOWN_CHARS = 300  # of the summary that an owner wrote; the client's model reads it
TOOL_PREFIX = "ask_"
MAX_TOOL_NAME_CHARS = 64  # clients refuse longer names
SUFFIX_CHARS = 8
URI_TEMPLATE = "clawbridge://tasks/{task}/artifacts/{artifact}"
LATEST_QUESTIONS = 200
TASKS_PER_PAGE = 20
ABSENT = {AGENT_NOT_FOUND, INSUFFICIENT_SCOPE, TASK_NOT_FOUND}  # the caller gets one answer for all of these

_URI = re.compile(r"clawbridge://tasks/([^/?#]+)/artifacts/([^/?#]+)")


class AgentTool(NamedTuple):
    """An agent as a tool of its own."""

    name: str
    title: str
    description: str


class AgentPrompt(NamedTuple):
    """A question to an agent that its owner suggests."""

    name: str
    handle: str
    question: str


def find_agents(caller: ToolCaller, wanted: ListAgents) -> AgentList:
    """The agents that the caller may ask, with their state. Reads the database."""
    found = find(caller.identity.user_id, wanted.query, online_only=wanted.online_only)
    if caller.identity.only_agent:
        found = found.filter(handle_key=caller.identity.only_agent)
    agents = list(found[: MAX_LISTED + 1])
    shown = agents[:MAX_LISTED]
    standings = load_availability(shown, caller.identity.user_id)
    listed = [
        ListedAgent(agent.handle, str(standings[agent.pk].state), agent.name, _summary(agent)) for agent in shown
    ]
    return AgentList(listed, has_more=len(agents) > MAX_LISTED)


def load_agent_tools(caller: ToolCaller, cursor: str) -> tuple[list[AgentTool], str]:
    """A page of the agents that the caller may ask, as tools; and the cursor of the next page (`_load_page`)."""
    agents, next_cursor = _load_page(_listed_for(caller), cursor)
    tools = [
        AgentTool(
            name_tool(agent.handle),
            agent.name,
            f"Ask the agent @{agent.handle}. Its owner says of it: {describe_agent(agent.name, _summary(agent))}",
        )
        for agent in agents
    ]
    return tools, next_cursor


def load_prompts(caller: ToolCaller, cursor: str) -> tuple[list[AgentPrompt], str]:
    """The suggested questions to a page of agents; and the cursor of the next page (`_load_page`)."""
    agents, next_cursor = _load_page(_listed_for(caller).exclude(suggested_prompts=[]), cursor)
    return [prompt for agent in agents for prompt in _prompts_of(agent)], next_cursor


def _load_page(found: QuerySet[Agent], cursor: str) -> tuple[list[Agent], str]:
    """A page of agents by handle, behind the one of `cursor`; and the cursor of the next page, empty at the end.

    The function reads the database.
    """
    agents = list(found.filter(handle_key__gt=cursor)[: AGENTS_PER_PAGE + 1])
    shown = agents[:AGENTS_PER_PAGE]
    return shown, shown[-1].handle_key if len(agents) > len(shown) else ""


def find_prompt(caller: ToolCaller, name: str) -> AgentPrompt | None:
    """The suggested question of that name; None where the caller has none. Reads the database."""
    handle = find_handle(caller, name.rpartition("_")[0])
    agent = _listed_for(caller).filter(handle=handle).first() if handle is not None else None
    return next((one for one in _prompts_of(agent) if one.name == name), None) if agent is not None else None


def find_handles(caller: ToolCaller, prefix: str, limit: int) -> list[str]:
    """The handles, up to `limit`, that begin with `prefix`, or whose slug does. Reads the database."""
    wanted = prefix.removeprefix("@").lower()
    if len(wanted) > MAX_HANDLE_CHARS or not wanted.isprintable():
        return []
    found = _listed_for(caller).filter(Q(handle_key__startswith=wanted) | Q(handle_key__contains=f"/{wanted}"))
    return list(found.values_list("handle", flat=True)[:limit])


def _listed_for(caller: ToolCaller) -> QuerySet[Agent]:
    """The agents that the caller may ask, by handle; none for a token that may not list agents."""
    found = Agent.objects.askable_by(caller.identity.user_id).order_by("handle_key")
    if not caller.identity.may_list_agents:
        return found.none()
    only_agent = caller.identity.only_agent
    return found.filter(handle_key=only_agent) if only_agent else found


def _prompts_of(agent: Agent) -> list[AgentPrompt]:
    """The prompts of an agent, named by the agent's tool and their number."""
    name = name_tool(agent.handle)
    return [
        AgentPrompt(f"{name}_{number}", agent.handle, question)
        for number, question in enumerate(agent.suggested_prompts, 1)
        if isinstance(question, str) and question.strip()
    ]


def find_handle(caller: ToolCaller, tool: str) -> str | None:
    """The handle of the agent that a tool asks; None where the caller has no such tool. Reads the database."""
    named = tool.removeprefix(TOOL_PREFIX).lower()
    if not tool.startswith(TOOL_PREFIX) or len(tool) > MAX_TOOL_NAME_CHARS or not named.isprintable():
        return None
    # The owner's part of a handle may contain underscores.
    places = [place for place, letter in enumerate(named) if letter == "_"]
    wanted = Q(handle_key__in=[f"{named[:place]}/{named[place + 1 :]}" for place in places])
    if len(tool) == MAX_TOOL_NAME_CHARS:  # `name_tool` may have cut the name
        kept = named[: -SUFFIX_CHARS - 1]
        for place in places:
            wanted |= Q(handle_key__startswith=f"{kept[:place]}/{kept[place + 1 :]}")
    handles = _listed_for(caller).filter(wanted).values_list("handle", flat=True)
    return next((handle for handle in handles if name_tool(handle) == tool), None)


def name_tool(handle: str) -> str:
    """The name of the tool that asks one agent. A long one is cut, and ends with a hash of the handle."""
    name = TOOL_PREFIX + handle.replace("/", "_", 1)
    if len(name) <= MAX_TOOL_NAME_CHARS:
        return name
    suffix = hashlib.blake2b(handle.lower().encode(), digest_size=SUFFIX_CHARS // 2).hexdigest()
    return f"{name[: MAX_TOOL_NAME_CHARS - SUFFIX_CHARS - 1]}_{suffix}"


def describe_agent(name: str, summary: str) -> str:
    """The name and the summary of an agent, on one line."""
    return f"{name}. {summary}" if summary else name


def _summary(agent: Agent) -> str:
    said = " ".join((agent.tagline or agent.description or "").split())
    return said[:MAX_SHOWN_CHARS] + ("…" if len(said) > MAX_SHOWN_CHARS else "")


def address_artifact(task: Task, artifact: Artifact) -> str:
    """The URI of an artifact."""
    return URI_TEMPLATE.format(task=quote(task.id, safe=""), artifact=quote(artifact.id, safe=""))


async def find_artifact(calls: ToolCalls, caller: ToolCaller, uri: str) -> tuple[Task, Artifact] | None:
    """The artifact of a URI in a task of the caller's; None for an artifact that is absent, expired or
    another caller's.
    """
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

    Returns None for a token that may not ask: such a token may not read tasks.
    """
    if not caller.identity.may(TokenScope.ASK, agent=caller.identity.only_agent):
        return []
    asked = Turn.objects.asked_by(caller.identity.user_id).exclude(task_id="")
    if caller.identity.only_agent:
        asked = asked.filter(agent__handle_key=caller.identity.only_agent)
    ids = asked.order_by("-asked_at", "-pk").values_list("task_id", flat=True)[:LATEST_QUESTIONS]
    return list(dict.fromkeys(ids))
