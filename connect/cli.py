"""The command line: options in, exit code out; `python -m connect`, `connect.pyz` and `manage.py` share it."""

import argparse
import asyncio
import logging
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, nullcontext
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol, Self, runtime_checkable

from connect.agent import Agent
from connect.answers import CannotStart, echo
from connect.command import TOKEN_VARIABLE, Command
from connect.ending import Ending
from connect.frames import Question, Welcome
from connect.hub_url import checked_name
from connect.preset_answer import build_preset_answer
from connect.presets import PRESETS
from connect.reply_parts import ReplyPart
from connect.session_file import SessionFile, default_path

HUB_VARIABLE = "CLAWBRIDGE_HUB"
EXIT_CODES = {Ending.STOPPED: 0, Ending.DISMISSED: 0, Ending.REFUSED: 2, Ending.SUPERSEDED: 3}
BAD_ARGUMENTS = 2
TOOL_TIMEOUT_S = 50.0  # the hub waits 60 s for a reply, if its operator and the agent's owner changed nothing
WANTS_SDK = "--mcp: the MCP SDK is not installed: pip install 'mcp>=2.3,<3'"
SDK_LOGGERS = ("mcp", "client")

DESCRIPTION = "Make a program an agent of a Clawbridge hub: it stays connected and answers questions."
EPILOG = """\
examples:
  export CLAWBRIDGE_HUB=https://hub.example CLAWBRIDGE_TOKEN=ck_live_...
  python3 connect.pyz --echo
  python3 connect.pyz --name word-counter --exec -- wc -w
  python3 connect.pyz --name helper --protocol lines --exec -- ./helper.py
  python3 connect.pyz --name reviewer --preset claude --directory ~/project
  python3 connect.pyz --name search --mcp "npx some-mcp-server" --tool search
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
    parser.add_argument("--token-file", type=Path, metavar="PATH", help="a file that holds the token alone")
    parser.add_argument("--name", metavar="ROUTING", help="routing name to ask for: a-z, 0-9 and '-'")
    parser.add_argument(
        "--session-file",
        type=Path,
        metavar="PATH",
        help="where the session is kept over restarts (else one for hub and name below ~/.local/state/clawbridge)",
    )
    parser.add_argument(
        "--new-session",
        action="store_true",
        help="begin a new session, and keep none; an agent stays on its old session until its owner moves it",
    )
    parser.add_argument("--echo", action="store_true", help="answer each question with its own text")
    parser.add_argument("--exec", action="store_true", help="answer with what the command prints")
    parser.add_argument(
        "--protocol",
        choices=("text", "lines"),
        default="text",
        help="what --exec's command speaks: text (default), or lines of JSON that say more (connect/README.md)",
    )
    parser.add_argument(
        "--preset", choices=sorted(PRESETS), help="answer with this coding agent, which must be installed"
    )
    parser.add_argument(
        "--directory", type=Path, metavar="PATH", help="for --preset: where the program works and reads files"
    )
    parser.add_argument(
        "--access",
        choices=("read", "write"),
        default="read",
        help="for --preset: whether the program may only read (default), or change files too",
    )
    parser.add_argument(
        "--mcp", metavar="COMMAND|URL", help="answer with a tool of this MCP server (needs the MCP SDK)"
    )
    parser.add_argument("--tool", metavar="NAME", help="for --mcp: the tool; without it, its tools are listed")
    parser.add_argument(
        "--tool-timeout",
        type=float,
        metavar="SECONDS",
        help=f"for --mcp: how long a question may take (default {TOOL_TIMEOUT_S:g})",
    )
    parser.add_argument(
        "--skill", action="store_true", help="for --mcp: print the tool as a skill for the agent's card, and end"
    )
    parser.add_argument(
        "command",
        nargs=argparse.REMAINDER,
        help="for --exec: the rest of the line; for --preset: more arguments of the program, after --",
    )


def run(options: argparse.Namespace) -> int:
    """Be an agent until told to stop; the answer is the exit code. Takes SIGINT and SIGTERM meanwhile."""
    with logs_on_stderr():
        try:
            if options.skill:
                work = print_skill(import_mcp(), choose_mcp_answer(options))
            else:
                work = run_until_signal(*build_agent(options))
        except ValueError as problem:
            return refuse(problem)
        try:
            return EXIT_CODES[asyncio.run(work)]
        except CannotStart as problem:
            return refuse(problem)


def refuse(problem: ValueError) -> int:
    """Say in one line what is wrong; the answer is the exit code."""
    sys.stderr.write(f"connect: {problem}\n")
    return BAD_ARGUMENTS


class ProgramAnswer(Protocol):
    """An `Answer` by programs that can be ended."""

    def __call__(self, question: Question) -> AsyncIterator[ReplyPart]:
        """Yield the reply."""
        ...

    def kill(self) -> None:
        """End every running program at once."""
        ...


@runtime_checkable
class ConnectedAnswer(ProgramAnswer, Protocol):
    """One that connects before the agent runs, and disconnects after it."""

    async def __aenter__(self) -> Self:
        """Connect."""
        ...

    async def __aexit__(self, *exception: Any) -> None:
        """Disconnect."""
        ...


def choose_command(options: argparse.Namespace, session_file: SessionFile | None) -> ProgramAnswer | None:
    """Give what answers, or None for the echo.

    Raises:
        ValueError: not exactly one was asked for, or an option of another one.
    """
    argv = options.command[1:] if options.command[:1] == ["--"] else options.command
    if [options.echo, options.exec, options.preset is not None, options.mcp is not None].count(True) != 1:
        raise ValueError("want one of --echo, --exec CMD, --preset NAME and --mcp SERVER")
    if (options.echo or options.mcp) and argv:
        raise ValueError(f"{argv[0]!r} is in the way of {'--echo' if options.echo else '--mcp'}")
    if options.exec and not argv:
        raise ValueError("--exec: want a command")
    if options.protocol == "lines" and not options.exec:
        raise ValueError("--protocol lines: want --exec CMD")
    if options.preset is None and (options.directory or options.access != "read"):
        raise ValueError("--directory and --access: want --preset NAME")
    if options.mcp is None and (options.tool or options.tool_timeout is not None):
        raise ValueError("--tool and --tool-timeout: want --mcp SERVER")
    if options.mcp is not None:
        return choose_mcp_answer(options)
    if options.preset:
        return build_preset_answer(
            options.preset,
            directory=options.directory,
            writes=options.access == "write",
            extra=argv,
            store=session_file.path.with_suffix(".conversations") if session_file else None,
        )
    if options.exec and shutil.which(argv[0]) is None:
        sys.stderr.write(
            f"connect: {argv[0]} is not there, or not executable: every question will get that answer\n"
        )
    return Command(argv, speaks_lines=options.protocol == "lines") if options.exec else None


def choose_mcp_answer(options: argparse.Namespace) -> ConnectedAnswer:
    """Make the answer of `--mcp`: an `McpAnswer`, whose module is imported for it alone.

    Raises:
        ValueError: there is no SDK, or the options name no server.
    """
    if options.mcp is None:
        raise ValueError("--skill: want --mcp SERVER")
    timeout_s = TOOL_TIMEOUT_S if options.tool_timeout is None else options.tool_timeout
    answer: ConnectedAnswer = import_mcp().build_mcp_answer(options.mcp, options.tool, timeout_s=timeout_s)
    return answer


def import_mcp() -> Any:
    """The module of `--mcp`, whose libraries `connect.pyz` does not have.

    Raises:
        ValueError: they are not installed.
    """
    try:
        return import_module("connect.mcp_answer")
    except ImportError:
        raise ValueError(WANTS_SDK) from None


async def print_skill(module: Any, answer: Any) -> Ending:
    """Print the tool for the form of the agent's card; a signal ends the MCP server, too."""

    async def work() -> None:
        async with answer:
            sys.stdout.write(module.describe_skill(await answer.find_tool()) + "\n")

    task = asyncio.create_task(work())

    def on_signal() -> None:
        answer.kill()
        task.cancel()

    handle_signals(on_signal)
    await asyncio.wait({task})
    if not task.cancelled():
        task.result()
    return Ending.STOPPED


