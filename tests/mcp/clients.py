"""Clients of the SDK: one that speaks MCP of 2025 by a handshake, one of 2026 without."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import mcp_types as types
from mcp.client import Client
from mcp.client.streamable_http import streamable_http_client

from lab.callers import ANSWER_WITHIN_S, bearer
from mcp_server.results import TASK_META

HANDSHAKE, MODERN = "legacy", "2026-07-28"
MODES = [HANDSHAKE, MODERN]


def make_http_client(token: str) -> httpx2.AsyncClient:
    """What the SDK sends its requests by."""
    return httpx2.AsyncClient(headers=bearer(token), timeout=ANSWER_WITHIN_S, trust_env=False)


@asynccontextmanager
async def mcp_client(
    url: str, token: str, mode: str = HANDSHAKE, *, query: str = "", **options: Any
) -> AsyncIterator[Client]:
    """A connected client of one hub process."""
    async with make_http_client(token) as http:
        transport = streamable_http_client(f"{url}/mcp{query}", http_client=http)
        async with Client(transport, mode=mode, **options) as client:
            yield client


def text_of(result: types.CallToolResult) -> str:
    """All text of a result."""
    return "\n".join(one.text for one in result.content if isinstance(one, types.TextContent))


def task_id_of(result: types.CallToolResult) -> str:
    """The task that a result is of."""
    assert result.meta is not None
    return str(result.meta[TASK_META])
