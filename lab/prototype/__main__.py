"""`python -m lab.prototype CHECKOUT`: runs the prototype's own client, unmodified, and compares its frames.

CHECKOUT is a checkout of the repository with `agents/lib/agent-client.js` and `gateway/openclaw-gateway.js`, and
with the packages that they need (docs/howto/test.md). With `--record` the client runs against its own gateway
first; this writes the record that `tests/gateway/test_prototype_clients.py` replays. The client then runs
against a hub, and each difference is printed.
"""

import argparse
import asyncio
import json
import os
import signal
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from http import HTTPStatus
from pathlib import Path

from websockets.asyncio.client import ClientConnection, connect
from websockets.asyncio.server import ServerConnection, serve
from websockets.exceptions import ConnectionClosed
from websockets.http11 import Request, Response

from lab import ROOT
from lab.hub_process import HubProcess
from lab.hub_storage import storages
from lab.processes import Program, free_port, printed, run
from lab.prototype.record import (
    CLOSES,
    OPENS,
    RECORD,
    SENDS,
    Normaliser,
    RecordedFrame,
    Step,
    find_differences,
    read_steps,
    write_steps,
)
from lab.servers import Redis

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


SCENARIO = Path(__file__).parent / "scenario.cjs"
QUIET_S = 0.3
QUIET_ON_HUB_S = 0.7
REPOSITORY = "https://github.com/Heretek-AI/heretek-openclaw-core"


def main() -> int:
    """Record, then compare; returns 1 if there is an unintended difference."""
    options = _options()
    checkout: Path = options.checkout
    with tempfile.TemporaryDirectory(prefix="prototype-") as name:
        folder = Path(name)
        if options.record:
            with _own_gateway(checkout, folder) as url:
                steps = asyncio.run(_run_client(checkout, url, "", QUIET_S))
            commit = run(["git", "-C", str(checkout), "rev-parse", "HEAD"], os.environ).strip()
            write_steps(steps, f"{REPOSITORY}/tree/{commit}")
        with (
            storages(folder, is_distributed=False) as new_storage,
            HubProcess.start(new_storage(), GATEWAY_PROTOTYPE=1) as hub,
        ):
            query = f"token={hub.mint('prototype', 'channel')}"
            shown = asyncio.run(_run_client(checkout, hub.url.replace("http", "ws", 1), query, QUIET_ON_HUB_S))
    differences = find_differences(read_steps(), shown)
    for one in differences:
        print(f"{one.text}{f' ({one.accepted.why})' if one.accepted else ''}")
    return int(any(one.accepted is None for one in differences))


@contextmanager
def _own_gateway(checkout: Path, folder: Path) -> Iterator[str]:
    """Run the gateway of the checkout with a Redis of its own; yields the gateway's address."""
    port, redis = free_port(), Redis(folder)
    env = {"PATH": os.environ["PATH"], "REDIS_URL": redis.url(), "GATEWAY_PORT": str(port)}
    gateway = Program(
        ["node", (checkout / "gateway" / "openclaw-gateway.js").resolve()],
        folder / "gateway.log",
        env=env | {"GATEWAY_HOST": "127.0.0.1"},
        is_ready=printed("Press Ctrl+C to stop"),
        stop_signal=signal.SIGKILL,
    )
    with redis.program, gateway:
        yield f"ws://127.0.0.1:{port}"


async def _run_client(checkout: Path, gateway: str, query: str, quiet_s: float) -> list[Step]:
    """Run the scenario; the steps of its clients and the gateway."""
    proxy = RecordingProxy(gateway, query, quiet_s)
    async with proxy.running() as url:
        command = ["node", str(SCENARIO), str(checkout), url]
        await asyncio.to_thread(run, command, os.environ)
    normaliser = Normaliser()
    return [normaliser.fix_step(step) for step in proxy.steps]


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m lab.prototype", description="See docs/howto/test.md.")
    parser.add_argument("checkout", type=Path, help="a checkout of the client and its gateway")
    parser.add_argument("--record", action="store_true", help=f"write {RECORD.relative_to(ROOT)} first")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
