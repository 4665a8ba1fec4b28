"""Visits of many callers at once: each kind of visit is a request or several, and returns how it ended."""

import asyncio
import json
import random
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping

from lab.bench.client import (
    LAST,
    TASK_ID,
    BenchCaller,
    begin_task,
    connected,
    fetch,
    message_params,
    request,
    rpc_request,
)

WITHIN_S = 30.0
STATE = re.compile(rb'"(?:TASK_STATE_)?(COMPLETED|FAILED|CANCELED|REJECTED|WORKING|SUBMITTED)"')

Visit = Callable[[int, BenchCaller, int], Awaitable[str]]
Ends = Counter[tuple[str, str]]  # by kind of visit and how it ended


async def visit(kinds: Mapping[Visit, int], port: int, caller: BenchCaller, number: int, ends: Ends) -> None:
    """Make a visit of a kind drawn by its weight, and count its end."""
    kind = random.choices(list(kinds), list(kinds.values()))[0]
    try:
        async with asyncio.timeout(WITHIN_S):
            end = await kind(port, caller, number)
    except (OSError, EOFError, TimeoutError, ValueError, asyncio.LimitOverrunError) as failure:
        end = f"{type(failure).__name__} {str(failure)[-100:]}".strip()
    ends[kind.__name__, end] += 1


async def send(port: int, caller: BenchCaller, number: int) -> str:
    """A question and its answer."""
    return await ask(port, caller, "SendMessage", question("say", number))


async def stream(port: int, caller: BenchCaller, number: int) -> str:
    """A streamed question, read to its end."""
    return await ask(port, caller, "SendStreamingMessage", question("stream", number))


async def cut(port: int, caller: BenchCaller, number: int) -> str:
    """A streamed question that is never answered; the caller disconnects after the first event."""
    async with connected(port) as connection:
        connection.writer.write(rpc_request(caller, "SendStreamingMessage", question("hold", number)))
        try:
            return state_of(await connection.reader.readuntil(b'"state"') + await connection.reader.read(200))
        finally:
            connection.abort()


async def cancel(port: int, caller: BenchCaller, number: int) -> str:
    """A task begun, followed, cancelled; the follower sees its end."""
    task_id = await begin_task(port, caller, question("hold", number))
    async with connected(port) as connection:
        try:
            await connection.begin_stream(rpc_request(caller, "SubscribeToTask", {"id": task_id}))
        except ValueError:
            return "over before it was followed"  # its agent was away
        await ask(port, caller, "CancelTask", {"id": task_id})
        return state_of(await connection.reader.readuntil(LAST))


async def look(port: int, caller: BenchCaller, number: int) -> str:
    """The caller's tasks, then one of them."""
    listed = await fetch(port, rpc_request(caller, "ListTasks", {"pageSize": 5}))
    found = TASK_ID.search(listed.body)
    return await ask(port, caller, "GetTask", {"id": found[1].decode()}) if found else "none"


async def stranger(port: int, caller: BenchCaller, number: int) -> str:
    """A question with an unknown token."""
    unknown = BenchCaller(caller.path, f"Authorization: Bearer cw_sess_{random.randbytes(16).hex()}\r\n")
    return str((await fetch(port, rpc_request(unknown, "SendMessage", question("say", number)))).status)


async def directory(port: int, caller: BenchCaller, number: int) -> str:
    """A page of the directory, which is Django's."""
    return str((await fetch(port, request("GET", "/api/v1/agents", caller.headers))).status)


async def ask(port: int, caller: BenchCaller, method: str, params: object) -> str:
    """Call a method over a connection of its own; the state that the response ends with."""
    return state_of((await fetch(port, rpc_request(caller, method, params))).body)


def question(kind: str, number: int) -> dict[str, object]:
    """The params of a question; `kind` is its first word."""
    return message_params(f"visit-{number}", [{"text": f"{kind}: how is the build? {number}"}])


def state_of(answer: bytes) -> str:
    """The last state in an answer; without one, the end of the answer."""
    found = STATE.findall(answer)
    return found[-1].decode().lower() if found else json.dumps(answer[-120:].decode(errors="replace"))
