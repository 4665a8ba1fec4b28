"""Clients of the SDKs: in Python with the handshake of 2025 and without it, as of 2026; another in TypeScript."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import mcp_types as types
import pytest
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from lab.callers import ANSWER_WITHIN_S, TLS, bearer
from mcp_server.surface.results import TASK_META
from tests.sdks.clients import Run, run_node
from tests.sdks.environments import ENVIRONMENTS, Missing

HANDSHAKE, MODERN = "legacy", "2026-07-28"
MODES = [HANDSHAKE, MODERN]


def make_http_client(token: str) -> httpx2.AsyncClient:
    """The client of HTTP that the SDK sends its requests by."""
    return httpx2.AsyncClient(headers=bearer(token), timeout=ANSWER_WITHIN_S, trust_env=False, verify=TLS)


@asynccontextmanager
async def mcp_client(
    url: str, token: str, mode: str = HANDSHAKE, *, query: str = "", **options: Any
) -> AsyncIterator[Client]:
    """A connected client of one hub process."""
    async with make_http_client(token) as http:
        transport = streamable_http_client(f"{url}/mcp{query}", http_client=http)
        async with Client(transport, mode=mode, **options) as client:
            yield client


async def run_typescript(program: str, *arguments: str) -> Run:
    """Run a program of this folder with the TypeScript SDK to its end; skip the test on a machine without node."""
    try:
        folder = await asyncio.to_thread(ENVIRONMENTS["js-mcp"].ready)
    except Missing as missing:
        pytest.skip(str(missing))
    async with run_node(folder, Path(__file__).with_name(program), [*arguments]) as run:
        return await run.end()


def text_of(result: types.CallToolResult) -> str:
    """All text of a result."""
    return "\n".join(one.text for one in result.content if isinstance(one, types.TextContent))


def task_id_of(result: types.CallToolResult) -> str:
    """The task that a result is of."""
    assert result.meta is not None
    return str(result.meta[TASK_META])
