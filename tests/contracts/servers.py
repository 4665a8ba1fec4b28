"""Servers of uvicorn in this process, with the hub's protocol for HTTP."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn

from hub.http_protocol import HubHttpProtocol
from lab.processes import free_port
from lab.waiting import eventually


@asynccontextmanager
async def serving(
    application: Any, protocol: type[HubHttpProtocol], **options: Any
) -> AsyncIterator[uvicorn.Server]:
    """A server that serves the application until the block ends. `options`: of `uvicorn.Config`."""
    config = uvicorn.Config(
        application, port=free_port(), http=protocol, lifespan="off", log_config=None, **options
    )
    server = uvicorn.Server(config)
    task = asyncio.get_running_loop().create_task(server.serve())

    async def started() -> bool:
        return server.started

    await eventually(started, "the server listens")
    yield server
    server.should_exit = server.force_exit = True
    await task
