"""Answers questions with a program: question on its standard input, answer from its standard output.

A run of a program leaves no process behind.
"""

import asyncio
import codecs
import logging
import os
import signal
import tempfile
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Protocol

from clawbridge.checks import TOKEN_VARIABLE
from clawbridge.connect import lines
from clawbridge.connect.answers import AnswerFailed, ProgramAnswer, left_out
from clawbridge.connect.frames import Question
from clawbridge.connect.lines import Lines
from clawbridge.connect.reply_parts import ReplyEnd, ReplyPart
from clawbridge.connect.tasks import running

TERM_GRACE_S = 2.0
CANCEL_GRACE_S = 5.0
AGNT_SECRET_VARIABLE = "CLAWBRIDGE_AGNT_SECRET"  # noqa: S105 (the variable's name)

logger = logging.getLogger(__name__)


class OutputReader(Protocol):
    """Cuts the output of one run into parts of the reply."""

    def feed(self, text: str) -> Iterator[ReplyPart]:
        """Yield the reply parts that are complete after this further output."""
        ...

    def finish(self) -> Iterator[ReplyPart]:
        """Yield the reply parts in the output that is left at its end."""
        ...

    @property
    def is_complete(self) -> bool:
        """True if the program has given its answer: it gets no more input."""
        ...


class Command(ProgramAnswer):
    """Runs a command line, without a shell, once per question.

    The reply ends when the program has ended and its output is closed. A question that is dropped ends its
    program, with all that it started.

    `speaks_lines`: the program speaks the line protocol (`connect.lines`), else text both ways.
    `reader`: reads the output of the only run instead. `keeps_input`: that program gets more input after the
    question, by `write_line`. `directory`: where the program works, else where we do.
    """

    def __init__(
        self,
        argv: Sequence[str],
        *,
        speaks_lines: bool = False,
        reader: OutputReader | None = None,
        keeps_input: bool = False,
        directory: Path | None = None,
    ) -> None:
        self._argv = argv
        self._speaks_lines = speaks_lines
        self._reader = reader
        self._keeps_input = keeps_input
        self._process: Process | None = None  # of the only run
        self._directory = directory
        self._groups: set[int] = set()
        self._term_grace_s = TERM_GRACE_S
        self._cancel_grace_s = CANCEL_GRACE_S

    async def __call__(self, question: Question) -> AsyncGenerator[ReplyPart, None]:
        """Yield what the program says.

        Raises:
            AnswerFailed: the program could not be started, or its exit status is not zero.
        """
        if not self._speaks_lines and (note := left_out(question)) is not None:
            yield note
        process = self._process = await self._start(question)
        stdout, stderr = readers(process)
        self._groups.add(process.pid)
        has_ended = False
        async with running(read_tail(stderr)) as errors:
            try:
                async for part in self._read(process, stdout):
                    has_ended = isinstance(part, ReplyEnd)
                    yield part
                complaint = await errors
                status = await process.wait()
            except BaseException:
                await self._end_run(process, stdout, has_ended=has_ended)
                raise
            finally:
                self._groups.discard(process.pid)
                if process.stdin is not None:
                    process.stdin.close()
        if status:
            logger.warning("%s for question %s", failure(status), question.chat_id)
            raise AnswerFailed("\n".join(filter(None, (failure(status), complaint))))

    def kill(self) -> None:
        """End every running program at once, and leave later ones no time to end by themselves."""
        self._term_grace_s = self._cancel_grace_s = 0.0
        for group in self._groups:
            signal_group(group, signal.SIGKILL)

    def write_line(self, line: str) -> None:
        """Write to the standard input of the only run; a program that has closed its input misses the text."""
        if self._process is not None:
            write_input(self._process, f"{line}\n")

    async def _start(self, question: Question) -> Process:
        program = self._argv[0]
        stdin = lines.question_line(question) if self._speaks_lines else question.text
        try:
            return await start_program(
                self._argv,
                stdin=stdin,
                environ=environment(question),
                keeps_open=self._speaks_lines or self._keeps_input,
                directory=self._directory,
            )
        except FileNotFoundError:
            raise AnswerFailed(f"command not found: {program}") from None
        except OSError as problem:
            raise AnswerFailed(f"command cannot be started: {program} ({problem.strerror})") from None

    async def _read(self, process: Process, stdout: asyncio.StreamReader) -> AsyncIterator[ReplyPart]:
        reader = Lines() if self._speaks_lines else self._reader
        async for text in decoded(stdout):
            if reader is None:
                yield text
                continue
            for part in reader.feed(text):
                yield part
            if self._reader is not None and self._reader.is_complete and process.stdin is not None:
                process.stdin.close()
        if reader is not None:
            for part in reader.finish():
                yield part

    async def _end_run(self, process: Process, stdout: asyncio.StreamReader, *, has_ended: bool) -> None:
        """End the run. A program of the line protocol first gets `cancel` and time to end by itself."""
        try:
            if self._speaks_lines:
                if not has_ended:
                    write_input(process, lines.CANCEL)
                await give_time(process, stdout, within_s=self._cancel_grace_s)
        finally:
            await end_program(process, stdout, grace_s=self._term_grace_s)


