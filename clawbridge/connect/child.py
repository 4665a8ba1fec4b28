"""One run of a program: its output as text, and an end that leaves no process behind."""

import asyncio
import codecs
import os
import signal
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

READ_BYTES = 16 * 1024
POLL_S = 0.05
REAP_WAIT_S = 1.0
MAX_ERROR_CHARS = 500


async def start(
    argv: Sequence[str],
    *,
    stdin: str,
    environ: Mapping[str, str],
    keeps_open: bool = False,
    directory: Path | None = None,
) -> Process:
    """Start a program as the head of its own process group, with `stdin` to read.

    `keeps_open`: more may follow by `Process.stdin`; without it comes end of file. `directory`: where it works.

    Raises:
        OSError: it could not be started.
    """
    if keeps_open:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environ, cwd=directory, start_new_session=True
        )
        write_input(process, stdin)
        return process
    with tempfile.TemporaryFile() as source:  # a file: who ignores it breaks no pipe, and /dev/stdin works
        source.write(stdin.encode(errors="replace"))
        source.seek(0)
        return await asyncio.create_subprocess_exec(
            *argv, stdin=source, stdout=PIPE, stderr=PIPE, env=environ, cwd=directory, start_new_session=True
        )


def write_input(process: Process, text: str) -> None:
    """Write to a program whose standard input was kept open; one that reads no more misses it."""
    if process.stdin is not None and not process.stdin.is_closing():
        # no drain: a program that does not read must not block the others
        process.stdin.write(text.encode(errors="replace"))


async def given_time(process: Process, stdout: asyncio.StreamReader, *, within_s: float) -> None:
    """Let a program end by itself; what it still prints is dropped."""
    if process.stdin is not None:
        process.stdin.close()
    with suppress(TimeoutError):
        async with asyncio.timeout(within_s):
            while await stdout.read(READ_BYTES):
                pass
            await process.wait()


async def decoded(stream: asyncio.StreamReader) -> AsyncIterator[str]:
    """Yield a stream's text as it comes; bytes that are not UTF-8 become the replacement character."""
    decoder = codecs.getincrementaldecoder("utf-8")(errors="replace")
    while raw := await stream.read(READ_BYTES):
        if text := decoder.decode(raw):
            yield text
    if rest := decoder.decode(b"", final=True):
        yield rest


async def last_words(stream: asyncio.StreamReader) -> str:
    """Read a stream to its end; the answer is its last 500 characters."""
    words = ""
    async for text in decoded(stream):
        words = (words + text)[-MAX_ERROR_CHARS:]
    return words.strip()


async def end(child: Process, stdout: asyncio.StreamReader, *, grace_s: float) -> None:
    """End a program and all it started: TERM, and KILL for what is left after a while or on cancellation."""
    try:
        signal_group(child.pid, signal.SIGTERM)
        for _ in range(round(grace_s / POLL_S)):
            if not signal_group(child.pid, 0):
                break
            await asyncio.sleep(POLL_S)
    finally:
        signal_group(child.pid, signal.SIGKILL)
        with suppress(TimeoutError):  # a process that left the group may hold the pipe open
            async with asyncio.timeout(REAP_WAIT_S):
                while await stdout.read(READ_BYTES):
                    pass
                await child.wait()


def signal_group(group: int, number: int) -> bool:
    """Signal every process of a group (0 only asks); False means there is none."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True
