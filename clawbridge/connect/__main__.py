"""`clawbridge connect`, `connect.pyz` and `python -m clawbridge.connect`: options in, exit code out.

`manage.py connect` runs the same `run`, with the same options.
"""

import argparse
import asyncio
import json
import logging
import os
import shutil
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from importlib import import_module
from typing import Any, NoReturn

from clawbridge.checks import HUB_VARIABLE
from clawbridge.connect.agent import Agent, checked_name
from clawbridge.connect.agnt_answer import build_agnt_answer
from clawbridge.connect.answers import CannotStart, ProgramAnswer, echo
from clawbridge.connect.command import AGNT_SECRET_VARIABLE, Command
from clawbridge.connect.connection import Ending
from clawbridge.connect.frames import Welcome
from clawbridge.connect.gateway_agent import GatewayAgent
from clawbridge.connect.options import (
    DESCRIPTION,
    EPILOG,
    TOOL_TIMEOUT_S,
    SessionFile,
    add_arguments,
    choose_token,
    hold_session_file,
    required,
)
from clawbridge.connect.preset_answer import build_preset_answer

logger = logging.getLogger("clawbridge.connect")  # a fixed name: Python may run this module as `__main__`

EXIT_CODES = {Ending.STOPPED: 0, Ending.DISMISSED: 0, Ending.REFUSED: 2, Ending.SUPERSEDED: 3}
BAD_ARGUMENTS = 2
WANTS_SDK = (
    "--mcp: the MCP SDK is not installed beside this program: pipx install './clawbridge[mcp]',"
    " or pip install 'mcp>=2.3,<3'"
)
SDK_LOGGERS = ("mcp", "client")
NAMES = {"connect": "python3 connect.pyz"}  # the command's name in the help, by the name of the started file


class OneLineParser(argparse.ArgumentParser):
    """A parser whose complaint is one line, without the usage in front."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see --help)\n")


def build_parser(name: str) -> argparse.ArgumentParser:
    """The parser of the options. `name`: how the user calls the program."""
    parser = OneLineParser(
        prog=name,
        allow_abbrev=False,
        description=DESCRIPTION,
        epilog=EPILOG.replace("python3 connect.pyz", NAMES.get(name, name)),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_arguments(parser)
    return parser


def main(arguments: Sequence[str] | None = None, name: str = "connect") -> int:
    """Run the command line; the answer is the exit code."""
    return run(build_parser(name).parse_args(arguments))


def run(options: argparse.Namespace) -> int:
    """Be an agent until told to stop; the answer is the exit code. Takes SIGINT and SIGTERM meanwhile."""
    with logs_on_stderr(as_json=options.json):
        try:
            if options.skill:
                work = print_skill(choose_mcp_answer(options))
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
    if options.access == "ask" and options.gateway:
        raise ValueError("--access ask: not with --gateway, which passes on no permission requests")
    if options.mcp is None and (options.tool or options.tool_timeout is not None):
        raise ValueError("--tool and --tool-timeout: want --mcp SERVER")
    if options.agnt or options.agnt_secret_file:
        return choose_agnt_answer(options, argv)
    if options.mcp is not None:
        return choose_mcp_answer(options)
    if options.preset:
        return build_preset_answer(
            options.preset,
            directory=options.directory,
            access=options.access,
            extra=argv,
            store=session_file.path.with_suffix(".conversations") if session_file else None,
        )
    return build_command(argv, speaks_lines=options.protocol == "lines") if options.exec else None


def build_command(argv: Sequence[str], *, speaks_lines: bool) -> Command:
    """Make the answer of `--exec`; a program that is not there may be installed later."""
    if shutil.which(argv[0]) is None:
        sys.stderr.write(
            f"connect: {argv[0]} is not there, or not executable: every question will get that answer\n"
        )
    return Command(argv, speaks_lines=speaks_lines)


def choose_agnt_answer(options: argparse.Namespace, argv: Sequence[str]) -> ProgramAnswer:
    """Make the answer of `--agnt`.

    Raises:
        ValueError: the options contradict each other, or a secret cannot be read.
    """
    if not options.agnt:
        raise ValueError("--agnt-secret-file: want --agnt")
    if not options.exec or options.protocol != "text" or options.gateway:
        raise ValueError("--agnt: want --exec CMD, and neither --protocol lines nor --gateway")
    path, secrets = options.agnt_secret_file, os.environ.get(AGNT_SECRET_VARIABLE, "")
    try:
        if path is not None and not (secrets := path.read_text(encoding="ascii").strip()):
            raise ValueError("it is empty")
        return build_agnt_answer(build_command(argv, speaks_lines=False), secrets)
    except (OSError, ValueError) as problem:
        raise ValueError(f"{AGNT_SECRET_VARIABLE if path is None else path}: {problem}") from None


def choose_mcp_answer(options: argparse.Namespace) -> ProgramAnswer:
    """Make the answer of `--mcp`, whose module needs libraries that `connect.pyz` does not have.

    Raises:
        ValueError: the libraries are not installed, or the options name no server.
    """
    if options.mcp is None:
        raise ValueError("--skill: want --mcp SERVER")
    try:
        module = import_module("clawbridge.connect.mcp_answer")
    except ImportError:
        raise ValueError(WANTS_SDK) from None
    timeout_s = TOOL_TIMEOUT_S if options.tool_timeout is None else options.tool_timeout
    answer: ProgramAnswer = module.build_mcp_answer(options.mcp, options.tool, timeout_s=timeout_s)
    return answer


async def print_skill(answer: Any) -> Ending:
    """Print the tool for the form of the agent's card; a signal ends the MCP server, too."""

    async def find_and_print() -> Ending:
        async with answer:
            sys.stdout.write(await answer.read_skill() + "\n")
        return Ending.STOPPED

    work = asyncio.create_task(find_and_print())

    def on_signal() -> None:
        answer.kill()
        work.cancel()

    return await wait_with_signals(work, on_signal)


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
        if options.gateway:
            logger.info("connected as %s", welcome.routing_name)
        else:
            logger.info("connected as @%s (session %s)", welcome.routing_name, welcome.session_id)
        if file:
            file.save(welcome.session_id)

    common: dict[str, Any] = {"hub": hub, "token": token, "answer": command or echo, "name": name}
    common["on_welcome"] = on_welcome
    if options.gateway:
        return GatewayAgent(votes=options.votes, **common), command
    session_id = file.load() if file else None
    return Agent(streams=command is not None, session_id=session_id, **common), command