def environment(question: Question) -> dict[str, str]:
    """Give the program's environment: this one and the question's, less the agent's own secrets."""
    own = {TOKEN_VARIABLE, AGNT_SECRET_VARIABLE, "TRACEPARENT", "TRACESTATE"}
    inherited = {name: value for name, value in os.environ.items() if name not in own}
    asked = {
        "CLAWBRIDGE_CHAT_ID": question.chat_id,
        "CLAWBRIDGE_ASKER": question.asker or "",
        "CLAWBRIDGE_TASK_ID": question.task_id,
        "CLAWBRIDGE_CONTEXT_ID": question.context_id,
        "CLAWBRIDGE_MESSAGE_ID": question.message_id,
    }
    trace = {"TRACEPARENT": question.traceparent} if question.traceparent else {}
    return inherited | {name: value.replace("\0", "") for name, value in (asked | trace).items()}


def readers(process: Process) -> tuple[asyncio.StreamReader, asyncio.StreamReader]:
    """Give standard output and standard error of a program started with pipes for both."""
    if process.stdout is None or process.stderr is None:
        raise TypeError("started without pipes")
    return process.stdout, process.stderr


def failure(status: int) -> str:
    """Say how a program failed; asyncio counts a death by signal N as -N."""
    if status < 0:
        return f"command was killed by signal {-status}"
    return f"command failed with exit status {status}"


READ_BYTES = 16 * 1024
POLL_S = 0.05
REAP_WAIT_S = 1.0
MAX_ERROR_CHARS = 500


async def start_program(
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
        OSError: the program could not be started.
    """
    if keeps_open:
        process = await asyncio.create_subprocess_exec(
            *argv, stdin=PIPE, stdout=PIPE, stderr=PIPE, env=environ, cwd=directory, start_new_session=True
        )
        write_input(process, stdin)
        return process
    # A file, not a pipe: a program may leave its input unread without a broken pipe, and /dev/stdin works.
    with tempfile.TemporaryFile() as source:
        source.write(stdin.encode(errors="replace"))
        source.seek(0)
        return await asyncio.create_subprocess_exec(
            *argv, stdin=source, stdout=PIPE, stderr=PIPE, env=environ, cwd=directory, start_new_session=True
        )


def write_input(process: Process, text: str) -> None:
    """Write to a program whose standard input was kept open; a program with a closed input misses the text."""
    if process.stdin is not None and not process.stdin.is_closing():
        # no drain: a program that does not read must not block the others
        process.stdin.write(text.encode(errors="replace"))


async def give_time(process: Process, stdout: asyncio.StreamReader, *, within_s: float) -> None:
    """Wait for a program to end by itself; further output of the program is dropped."""
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


async def read_tail(stream: asyncio.StreamReader) -> str:
    """Read a stream to its end; the answer is its last 500 characters."""
    tail = ""
    async for text in decoded(stream):
        tail = (tail + text)[-MAX_ERROR_CHARS:]
    return tail.strip()


async def end_program(process: Process, stdout: asyncio.StreamReader, *, grace_s: float) -> None:
    """End a program and all it started: TERM, and KILL for what is left after a while or on cancellation."""
    try:
        signal_group(process.pid, signal.SIGTERM)
        for _ in range(round(grace_s / POLL_S)):
            if not signal_group(process.pid, 0):
                break
            await asyncio.sleep(POLL_S)
    finally:
        signal_group(process.pid, signal.SIGKILL)
        with suppress(TimeoutError):  # a process that left the process group may hold the pipe open
            async with asyncio.timeout(REAP_WAIT_S):
                while await stdout.read(READ_BYTES):
                    pass
                await process.wait()


def signal_group(group: int, number: int) -> bool:
    """Signal every process of a group (0 only asks); False means there is none."""
    try:
        os.killpg(group, number)
    except ProcessLookupError:
        return False
    return True
