"""Runs programs of other people, each in its environment, against a hub."""

import asyncio
import os
from asyncio.subprocess import PIPE
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.sdks.environments import ENVIRONMENTS, Missing, NotInstalled

PROGRAMS = Path(__file__).parent / "programs"
ENDS_WITHIN_S = 90


@dataclass(frozen=True)
class Ended:
    """A program that has ended, and what it printed."""

    code: int
    output: str
    errors: str


async def environment(name: str) -> Path:
    """The folder of an environment; skips the test where it cannot be had."""
    try:
        return await asyncio.to_thread(ENVIRONMENTS[name].ready)
    except (Missing, NotInstalled) as problem:
        pytest.skip(str(problem))


async def run(*command: str | Path, cwd: Path, **env: str) -> Ended:
    """Run a program to its end in a home of its own, `cwd`; it has no input."""
    process = await asyncio.create_subprocess_exec(
        *map(str, command),
        cwd=cwd,
        env={"PATH": os.environ["PATH"], "HOME": str(cwd), "NO_PROXY": "127.0.0.1"} | env,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=PIPE,
        stderr=PIPE,
    )
    try:
        async with asyncio.timeout(ENDS_WITHIN_S):
            output, errors = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return Ended(process.returncode or 0, output.decode(), errors.decode())