async def run_until_signal(agent: Agent, command: ProgramAnswer | None) -> Ending:
    """Run the agent; the first signal asks it to stop, the second ends it and its programs at once.

    Raises:
        CannotStart: the program that answers is not ready for the agent.
    """
    ready = asyncio.Event()

    async def run_agent() -> Ending:
        async with command or nullcontext():
            ready.set()
            return await agent.run()

    work = asyncio.create_task(run_agent())

    def on_signal() -> None:
        if agent.is_stopping or not ready.is_set():
            if command:
                command.kill()
            work.cancel()
        agent.begin_stop()

    return await wait_with_signals(work, on_signal)


async def wait_with_signals(work: asyncio.Task[Ending], on_signal: Callable[[], None]) -> Ending:
    """Wait for the end of the work; call the function at each SIGINT and SIGTERM meanwhile."""
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, on_signal)
    await asyncio.wait({work})
    return Ending.STOPPED if work.cancelled() else work.result()


class JsonLineFormatter(logging.Formatter):
    """Makes one line of JSON of what is logged: `at` (Unix time in seconds), `level` and `message`."""

    def format(self, record: logging.LogRecord) -> str:
        """The line."""
        shown = {"at": round(record.created, 3), "level": record.levelname.lower(), "message": record.getMessage()}
        return json.dumps(shown, ensure_ascii=False, separators=(",", ":"))


@contextmanager
def logs_on_stderr(*, as_json: bool) -> Iterator[None]:
    """Show what the package logs, one line each."""
    package, handler = logging.getLogger("clawbridge.connect"), logging.StreamHandler()
    if as_json:
        handler.setFormatter(JsonLineFormatter())
    package.setLevel(logging.INFO)
    package.addHandler(handler)
    package.propagate = False
    for name in SDK_LOGGERS:
        # `connect` itself logs the SDK's failures that matter.
        logging.getLogger(name).addHandler(logging.NullHandler())
    try:
        yield
    finally:
        package.propagate = True
        package.removeHandler(handler)


if __name__ == "__main__":
    sys.exit(main())
