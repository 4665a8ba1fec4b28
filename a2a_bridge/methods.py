"""The one table of JSON-RPC methods: the endpoint, the reference and its test read it."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from a2a_bridge.dialects import hub
from a2a_bridge.errors import task_not_found
from a2a_bridge.exchange import Exchange, Exchanges
from a2a_bridge.tasks.record import Task
from accounts.authn import Identity
from agents.types import Target

MAX_TASK_ID_CHARS = 64

FindTask = Callable[[str, int], Awaitable[Task | None]]


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls, and which agent's address they call."""

    identity: Identity
    agent: Target


@dataclass(frozen=True, slots=True)
class Services:
    """What methods work with."""

    exchanges: Exchanges
    find_task: FindTask


@dataclass(frozen=True, slots=True)
class Method:
    """One method: its parameters, what runs it, and whether its answer is a stream of events."""

    params: type[Any]
    run: Callable[[Services, Caller, Any], Awaitable[Exchange]]
    streams: bool = False


async def send_message(services: Services, caller: Caller, params: hub.SendMessageParams) -> Exchange:
    """Ask, and answer with the finished task."""
    return await _start(services, caller, params, told_early=False)


async def stream_message(services: Services, caller: Caller, params: hub.SendMessageParams) -> Exchange:
    """Ask, and tell the task's progress as it happens."""
    return await _start(services, caller, params, told_early=True)


async def get_task(services: Services, caller: Caller, params: hub.GetTaskParams) -> Exchange:
    """A task of the caller's with this agent.

    Raises:
        RpcError: -32001, the same for absent, expired and foreign.
    """
    if len(params.id) > MAX_TASK_ID_CHARS or not params.id.isprintable():
        raise task_not_found()
    task = await services.find_task(params.id, caller.identity.user_id)
    if task is None or task.handle != caller.agent.handle:
        raise task_not_found()
    return Exchange(task)


async def _start(
    services: Services, caller: Caller, params: hub.SendMessageParams, *, told_early: bool
) -> Exchange:
    message = params.message
    question = hub.texts(message)
    return await services.exchanges.start(
        caller.identity, caller.agent, message.message_id, question, told_early=told_early
    )


METHODS: dict[str, Method] = {
    "SendMessage": Method(hub.SendMessageParams, send_message),
    "SendStreamingMessage": Method(hub.SendMessageParams, stream_message, streams=True),
    "GetTask": Method(hub.GetTaskParams, get_task),
}
