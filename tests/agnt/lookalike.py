"""A network that answers envelopes on a real port as a test wants."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import pytest

from clawbridge.agnt import Ask, CallFailed, Client, Endpoint, MemoryBreakers
from clawbridge.agnt.transport import HttpxTransport
from tests.remote.servers import Asked, as_http, raw_server

Json = dict[str, Any]
K1 = b"test-signing-key-0001"


@dataclass
class Clock:
    """Unix seconds, as a test sets them."""

    now_s: float = 1_775_988_123

    def __call__(self) -> float:
        return self.now_s


def respond(envelope: Json, payload: Json | None = None) -> Json:
    return envelope | {"from": envelope["to"], "to": envelope["from"], "payload": payload or {"status": "ok"}}


def fail(code: str, **more: Any) -> Callable[[Json], Json]:
    error = {"code": code, "message": f"no: {code}", **more}
    return lambda envelope: respond(envelope, {"status": "error", "error": error})


def send(status: int, response: Callable[[Json], Any] = respond, more: str = "") -> Callable[[Json], bytes]:
    """An answer with this status and JSON."""
    return lambda envelope: as_http(json.dumps(response(envelope)).encode(), status=f"{status} So", more=more)


OK = send(200)
Script = Callable[[Json], bytes]


@dataclass
class Network:
    """The asks that came, and the answers to give: each of `script` once, the last one again and again."""

    url: str = ""
    script: list[Script] = field(default_factory=lambda: [OK])
    asked: list[Asked] = field(default_factory=list)

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint(f"{self.url}/a2a/v1", key="agnt_live_test", secret=K1)

    @property
    def envelopes(self) -> list[Json]:
        return [asked.json for asked in self.asked]

    async def answer(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        self.asked.append(asked)
        script = self.script.pop(0) if len(self.script) > 1 else self.script[0]
        writer.write(script(asked.json))


@asynccontextmanager
async def network(*script: Script) -> AsyncIterator[Network]:
    """A network on a port of this loop."""
    played = Network(script=list(script) or [OK])
    async with raw_server(played.answer) as server:
        played.url = server.url
        yield played


@asynccontextmanager
async def client(clock: Clock | None = None, *, first_pause_s: float = 0.01) -> AsyncIterator[Client]:
    """A client whose pauses are short, and whose breakers have the test's clock."""
    clock = clock or Clock()
    async with HttpxTransport() as transport:
        yield Client(transport, MemoryBreakers(clock), clock=clock, first_pause_s=first_pause_s)


def search(**more: Any) -> Ask:
    return Ask(**({"sender": "my_agent_001", "intent": "booking.search", "payload": {"query": "dinner"}} | more))


async def failure(sender: Client, endpoint: Endpoint, ask: Ask | None = None, **options: Any) -> CallFailed:
    """The error of an ask, which must fail; without an ask, of a search."""
    with pytest.raises(CallFailed) as failed:
        await sender.ask(endpoint, ask or search(), **options)
    return failed.value
