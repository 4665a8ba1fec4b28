"""The command `clawbridge` as a process of its own, against a hub that many tests share."""

import asyncio
import os
import pty
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lab import ROOT
from lab.callers import Json
from lab.channel_agent import ChannelAgent
from lab.forked import ForkedProcess
from lab.hub_process import HubProcess
from lab.processes import python

WITHIN_S = 60.0
OURS = ("CLAWBRIDGE_HUB", "CLAWBRIDGE_TOKEN", "XDG_CONFIG_HOME")


class Shell:
    """The place where the command runs: an environment with a hub, a token and sign-ins of its own."""

    def __init__(self, folder: Path, hub: str, token: str) -> None:
        self.folder = folder
        mine = {"CLAWBRIDGE_HUB": hub, "CLAWBRIDGE_TOKEN": token, "XDG_CONFIG_HOME": str(folder / "config")}
        mine["NO_PROXY"] = "127.0.0.1"
        self.env = {name: value for name, value in os.environ.items() if name not in OURS} | mine
        self._count = 0

    def start(self, *arguments: str, **env: str) -> "Command":
        """Start the command; it has no input."""
        self._count += 1
        return Command(self.folder / f"command-{self._count}", arguments, self.env | env)

    async def run(self, *arguments: str, **env: str) -> "Command":
        command = self.start(*arguments, **env)
        await command.end()
        return command

    @contextmanager
    def typing(self, *arguments: str, stdin: int) -> Iterator[subprocess.Popen[str]]:
        """The command with this file as its input."""
        command = python("-m", "clawbridge", *arguments)
        pipe = subprocess.PIPE
        with subprocess.Popen(
            command, cwd=ROOT, env=self.env, stdin=stdin, stdout=pipe, stderr=pipe, text=True
        ) as process:
            try:
                yield process
            finally:
                process.kill()


@contextmanager
def terminal() -> Iterator[tuple[int, int]]:
    """The ends of a terminal: that of who types, and that of a program."""
    ours, its = pty.openpty()
    try:
        yield ours, its
    finally:
        os.close(ours)
        os.close(its)


class Command:
    def __init__(self, folder: Path, arguments: tuple[str, ...], env: dict[str, str]) -> None:
        folder.mkdir()
        self._output, self._errors = folder / "output", folder / "errors"
        for file in (self._output, self._errors):
            file.touch()
        self.process = ForkedProcess(["-m", "clawbridge", *arguments], env, ROOT, self._output, self._errors)
        self.code: int | None = None

    async def end(self) -> int:
        self.code = await asyncio.to_thread(self.process.wait, WITHIN_S)
        return self.code

    @property
    def output(self) -> str:
        return self._output.read_text()

    @property
    def errors(self) -> str:
        return self._errors.read_text()


class Direct(ChannelAgent):
    """Answers with a message and no task."""

    async def answer(self, prompt: Json) -> None:
        await self.reply(prompt["chatId"], f"at once: {prompt['text']}", direct=True)


@pytest.fixture
def shell(embedded_hub: HubProcess, tmp_path: Path) -> Shell:
    return Shell(tmp_path, embedded_hub.url, embedded_hub.mint("shell-user", "session"))