def build_agent(options: argparse.Namespace) -> tuple[Agent, ProgramAnswer | None]:
    """Make the agent the options describe, and what runs its programs.

    Raises:
        ValueError: an option is missing or cannot be right.
    """
    hub = required(options.hub, "--hub", HUB_VARIABLE)
    name = None if options.name is None else checked_name(options.name)
    token = choose_token(options)
    file = hold_session_file(options, hub, name)
    command = choose_command(options, file)

    def on_welcome(welcome: Welcome) -> None:
        sys.stderr.write(f"connected as @{welcome.routing_name} (session {welcome.session_id})\n")
        if file:
            file.save(welcome.session_id)

    agent = Agent(
        hub=hub,
        token=token,
        answer=command or echo,
        name=name,
        streams=command is not None,
        session_id=file.load() if file else None,
        on_welcome=on_welcome,
    )
    return agent, command


def hold_session_file(options: argparse.Namespace, hub: str, name: str | None) -> SessionFile | None:
    """The file that keeps the session, this process's alone; None without one.

    Raises:
        ValueError: the options contradict each other.
    """
    if options.new_session and options.session_file:
        raise ValueError("want --session-file or --new-session, not both")
    if options.new_session:
        return None
    file = SessionFile(options.session_file or default_path(hub, name))
    return file if file.hold() else None


