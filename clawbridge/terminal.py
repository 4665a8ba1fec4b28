"""The output of the command: replies on standard output, everything else on standard error."""

import json
import shutil
import sys
from collections.abc import Sequence
from enum import IntEnum
from typing import Any, NoReturn

import click

from clawbridge import BadArguments, HubError, Refused, Unauthorized

# Other users write replies and names: control characters in these must not control the terminal.
CONTROLS = dict.fromkeys((*range(32), *range(127, 160)), "�")
STEERING = {code: letter for code, letter in CONTROLS.items() if chr(code) not in "\n\t"}
GAP = "  "
MIN_COLUMN = 20
UNAUTHORIZED = "the hub refuses the token: run `clawbridge login`, or check --token-file and CLAWBRIDGE_TOKEN"
NO_AGENT = "no such agent"


class ExitCode(IntEnum):
    """The meaning of the exit code (docs/reference/commands.md)."""

    COMPLETED = 0
    FAILED = 1
    BAD_ARGUMENTS = 2
    REJECTED = 3
    INPUT_REQUIRED = 4
    AUTH_REQUIRED = 5
    CANCELED = 6
    NOT_SIGNED_IN = 7
    REFUSED = 8
    UNREACHABLE = 9


class CommandFailure(click.ClickException):
    """Ends the command with one line on standard error, and an exit code."""

    def __init__(self, code: ExitCode, message: str) -> None:
        super().__init__(message)
        vars(self)["exit_code"] = code  # click has one exit code for all errors of a class

    def show(self, file: Any = None) -> None:
        """Print the line."""
        report(self.message)


def as_failure(problem: HubError) -> CommandFailure:
    """The failure of a command whose call to the hub did not succeed."""
    if isinstance(problem, BadArguments):
        return bad_arguments(str(problem))
    if isinstance(problem, Unauthorized):
        text = UNAUTHORIZED if problem.status == 401 else str(problem)
        return CommandFailure(ExitCode.NOT_SIGNED_IN, text)
    if isinstance(problem, Refused):
        hint = "; `clawbridge agents` lists those that you may ask" if str(problem) == NO_AGENT else ""
        return CommandFailure(ExitCode.REFUSED, f"{problem}{hint}")
    return CommandFailure(ExitCode.UNREACHABLE, str(problem))


def bad_arguments(message: str) -> CommandFailure:
    """The failure of options or arguments that cannot be right."""
    return CommandFailure(ExitCode.BAD_ARGUMENTS, message)


def one_line(text: str) -> str:
    """A text of others as one line that a terminal shows as it is."""
    return " ".join(text.split()).translate(CONTROLS)


def write_reply(text: str) -> None:
    """Print a piece of a reply at once; on a terminal without control characters, else unchanged."""
    click.echo(text.translate(STEERING) if sys.stdout.isatty() else text, nl=False)
    sys.stdout.flush()


def write_json(value: object) -> None:
    """Print one line of JSON."""
    text = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    click.echo(text.translate(CONTROLS) if sys.stdout.isatty() else text)


def report(text: str) -> None:
    """Print a line on standard error, with the name of the command."""
    click.echo(f"clawbridge: {text.translate(STEERING)}", err=True)


def write_note(text: str, *, after_line: bool = True) -> None:
    """Print a note that is no part of the reply. `after_line`: the reply so far ends with a line feed."""
    if not after_line and sys.stdout.isatty():
        click.echo(err=True)
    click.secho(text.translate(STEERING), err=True, dim=True)


def read_answer(question: str) -> str | None:
    """Ask on the terminal; None at the end of input. Standard output stays free for the reply."""
    click.echo(f"{question.translate(STEERING)}\n> ", nl=False, err=True)
    line = ""
    try:
        line = sys.stdin.readline()
    finally:
        if not line:  # the end of input, or Ctrl-C
            click.echo(err=True)
    return line.strip() if line else None


def is_interactive() -> bool:
    """True if a user can be asked on standard input."""
    return sys.stdin is not None and sys.stdin.isatty()


def write_table(rows: Sequence[Sequence[str]]) -> None:
    """Print rows in columns; on a terminal the last column is cut to the width of the window."""
    lines = [[one_line(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)][:-1]
    room = max(MIN_COLUMN, shutil.get_terminal_size().columns - sum(widths) - len(GAP) * len(widths))
    for *cells, last in lines:
        if sys.stdout.isatty() and len(last) > room:
            last = last[: room - 1] + "…"
        padded = [cell.ljust(width) for cell, width in zip(cells, widths, strict=True)]
        click.echo(GAP.join([*padded, last]).rstrip())


def end(code: int) -> NoReturn:
    """End the command with this exit code."""
    raise click.exceptions.Exit(code)
