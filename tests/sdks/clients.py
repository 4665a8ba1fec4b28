"""Runs the official clients as programs and hands on what they say they saw."""

import asyncio
import atexit
import json
import os
import signal
import socket
import subprocess
import threading
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import Any

import certifi

from lab.callers import rpc_path
from tests.sdks.environments import ENVIRONMENTS
from tests.sdks.observations import Observation

PROGRAMS = Path(__file__).parent / "programs"
LINE_WITHIN_S = 30
STARTED_WITHIN_S = 60
LONGEST_LINE_BYTES = 2**22


@dataclass
class Run:
    """A scenario at work; `sights` is everything it has said so far."""

    stdout: asyncio.StreamReader
    stderr: asyncio.StreamReader | None = None  # of a program with an error output of its own
    sights: list[Observation] = field(default_factory=list)
    has_ended: bool = False
    is_whole: bool = False

    async def saw(self, step: str) -> Observation:
        """Read on to the next thing seen at that step; fails when it ends before."""
        while (sight := await self._next()) is not None:
            if sight.step == step:
                return sight
        raise AssertionError(f"ended without {step}: {self.sights}")

    async def end(self) -> "Run":
        """Read all it has to say; fails when it was broken off."""
        while await self._next() is not None:
            pass
        complaints = await self.stderr.read() if self.stderr else b"see the standard error of all tests"
        assert self.is_whole, complaints.decode(errors="replace")
        return self

    def at(self, step: str) -> list[Observation]:
        return [sight for sight in self.sights if sight.step == step]

    def one(self, step: str) -> Observation:
        """The one observation at that step; fails with everything seen otherwise."""
        found = self.at(step)
        assert len(found) == 1, f"{step} came {len(found)} times: {self.sights}"
        return found[0]

    def has_not_raised(self) -> "Run":
        assert not self.at("raised"), self.sights
        return self

    async def _next(self) -> Observation | None:
        async with asyncio.timeout(LINE_WITHIN_S):
            line = await self.stdout.readline()
        if not line:
            self.has_ended = True
            return None
        sight = Observation(**json.loads(line))
        if sight.step == "end":
            self.is_whole = True
            return await self._next()
        self.sights.append(sight)
        return sight


@cache
def one_authority() -> str:
    """The path of a file with one certificate of an authority, which lasts as long as this process.

    The clients ask hubs by http: the hundred authorities that each would read take 25 ms of processor time.
    """
    authorities, end = certifi.contents(), "-----END CERTIFICATE-----\n"
    file = NamedTemporaryFile("w", suffix=".pem", delete=False)  # noqa: SIM115  # its reader is another process
    atexit.register(os.unlink, file.name)
    with file:
        file.write(authorities[: authorities.index(end) + len(end)])
    return file.name


class Forker:
    """A Python program that has imported its SDK, and forks for each scenario (`programs/output.py`)."""

    def __init__(self, folder: Path, program: Path) -> None:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            command = [str(folder / "bin" / "python"), str(program)]
            environment = os.environ | {"PYTHONPATH": str(PROGRAMS), "SSL_CERT_FILE": one_authority()}
            self._process = subprocess.Popen(command, stdin=theirs, env=environment)
        ours.settimeout(STARTED_WITHIN_S)
        self._asking = ours
        self._one_asks = threading.Lock()
        atexit.register(self._end)

    def start(self, arguments: list[str]) -> tuple[int, int, int]:
        """The number of the scenario's process, and the descriptors to read what it prints."""
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        with self._one_asks:
            socket.send_fds(self._asking, [json.dumps(arguments).encode()], [out_end, err_end])
            os.close(out_end)
            os.close(err_end)
            pid = self._asking.recv(32)
        assert pid, f"{self._process.args} ended: standard error says why"
        return int(pid), out, err

    def _end(self) -> None:
        self._asking.close()
        self._process.wait()


_one_starts = threading.Lock()
_forkers = cache(Forker)


def start_forked(folder: Path, program: Path, arguments: list[str]) -> tuple[int, int, int]:
    """See `Forker.start`; the first call for a program starts it."""
    with _one_starts:
        forker = _forkers(folder, program)
    return forker.start(arguments)


@asynccontextmanager
async def reading(descriptor: int) -> AsyncIterator[asyncio.StreamReader]:
    """A reader of a pipe, while the block runs."""
    reader = asyncio.StreamReader(limit=LONGEST_LINE_BYTES)
    transport, _ = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(descriptor, "rb", 0)
    )
    try:
        yield reader
    finally:
        transport.close()
        await asyncio.sleep(0)  # it is closed in the next round


