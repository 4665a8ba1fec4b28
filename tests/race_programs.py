"""Programs that wait for each other and then do the same at once, each in a process of its own."""

import asyncio
import json
import sys
from typing import Any

from lab import ROOT


async def run_program(
    module: str, env: dict[str, str], asked: dict[str, Any], others_ready: asyncio.Barrier
) -> Any:
    """Run `python -m module`; what it printed last, as JSON.

    It prints `ready`, reads one line of JSON (`asked`) once the others are ready, and prints one line of JSON.
    """
    pipe = asyncio.subprocess.PIPE
    command = [sys.executable, "-m", module]
    program = await asyncio.create_subprocess_exec(*command, env=env, cwd=ROOT, stdin=pipe, stdout=pipe)
    try:
        assert program.stdout is not None
        assert (await program.stdout.readline()).strip() == b"ready"
        await others_ready.wait()
        printed, _ = await program.communicate(json.dumps(asked).encode() + b"\n")
        return json.loads(printed)
    finally:
        if program.returncode is None:
            program.kill()