def choose_token(options: argparse.Namespace) -> str:
    """The token of an option, a file or the environment.

    Raises:
        ValueError: there is none, or more than one, or the file cannot be read.
    """
    if options.token_file is None:
        return required(options.token, "--token", TOKEN_VARIABLE)
    if options.token:
        raise ValueError("want --token or --token-file, not both")
    try:
        return str(options.token_file.read_text(encoding="ascii")).strip()
    except (OSError, ValueError) as problem:
        raise ValueError(f"--token-file {options.token_file}: {problem}") from None


def required(flag: str | None, name: str, variable: str) -> str:
    """Give the flag's value, else the environment's."""
    if value := flag or os.environ.get(variable):
        return value
    raise ValueError(f"{name} is missing (or set {variable})")


async def run_until_signal(agent: Agent, command: ProgramAnswer | None) -> Ending:
    """Run the agent; the first signal asks it to stop, the second ends it and its programs at once.

    Raises:
        CannotStart: what answers is not ready for the agent.
    """
    ready = asyncio.Event()

    async def run_agent() -> Ending:
        async with command if isinstance(command, ConnectedAnswer) else nullcontext():
            ready.set()
            return await agent.run()

    work = asyncio.create_task(run_agent())

    def on_signal() -> None:
        if agent.is_stopping or not ready.is_set():
            if command:
                command.kill()
            work.cancel()
        agent.begin_stop()

    handle_signals(on_signal)
    await asyncio.wait({work})
    return Ending.STOPPED if work.cancelled() else work.result()


def handle_signals(on_signal: Callable[[], None]) -> None:
    """Call the function at each SIGINT and SIGTERM."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)


@contextmanager
def logs_on_stderr() -> Iterator[None]:
    """Show what the package logs, one line each."""
    logger, handler = logging.getLogger("connect"), logging.StreamHandler()
    logger.setLevel(logging.INFO)
    logger.addHandler(handler)
    logger.propagate = False
    for name in SDK_LOGGERS:
        logging.getLogger(name).addHandler(logging.NullHandler())  # what matters of it, `connect` logs
    try:
        yield
    finally:
        logger.propagate = True
        logger.removeHandler(handler)