@asynccontextmanager
async def run_python(folder: Path, program: Path, arguments: list[str]) -> AsyncIterator[Run]:
    """A scenario of a Python program, whose environment is in `folder`; it is ended on leaving the block."""
    pid, out, err = await asyncio.to_thread(start_forked, folder, program, arguments)
    async with reading(out) as stdout, reading(err) as stderr:
        run = Run(stdout, stderr)
        try:
            yield run
        finally:
            if not run.has_ended:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


class NodeProgram:
    """A JavaScript program that has imported its SDK; each connection to it asks for a scenario."""

    def __init__(self, folder: Path, program: Path) -> None:
        text = (PROGRAMS / "output.mjs").read_text() + program.read_text()
        with socket.create_server(("127.0.0.1", 0)) as listener:
            self.port: int = listener.getsockname()[1]
            command = ["node", "--input-type=module", "--eval", text, str(listener.fileno())]
            # The end of its standard input, at the latest with this process, ends the program.
            self._process = subprocess.Popen(command, stdin=PIPE, cwd=folder, pass_fds=[listener.fileno()])
        atexit.register(self._end)

    def _end(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()


_node_programs = cache(NodeProgram)


@asynccontextmanager
async def run_javascript(folder: Path, program: Path, arguments: list[str]) -> AsyncIterator[Run]:
    """A scenario of a JavaScript program; leaving the block closes the connection that it says what it saw by."""
    port = (await asyncio.to_thread(_node_programs, folder, program)).port
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=LONGEST_LINE_BYTES)
    try:
        writer.write(f"{json.dumps(arguments)}\n".encode())
        yield Run(reader)
    finally:
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()


@asynccontextmanager
async def run_node(folder: Path, program: Path, arguments: list[str]) -> AsyncIterator[Run]:
    """A JavaScript program of one scenario, in a process of its own."""
    with program.open() as text:
        command = ["node", "--input-type=module", "-", *arguments]
        process = await asyncio.create_subprocess_exec(
            *command, stdin=text, stdout=PIPE, stderr=PIPE, limit=LONGEST_LINE_BYTES, cwd=folder
        )
    assert process.stdout is not None
    assert process.stderr is not None
    run = Run(process.stdout, process.stderr)
    try:
        yield run
    finally:
        if not run.has_ended:  # one that is leaving by itself must not be killed: asyncio loses its exit code
            process.kill()
        await process.wait()


@dataclass(frozen=True)
class SdkClient:
    """One official client and the binding it is told to use, if any."""

    environment: str
    binding: str | None = None

    @property
    def is_version_1(self) -> bool:
        return self.environment.endswith("-1")

    def __str__(self) -> str:
        return f"{self.environment}-{'http-json' if self.binding else 'json-rpc'}"

    @asynccontextmanager
    async def run(self, url: str, handle: str, token: str, scenario: str, **options: Any) -> AsyncIterator[Run]:
        """Start a scenario of its program against the agent's base address, or what the option `below` names below
        that; it is ended on leaving the block.
        """
        if self.binding:
            options["binding"] = self.binding
        below = options.pop("below", "/")
        arguments = [f"{url}{rpc_path(handle)}{below}", token, scenario, json.dumps(options)]
        folder = await asyncio.to_thread(ENVIRONMENTS[self.environment].ready)
        version = "1" if self.is_version_1 else "03"
        if self.environment.startswith("python"):
            running = run_python(folder, PROGRAMS / f"python_{version}.py", arguments)
        else:
            running = run_javascript(folder, PROGRAMS / f"js_{version}.mjs", arguments)
        async with running as run:
            yield run

    async def watch(self, url: str, handle: str, token: str, scenario: str, **options: Any) -> Run:
        """Run a scenario to its end."""
        async with self.run(url, handle, token, scenario, **options) as run:
            return await run.end()


VERSION_1 = [
    SdkClient("python-1"),
    SdkClient("python-1", "HTTP+JSON"),
    SdkClient("js-1"),
    SdkClient("js-1", "HTTP+JSON"),
]
VERSION_03 = [SdkClient("python-0.3"), SdkClient("js-0.3")]
CLIENTS = [*VERSION_1, *VERSION_03]
