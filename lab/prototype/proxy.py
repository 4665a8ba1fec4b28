"""A proxy between clients of the prototype and a gateway, which passes on one frame of a client at a time."""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from http import HTTPStatus

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from lab.prototype.record import CLOSES, OPENS, SENDS, RecordedFrame, Step

PATH = "/a2a"
SETTLE = "/settle"


class RecordingProxy:
    """Passes on a client's next frame when no frame came for `quiet_s`, so that each answer belongs to a step.

    A client connects to `/NAME/a2a?…`. `gateway`: an address without a path. `query`: put before each query.
    """

    def __init__(self, gateway: str, query: str, quiet_s: float) -> None:
        self.steps: list[Step] = []
        self._gateway = gateway
        self._query = query
        self._quiet_s = quiet_s
        self._upstream: dict[ServerConnection, ClientConnection] = {}
        self._reading: set[asyncio.Task[None]] = set()
        self._waiting: asyncio.Queue[tuple[ServerConnection, Step]] = asyncio.Queue()
        self._heard_at = 0.0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[str]:
        """Serve during the block; yields the proxy's address."""
        passing = asyncio.create_task(self._pass_steps())
        try:
            async with serve(self._take_client, "127.0.0.1", 0, process_request=self._settle) as server:
                port = server.sockets[0].getsockname()[1]
                yield f"ws://127.0.0.1:{port}"
        finally:
            passing.cancel()
            for task in self._reading:
                task.cancel()

    async def _settle(self, client: ServerConnection, request: Request) -> Response | None:
        """Answer `GET /settle` when every step is recorded."""
        if request.path != SETTLE:
            return None
        await asyncio.sleep(self._quiet_s)  # time for the clients to react to the last frame
        await self._waiting.join()
        return client.respond(HTTPStatus.NO_CONTENT, "")

    async def _take_client(self, client: ServerConnection) -> None:
        assert client.request is not None
        path, _, query = client.request.path.partition("?")
        name = path.removesuffix(PATH).strip("/")
        self._waiting.put_nowait((client, Step(name, OPENS, query)))
        with suppress(ConnectionClosed):
            async for text in client:
                assert isinstance(text, str)
                self._waiting.put_nowait((client, Step(name, SENDS, text=text)))
        self._waiting.put_nowait((client, Step(name, CLOSES)))
        await self._waiting.join()

    async def _pass_steps(self) -> None:
        while True:
            client, step = await self._waiting.get()
            self.steps.append(step)
            if step.does == OPENS:
                await self._open(client, step)
            elif step.does == SENDS:
                await self._upstream[client].send(step.text)
            else:
                await self._upstream.pop(client).close()
            self._heard_at = time.monotonic()
            while (left_s := self._heard_at + self._quiet_s - time.monotonic()) > 0:
                await asyncio.sleep(left_s)
            self._waiting.task_done()

    async def _open(self, client: ServerConnection, step: Step) -> None:
        query = "&".join(filter(None, [self._query, step.query]))
        upstream = await connect(f"{self._gateway}{PATH}?{query}", compression=None)
        self._upstream[client] = upstream
        task = asyncio.create_task(self._read(step.client, client, upstream))
        self._reading.add(task)
        task.add_done_callback(self._reading.discard)

    async def _read(self, name: str, client: ServerConnection, upstream: ClientConnection) -> None:
        with suppress(ConnectionClosed):
            async for text in upstream:
                self._heard_at = time.monotonic()
                self.steps[-1].answers.append(RecordedFrame(name, json.loads(text)))
                await client.send(text)
        await client.close()
