"""Answers questions with a program: question on its standard input, answer from its standard output."""

import asyncio
import logging
import os
import signal
from asyncio.subprocess import Process
from collections.abc import AsyncIterator, Sequence

from connect import child
from connect.answers import AnswerFailed
from connect.frames import Question
from connect.tasks import running

TERM_GRACE_S = 2.0
TOKEN_VARIABLE = "CLAWBRIDGE_TOKEN"  # noqa: S105 (the variable's name)

logger = logging.getLogger(__name__)


class Command:
    """Runs a command line, without a shell, once per question.

    The reply ends when the program has ended and its output is closed. A question that is dropped ends its
    program, with all that it started.
    """

    def __init__(self, argv: Sequence[str]) -> None:
        self._argv = argv
        self._groups: set[int] = set()
        self._grace_s = TERM_GRACE_S

    async def __call__(self, question: Question) -> AsyncIterator[str]:
        """Yield what the program prints.

        Raises:
            AnswerFailed: it could not be started, or its exit status is not zero.
        """
        process = await self._start(question)
        stdout, stderr = readers(process)
        self._groups.add(process.pid)
        async with running(child.last_words(stderr)) as errors:
            try:
                async for text in child.decoded(stdout):
                    yield text
                complaint = await errors
                status = await process.wait()
            except BaseException:
                await child.end(process, stdout, grace_s=self._grace_s)
                raise
            finally:
                self._groups.discard(process.pid)
        if status:
            logger.warning("%s for question %s", failure(status), question.chat_id)
            raise AnswerFailed("\n".join(filter(None, (failure(status), complaint))))

    def kill(self) -> None:
        """End every running program at once, and leave later ones no time to end by themselves."""
        self._grace_s = 0.0
        for group in self._groups:
            child.signal_group(group, signal.SIGKILL)

    async def _start(self, question: Question) -> Process:
        program = self._argv[0]
        try:
            return await child.start(self._argv, stdin=question.text, environ=environment(question))
        except FileNotFoundError:
            raise AnswerFailed(f"command not found: {program}") from None
        except OSError as problem:
            raise AnswerFailed(f"command cannot be started: {program} ({problem.strerror})") from None


def environment(question: Question) -> dict[str, str]:
    """Give the program's environment: this one and the question's, less the agent's own secret."""
    inherited = {name: value for name, value in os.environ.items() if name != TOKEN_VARIABLE}
    return {
        **inherited,
        "CLAWBRIDGE_CHAT_ID": question.chat_id,
        "CLAWBRIDGE_ASKER": question.asker or "",
    }


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
