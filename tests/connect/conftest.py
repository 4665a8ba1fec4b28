"""A hub to talk to and the real command to talk with; both on free ports, both gone after the test."""

import asyncio
import json
import os
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import pytest
from websockets.asyncio.server import serve
from websockets.exceptions import ConnectionClosed

from clawbridge.connect import Agent, Ending, packing
from clawbridge.connect.__main__ import build_agent, build_parser

ROOT = Path(__file__).parents[2]
TOKEN = "ck_live_test"
WAIT_S = 30


class Visit:
    """One connection of an agent, as the hub sees it."""

    def __init__(self, socket):
        self.socket = socket
        self.headers = socket.request.headers
        self.path = socket.request.path

    async def receive(self):
        async with asyncio.timeout(WAIT_S):
            return json.loads(await self.socket.recv())

    async def send(self, **frame):
        await self.socket.send(json.dumps(frame))

    async def welcome(self, session_id="5a0c4b6e-7b4e-4a43-9a0f-3f6f8f1f0001", name="tester", **more):
        """Take the register frame and accept the agent."""
        register = await self.receive()
        await self.send(type="welcome", sessionId=session_id, routingName=f"@{name}", channelTokenName="t", **more)
        return register

    async def ask(self, text, chat_id="c1", **more):
        await self.send(type="prompt", chatId=chat_id, text=text, **more)

    async def chunks(self):
        """Give the chunks of one reply, without the final empty one."""
        texts = []
        while not (payload := (await self.receive())["payload"])["done"]:
            texts.append(payload["text"])
        assert payload["text"] == ""
        return texts

    async def answer(self, text, **more):
        """Ask, and give the whole streamed reply."""
        await self.ask(text, **more)
        return "".join(await self.chunks())


class Hub:
    """Hands each connection to the test, which plays the hub's part."""

    def __init__(self):
        self.visits = asyncio.Queue()
        self.url = ""

    async def next_visit(self):
        async with asyncio.timeout(WAIT_S):
            return await self.visits.get()

    async def welcome(self, *arguments, **more):
        """Accept the next agent; its visit."""
        visit = await self.next_visit()
        await visit.welcome(*arguments, **more)
        return visit

    async def serve_one(self, socket):
        await self.visits.put(Visit(socket))
        await socket.wait_closed()


@pytest.fixture
async def hub():
    part = Hub()
    async with serve(part.serve_one, "127.0.0.1", 0, close_timeout=1, max_size=2**20) as server:
        port = server.sockets[0].getsockname()[1]
        part.url = f"http://127.0.0.1:{port}"
        yield part


class Program:
    """A running `python -m clawbridge.connect`."""

    def __init__(self, process):
        self.process = process

    def signal(self, number):
        self.process.send_signal(number)

    async def line(self):
        async with asyncio.timeout(WAIT_S):
            return (await self.process.stderr.readline()).decode()

    async def ended(self):
        """Give the exit code and what was left on standard error."""
        async with asyncio.timeout(WAIT_S):
            errors = await self.process.stderr.read()
            return await self.process.wait(), errors.decode()


@asynccontextmanager
async def running_program(*arguments, command=(sys.executable, "-m", "clawbridge.connect"), cwd=ROOT, **environ):
    process = await asyncio.create_subprocess_exec(
        *command,
        *arguments,
        cwd=cwd,
        env={"PATH": os.environ["PATH"], **environ},
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        yield Program(process)
    finally:
        if process.returncode is None:
            process.terminate()
            process.terminate()
        await process.communicate()


@pytest.fixture
async def start(hub, tmp_path):
    """Start the command against the hub: `start("--echo")`; give `where=` to say it otherwise."""
    async with AsyncExitStack() as stack:

        async def start(*arguments, where=None, **environ):
            where = ("--hub", hub.url, "--token", TOKEN) if where is None else where
            environ = {"XDG_STATE_HOME": str(tmp_path / "state"), **environ}
            return await stack.enter_async_context(running_program(*where, *arguments, **environ))

        yield start


@pytest.fixture
async def online(hub, tmp_path, monkeypatch):
    """Run the agent of a command line in this process and welcome it; the answer is the visit."""
    for name, value in (("XDG_STATE_HOME", str(tmp_path / "state")), ("CLAWBRIDGE_TOKEN", TOKEN)):
        monkeypatch.setenv(name, value)
    async with AsyncExitStack() as stack:

        async def online(*arguments, features=None):
            options = build_parser("connect").parse_args(["--hub", hub.url, "--new-session", *arguments])
            agent, command = build_agent(options)
            stack.push_async_callback(end, agent, command, asyncio.create_task(agent.run()))
            return await hub.welcome(**({} if features is None else {"features": features}))

        yield online


@pytest.fixture
async def library(hub):
    """Run an `Agent` of that answer and welcome it; the answer is the visit. The agent stops after the test."""
    async with AsyncExitStack() as stack:

        async def library(answer, *, features=None, **options):
            agent = Agent(hub=hub.url, token=TOKEN, answer=answer, **options)
            stack.push_async_callback(end, agent, None, asyncio.create_task(agent.run()))
            return await hub.welcome(**({} if features is None else {"features": features}))

        yield library


async def end(agent, command, run):
    """As a second signal ends it: with its programs."""
    if command is not None:
        command.kill()
    await agent.stop()
    assert await run is Ending.STOPPED


@pytest.fixture
def pyz(tmp_path):
    """The command of `connect.pyz` by Python alone: no site-packages, nothing of this folder."""
    file = tmp_path / packing.NAME
    file.write_bytes(packing.archive())
    return sys.executable, "-I", "-S", str(file)


class Lifeline:
    """A named pipe: while any process that opened `path` for writing lives, it has no end."""

    def __init__(self, path):
        os.mkfifo(path)
        self.path = path
        self._end = asyncio.create_task(asyncio.to_thread(path.read_bytes))

    async def all_gone(self):
        async with asyncio.timeout(WAIT_S):
            await self._end


@pytest.fixture
async def lifeline(tmp_path):
    return Lifeline(tmp_path / "lifeline")


@pytest.fixture
def closed():
    return ConnectionClosed
