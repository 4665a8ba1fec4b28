"""The command line: options in, exit code out; `python -m connect` and `manage.py connect` share it."""

import argparse
import asyncio
import logging
import os
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from connect.agent import Agent
from connect.answers import echo
from connect.command import TOKEN_VARIABLE, Command
from connect.ending import Ending
from connect.frames import Welcome
from connect.session_file import load_session, save_session

HUB_VARIABLE = "CLAWBRIDGE_HUB"
EXIT_CODES = {Ending.STOPPED: 0, Ending.DISMISSED: 0, Ending.REFUSED: 2, Ending.SUPERSEDED: 3}
BAD_ARGUMENTS = 2

DESCRIPTION = "Make a program an agent of a Clawbridge hub: it stays connected and answers questions."
EPILOG = """\
examples:
  export CLAWBRIDGE_HUB=https://hub.example CLAWBRIDGE_TOKEN=ck_live_...
  python -m connect --echo
  python -m connect --name word-counter --exec -- wc -w
  python -m connect --name helper --protocol lines --exec -- ./helper.py
Each question starts the command once: the question is its standard input, what it prints is the reply,
and CLAWBRIDGE_CHAT_ID, _ASKER, _TASK_ID and _CONTEXT_ID say more about it. An exit status other than 0
fails the task, with the end of standard error. More is in connect/README.md.

exit codes: 0 stopped, 2 bad arguments or token refused, 3 another process took over the session"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that `run` reads."""
    parser.add_argument("--hub", metavar="URL", help=f"the hub's origin (else ${HUB_VARIABLE})")
    parser.add_argument(
        "--token",
        metavar="TOKEN",
        help=f"a token ck_live_... (else ${TOKEN_VARIABLE}; others can read a command line)",
    )
    parser.add_argument("--name", metavar="ROUTING", help="routing name to ask for: a-z, 0-9 and '-'")
    parser.add_argument("--session-file", type=Path, metavar="PATH", help="keep the session over restarts")
    parser.add_argument("--echo", action="store_true", help="answer each question with its own text")
    parser.add_argument("--exec", action="store_true", help="answer with what the command prints")
    parser.add_argument(
        "--protocol",
        choices=("text", "lines"),
        default="text",
        help="what --exec's command speaks: text (default), or lines of JSON that say more (connect/README.md)",
    )
    parser.add_argument("command", nargs=argparse.REMAINDER, help="for --exec: the rest of the line")


def run(options: argparse.Namespace) -> int:
    """Be an agent until told to stop; the answer is the exit code. Takes SIGINT and SIGTERM meanwhile."""
    with logs_on_stderr():
        try:
            command = chosen_command(options)
            agent = build_agent(options, command)
        except ValueError as problem:
            sys.stderr.write(f"connect: {problem}\n")
            return BAD_ARGUMENTS
        return EXIT_CODES[asyncio.run(run_until_signal(agent, command))]


def chosen_command(options: argparse.Namespace) -> Command | None:
    """Give the command to run, or None for the echo.

    Raises:
        ValueError: not exactly one of the two was asked for.
    """
    argv = options.command[1:] if options.command[:1] == ["--"] else options.command
    if options.echo == options.exec:
        raise ValueError("want either --echo or --exec CMD")
    if options.exec != bool(argv):
        raise ValueError("--exec: want a command" if options.exec else f"{argv[0]!r} is in the way of --echo")
    if options.protocol == "lines" and not options.exec:
        raise ValueError("--protocol lines: want --exec CMD")
    if options.exec and shutil.which(argv[0]) is None:
        sys.stderr.write(
            f"connect: {argv[0]} is not there, or not executable: every question will get that answer\n"
        )
    return Command(argv, speaks_lines=options.protocol == "lines") if options.exec else None


def build_agent(options: argparse.Namespace, command: Command | None) -> Agent:
    """Make the agent the options describe.

    Raises:
        ValueError: an option is missing or cannot be right.
    """
    path: Path | None = options.session_file
    earlier: list[str] = []

    def on_welcome(welcome: Welcome) -> None:
        sys.stderr.write(f"connected as @{welcome.routing_name} (session {welcome.session_id})\n")
        if path:
            save_session(path, welcome.session_id)
        elif not earlier:
            earlier.append(welcome.session_id)
            sys.stderr.write(
                "a new session: keep it over restarts with --session-file, agents are published on it\n"
            )

    return Agent(
        hub=required(options.hub, "--hub", HUB_VARIABLE),
        token=required(options.token, "--token", TOKEN_VARIABLE),
        answer=command or echo,
        name=options.name,
        streams=command is not None,
        session_id=load_session(path) if path else None,
        on_welcome=on_welcome,
    )


def required(flag: str | None, name: str, variable: str) -> str:
    """Give the flag's value, else the environment's."""
    if value := flag or os.environ.get(variable):
        return value
    raise ValueError(f"{name} is missing (or set {variable})")


async def run_until_signal(agent: Agent, command: Command | None) -> Ending:
    """Run the agent; the first signal asks it to stop, the second ends it and its programs at once."""
    work = asyncio.create_task(agent.run())

    def on_signal() -> None:
        if agent.is_stopping:
            if command:
                command.kill()
            work.cancel()
        agent.begin_stop()

    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    await asyncio.wait({work})
    return Ending.STOPPED if work.cancelled() else work.result()


@contextmanager
def logs_on_stderr() -> Iterator[None]:
    """Show what the package logs, one line each."""
    logger, handler = logging.getLogger("connect"), logging.StreamHandler()
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    logger.propagate = False
    try:
        yield
    finally:
        logger.propagate = True
        logger.removeHandler(handler)
