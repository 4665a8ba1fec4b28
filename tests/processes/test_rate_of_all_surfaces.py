"""One caller has one rate of asks, whichever surfaces and processes of the hub take them, all at once."""

import asyncio
import itertools
import time
from collections.abc import Awaitable, Callable

import httpx
import pytest

from lab.agents import Echo, online
from lab.bench.client import BenchCaller
from lab.bench.hubs import AGENTS_PATH
from lab.bench.mcp import MCP_2025, MCP_2026, request_of
from lab.callers import bearer, web
from lab.faults.request_kinds import REQUEST_KINDS, LoadRequest, ask
from lab.hub_process import StartHub
from lab.hub_storage import MakeStorage
from tests.attempts import Attempts
from tests.gateway.client import GatewayClient
from tests.operators.operator import Operator

RATE = 20
_numbers = itertools.count(1)
AskOnce = Callable[[str], Awaitable[object]]


def http_asks(client: httpx.AsyncClient, handle: str, token: str) -> dict[str, AskOnce]:
    """Ways to ask over HTTP, by name."""

    def by_kind(kind: str) -> AskOnce:
        return lambda text: ask(client, kind, LoadRequest(handle, token, text, f"m-{text}"))

    def by_mcp(version: str) -> AskOnce:
        async def call(text: str) -> object:
            path, lines, body = request_of(version, BenchCaller(AGENTS_PATH + handle, ""), text)
            headers = dict(line.split(": ", 1) for line in lines.split("\r\n") if line)
            return await client.post(path, json=body, headers=headers | bearer(token))

        return call

    def post(path: str, make: Callable[[str], dict[str, object]]) -> AskOnce:
        return lambda text: client.post(path, json=make(text), headers=bearer(token))

    model = f"agent/{handle}"
    return {
        **{kind: by_kind(kind) for kind in REQUEST_KINDS},
        MCP_2025: by_mcp(MCP_2025),
        MCP_2026: by_mcp(MCP_2026),
        "chat": post(
            "/v1/chat/completions", lambda text: {"model": model, "messages": [{"role": "user", "content": text}]}
        ),
        "responses": post("/v1/responses", lambda text: {"model": model, "input": text}),
    }


def socket_asks(gateway: GatewayClient, operator: Operator, handle: str) -> dict[str, AskOnce]:
    """Ways to ask over WebSockets, by name."""

    async def route(text: str) -> object:
        return await operator.send("route", peer=handle, prompt=text, mode="ask")

    return {"gateway": lambda text: gateway.send_message(f"@{handle}", text), "/cli": route}


@pytest.mark.attack
@pytest.mark.slow
@pytest.mark.parametrize(
    "home", ["embedded", pytest.param("grown", marks=[pytest.mark.distributed, pytest.mark.deep])]
)
async def test_a_burst_over_all_surfaces_passes_no_more_than_the_rate(
    home: str, make_storage: MakeStorage, start_hub: StartHub, attempts: Attempts
) -> None:
    storage = make_storage(home)
    hub = start_hub(storage, processes=2 if storage.is_grown else 1, CALLER_RATE_PER_MINUTE=RATE)
    token, times = hub.mint("mallory", "session"), attempts.number(short=4, long=40)
    async with (
        online(hub, Echo, agent={"concurrencyCap": 20, "dailyBudgetQueries": 10_000}) as agent,
        web(hub.urls[0]) as first,
        web(hub.urls[-1]) as last,
        GatewayClient(hub.url, token) as gateway,
        Operator(hub.urls[-1], token) as operator,
    ):
        await gateway.find("auth-response")
        ways = [
            *http_asks(first, agent.handle, token).items(),
            *http_asks(last, agent.handle, token).items(),
            *socket_asks(gateway, operator, agent.handle).items(),
        ]
        asks = [once(f"{way}-{next(_numbers)}") for way, once in ways for _ in range(times)]
        began = time.monotonic()
        await asyncio.gather(*asks)
        passed, at_most = len(agent.spans), RATE * (1 + int((time.monotonic() - began) / 60))
        attempts.count(
            "asks over all surfaces at once, to pass a caller's rate", len(asks), max(0, passed - at_most)
        )
        assert RATE <= passed <= at_most


@pytest.mark.slow
async def test_each_way_of_the_burst_asks_the_agent(make_storage: MakeStorage, start_hub: StartHub) -> None:
    hub = start_hub(make_storage("embedded"))
    token = hub.mint("mallory", "session")
    async with (
        online(hub, Echo) as agent,
        web(hub.url) as client,
        GatewayClient(hub.url, token) as gateway,
        Operator(hub.url, token) as operator,
    ):
        await gateway.find("auth-response")
        ways = http_asks(client, agent.handle, token) | socket_asks(gateway, operator, agent.handle)
        for number, once in enumerate(ways.values(), 1):
            await once(f"text-{number}")
            await agent.heard("prompt", count=number)
