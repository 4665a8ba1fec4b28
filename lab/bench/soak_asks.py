"""The mixed callers of the soak: each kind is one visit, over a connection of its own, that says how it ended."""

import asyncio
import json
import random
import re
from collections.abc import Awaitable, Callable

from lab.bench.relay import TASK_ID, post
from lab.bench.streams import LAST
from lab.bench.targets import Caller

WITHIN_S = 30.0
LENGTH = re.compile(rb"content-length: (\d+)")
STATE = re.compile(rb'"(?:TASK_STATE_)?(COMPLETED|FAILED|CANCELED|REJECTED|WORKING|SUBMITTED)"')

Visit = Callable[[int, Caller, int], Awaitable[str]]


async def send(port: int, caller: Caller, number: int) -> str:
    """A question and its answer."""
    return state_of(await call(port, caller, "SendMessage", _question("say", number)))


async def stream(port: int, caller: Caller, number: int) -> str:
    """A streamed question, read to its end."""
    reader, writer = await post(port, caller, "SendStreamingMessage", _question("stream", number))
    try:
        return state_of(await reader.readuntil(LAST))
    finally:
        writer.close()


async def cut(port: int, caller: Caller, number: int) -> str:
    """A streamed question that is never answered; the caller hangs up after the first event."""
    reader, writer = await post(port, caller, "SendStreamingMessage", _question("hold", number))
    try:
        return state_of(await reader.readuntil(b'"state"') + await reader.read(200))
    finally:
        writer.transport.abort()


async def cancel(port: int, caller: Caller, number: int) -> str:
    """A task begun, followed, cancelled; the follower sees its end."""
    task_id = await _begin(port, caller, number)
    reader, writer = await post(port, caller, "SubscribeToTask", {"id": task_id})
    try:
        if b"text/event-stream" not in await reader.readuntil(b"\r\n\r\n"):
            return "over before it was followed"  # its agent was away
        await call(port, caller, "CancelTask", {"id": task_id})
        return state_of(await reader.readuntil(LAST))
    finally:
        writer.close()


async def look(port: int, caller: Caller, number: int) -> str:
    """The caller's tasks, then one of them."""
    listed = await call(port, caller, "ListTasks", {"pageSize": 5})
    found = TASK_ID.search(listed)
    return state_of(await call(port, caller, "GetTask", {"id": found[1].decode()})) if found else "none"


async def stranger(port: int, caller: Caller, number: int) -> str:
    """A question with an unknown token."""
    unknown = Caller(caller.path, f"Authorization: Bearer cw_sess_{random.randbytes(16).hex()}\r\n")
    reader, writer = await post(port, unknown, "SendMessage", _question("say", number))
    try:
        return (await reader.readuntil(b"\r\n")).split()[1].decode()
    finally:
        writer.close()


async def directory(port: int, caller: Caller, number: int) -> str:
    """A page of the directory, which is Django's."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(f"GET /api/v1/agents HTTP/1.1\r\nHost: 127.0.0.1\r\n{caller.headers}\r\n".encode())
    try:
        return (await reader.readuntil(b"\r\n")).split()[1].decode()
    finally:
        writer.close()


VISITS: dict[Visit, int] = {send: 40, stream: 20, cut: 5, cancel: 10, look: 10, stranger: 3, directory: 3}


async def visit(port: int, caller: Caller, number: int) -> tuple[str, str]:
    """One visit of a kind drawn by its weight: its name and how it ended."""
    kind = random.choices(list(VISITS), list(VISITS.values()))[0]
    try:
        async with asyncio.timeout(WITHIN_S):
            return kind.__name__, await kind(port, caller, number)
    except (OSError, EOFError, TimeoutError, ValueError) as failure:
        return kind.__name__, f"{type(failure).__name__} {str(failure)[-100:]}".strip()


async def _begin(port: int, caller: Caller, number: int) -> str:
    params = _question("hold", number) | {"configuration": {"returnImmediately": True}}
    answer = await call(port, caller, "SendMessage", params)
    found = TASK_ID.search(answer)
    if not found:
        raise ValueError(answer[:300].decode())
    return found[1].decode()


async def call(port: int, caller: Caller, method: str, params: object) -> bytes:
    """The body of the response to a method called over a connection of its own."""
    reader, writer = await post(port, caller, method, params)
    try:
        head = await reader.readuntil(b"\r\n\r\n")
        length = LENGTH.search(head.lower())
        return await reader.readexactly(int(length[1]) if length else 0)
    finally:
        writer.close()


def _question(kind: str, number: int) -> dict[str, object]:
    parts = [{"text": f"{kind}: how is the build? {number}"}]
    return {"message": {"messageId": f"soak-{number}", "role": "ROLE_USER", "parts": parts}}


def state_of(answer: bytes) -> str:
    found = STATE.findall(answer)
    return found[-1].decode().lower() if found else json.dumps(answer[-120:].decode(errors="replace"))
