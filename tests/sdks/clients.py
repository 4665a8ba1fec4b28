"""Runs the official clients as programs and hands on what they say they saw."""

import asyncio
import json
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lab.callers import rpc_path
from tests.sdks.environments import ENVIRONMENTS
from tests.sdks.observations import Observation

PROGRAMS = Path(__file__).parent / "programs"
LINE_WITHIN_S = 30
LONGEST_LINE_BYTES = 2**22


@dataclass
class Run:
    """A program at work; `sights` is everything it has said so far."""

    process: Process
    sights: list[Observation] = field(default_factory=list)
    has_ended: bool = False

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
        assert self.process.stderr is not None
        complaints = (await self.process.stderr.read()).decode(errors="replace")
        assert await self.process.wait() == 0, complaints
        return self

    def at(self, step: str) -> list[Observation]:
        return [sight for sight in self.sights if sight.step == step]

    def one(self, step: str) -> Observation:
        """What was seen at that step, once; fails with everything seen otherwise."""
        found = self.at(step)
        assert len(found) == 1, f"{step} came {len(found)} times: {self.sights}"
        return found[0]

    def has_not_raised(self) -> "Run":
        assert not self.at("raised"), self.sights
        return self

    async def _next(self) -> Observation | None:
        assert self.process.stdout is not None
        async with asyncio.timeout(LINE_WITHIN_S):
            line = await self.process.stdout.readline()
        if not line:
            self.has_ended = True
            return None
        self.sights.append(Observation(**json.loads(line)))
        return self.sights[-1]


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
        """Start a scenario of its program against the agent's base address; it is ended on leaving the block."""
        if self.binding:
            options["binding"] = self.binding
        arguments = [f"{url}{rpc_path(handle)}/", token, scenario, json.dumps(options)]
        process = await self._start(arguments)
        run = Run(process)
        try:
            yield run
        finally:
            if not run.has_ended:  # one that is leaving by itself must not be killed: asyncio loses its exit code
                process.kill()
            await process.wait()

    async def watch(self, url: str, handle: str, token: str, scenario: str, **options: Any) -> Run:
        """Run a scenario to its end."""
        async with self.run(url, handle, token, scenario, **options) as run:
            return await run.end()

    async def _start(self, arguments: list[str]) -> Process:
        folder = await asyncio.to_thread(ENVIRONMENTS[self.environment].ready)
        pipes: dict[str, Any] = {"stdout": PIPE, "stderr": PIPE, "limit": LONGEST_LINE_BYTES}
        if self.environment.startswith("python"):
            program = str(PROGRAMS / ("python_1.py" if self.is_version_1 else "python_03.py"))
            return await asyncio.create_subprocess_exec(
                str(folder / "bin" / "python"), program, *arguments, **pipes
            )
        with (PROGRAMS / ("js_1.mjs" if self.is_version_1 else "js_03.mjs")).open() as program_text:
            node = ["node", "--input-type=module", "-"]
            return await asyncio.create_subprocess_exec(*node, *arguments, stdin=program_text, cwd=folder, **pipes)


VERSION_1 = [
    SdkClient("python-1"),
    SdkClient("python-1", "HTTP+JSON"),
    SdkClient("js-1"),
    SdkClient("js-1", "HTTP+JSON"),
]
VERSION_03 = [SdkClient("python-0.3"), SdkClient("js-0.3")]
CLIENTS = [*VERSION_1, *VERSION_03]
