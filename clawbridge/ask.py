"""`clawbridge ask` and `clawbridge reply`: one message, its reply as it comes, and how the task ended."""

import base64
import json
import mimetypes
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

import click
import msgspec
from msgspec import UNSET

from clawbridge.calls import HubRequest, agent_path, convert
from clawbridge.client import Client
from clawbridge.completion import complete_handle, complete_waiting_task
from clawbridge.conversation import Interrupted, StopSignals, TaskConversation, converse
from clawbridge.shapes import WAITING, CardInputModes, Part
from clawbridge.sign_in import Command, Connect, json_option, with_hub
from clawbridge.terminal import (
    CommandFailure,
    ExitCode,
    bad_arguments,
    end,
    is_interactive,
    read_answer,
    report,
    write_json,
    write_note,
)

MAX_BYTES = 1024 * 1024 - 4096  # of the hub's limit, the rest is the envelope
MAX_FILE_BYTES = 10 * 1024 * 1024  # of a file that is uploaded before the question
MAX_PARTS = 64
STANDARD_INPUT = "-"
INPUT_NAME = "standard input"
JSON_SUFFIX = ".json"
PLAIN_MODES = {"text/plain", "application/json"}  # an agent that lists these alone takes no files


def read_parts(question: str | None, files: Sequence[Path]) -> list[Part]:
    """The parts to send: the question, then a part for each file.

    Raises:
        CommandFailure: the message is empty, or has something that the hub does not take.
    """
    if question is None and not files:
        if is_interactive():
            raise bad_arguments("what is the question? Write it behind the handle, or pipe it in")
        question = STANDARD_INPUT
    if question == STANDARD_INPUT:
        question = find_text(limited(INPUT_NAME, sys.stdin.buffer.read(MAX_BYTES + 1)))
        if question is None:
            raise bad_arguments(f"{INPUT_NAME} is no text in UTF-8; --file PATH sends other files")
        if not question.strip():
            raise bad_arguments("standard input is empty: there is no question")
    parts = [] if question is None else [Part(text=question)]
    parts += [read_file(path) for path in files]
    if len(parts) > MAX_PARTS:
        raise bad_arguments(f"{len(parts)} parts: the hub takes {MAX_PARTS} in one question")
    if not any((part.text or "").strip() or part.data is not UNSET or part.raw for part in parts):
        raise bad_arguments("the question is empty")
    rest = [part for part in parts if part.raw is None]  # other files can be uploaded
    if (size := size_of(rest)) > MAX_BYTES:
        raise bad_arguments(f"the question has {size} bytes, its texts and data: the hub takes {MAX_BYTES}")
    return parts


def size_of(parts: list[Part]) -> int:
    """The bytes of these parts in a message."""
    return len(msgspec.json.encode(parts))


def upload_large(client: Client, parts: list[Part]) -> list[Part]:
    """Upload the largest files until the message is within the hub's limit; returns the parts that name them."""
    parts = [*parts]
    while size_of(parts) > MAX_BYTES and any(part.raw for part in parts):
        at = max(range(len(parts)), key=lambda number: len(parts[number].raw or ""))
        part = parts[at]
        write_note(f"uploading {part.filename}, {len(part.content)} bytes")
        parts[at] = client.upload(part.filename, part.content, part.media_type)
    return parts


def read_file(path: Path) -> Part:
    """A file as a part: the value of a JSON file, the text of a text in UTF-8, the bytes of any other.

    Raises:
        CommandFailure: the file cannot be read, is no JSON though its name says so, or is too large.
    """
    try:
        with path.open("rb") as file:
            content = file.read(MAX_FILE_BYTES + 1)
    except OSError as problem:
        raise bad_arguments(f"--file {path}: {problem.strerror}") from None
    if not content:
        raise bad_arguments(f"--file {path}: the file is empty")
    text = find_text(content)
    if text is not None:
        limited(f"--file {path}", content)
    if len(content) > MAX_FILE_BYTES:
        raise bad_arguments(f"--file {path}: over {MAX_FILE_BYTES} bytes, which the hub takes at most")
    if path.suffix.lower() == JSON_SUFFIX:
        return Part(data=value_of(path, text), media_type="application/json", filename=path.name)
    if text is not None:
        return Part(text=text, filename=path.name)
    encoded = base64.b64encode(content).decode("ascii")
    return Part(raw=encoded, media_type=media_type_of(path), filename=path.name)


def value_of(path: Path, text: str | None) -> Any:
    """The value of a JSON file.

    Raises:
        CommandFailure: the file has no JSON value.
    """
    if text is None:
        raise bad_arguments(f"--file {path}: no JSON: it is no text in UTF-8")
    try:
        return json.loads(text, parse_constant=refuse_constant)
    except (ValueError, RecursionError) as problem:
        raise bad_arguments(f"--file {path}: no JSON: {problem}") from None


def media_type_of(path: Path) -> str:
    """The media type that the name of a file says."""
    guessed, encoding = mimetypes.guess_type(path.name)
    return f"application/{encoding}" if encoding else guessed or "application/octet-stream"


def check_files(parts: Iterable[Part], handle: str, modes: Sequence[str]) -> None:
    """Compare the files among the parts with the media types that the agent's card lists.

    Raises:
        CommandFailure: the agent does not take one of them; nothing was sent.
    """
    taken = ", ".join(modes)
    for part in parts:
        if part.raw is None:
            continue
        kind = part.media_type
        accepted = {kind, f"{kind.partition('/')[0]}/*", "*/*", "*"}
        if PLAIN_MODES.issuperset(modes):
            taken = "text in UTF-8 and JSON alone"
        elif accepted.intersection(modes):
            continue
        name = handle.removeprefix("@")
        raise bad_arguments(f"--file {part.filename}: @{name} takes no {kind}, by its card: it takes {taken}")


def refuse_constant(name: str) -> NoReturn:
    """Raise ValueError: JSON has no NaN and no Infinity, which Python's parser accepts."""
    raise ValueError(f"{name} is no number of JSON")


def limited(name: str, content: bytes) -> bytes:
    """Return the content if it is within the hub's limit of size.

    Raises:
        CommandFailure: the hub does not.
    """
    if len(content) > MAX_BYTES:
        raise bad_arguments(f"{name}: over {MAX_BYTES} bytes, which the hub takes at most")
    return content


def find_text(content: bytes) -> str | None:
    """The text of these bytes; None if they are none in UTF-8, or have a NUL, which the hub does not take."""
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text


def message_options(command: Command) -> Command:
    """Add the options of a message: its files, and what is printed."""
    quiet_help = "Do not print the agent's notes and files on standard error."
    command = click.option("-q", "--quiet", is_flag=True, help=quiet_help)(command)
    command = json_option("Print the result at the end, as one line of JSON of A2A 1.0.")(command)
    return click.option(
        "--file",
        "files",
        multiple=True,
        metavar="PATH",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help=(
            "Send a file too: text as a text part, NAME.json as a data part, any other, such as an image, if the"
            " agent's card lists its media type; 10 MiB at most. May be repeated."
        ),
    )(command)


@click.command()
@click.argument("handle", metavar="@OWNER/SLUG", shell_complete=complete_handle)
@click.argument("question", required=False)
@message_options
@click.option("--task", metavar="ID", default="", help="Answer a task that waits for input.")
@click.option("--context", metavar="ID", default="", help="Continue the conversation of this context id.")
@with_hub
def ask(
    handle: str,
    question: str | None,
    files: tuple[Path, ...],
    as_json: bool,
    task: str,
    context: str,
    quiet: bool,
    connect: Connect,
) -> None:
    """Ask an agent, and print its reply as it comes.

    Without QUESTION, or with -, the question is standard input. When the agent asks back, the command asks you, if
    standard input is a terminal. Ctrl-C cancels the task on the hub; a second Ctrl-C does not wait for the hub.

    \b
    Exit codes:
      0  the agent completed the task        5  it asks for authorization
      1  the task failed, or was refused     6  the task was canceled elsewhere
      2  bad options or arguments            7  the token is missing, or refused
      3  the agent rejected the task         8  the hub refused the request
      4  it asks for input, and no           9  the hub cannot be reached
         terminal is there to ask on         130, 143  Ctrl-C, SIGTERM

    \b
    Examples:
      clawbridge ask @demo/echo "hello"
      git diff | clawbridge ask @ann/reviewer
      clawbridge ask @ann/reviewer "Is this right?" --file notes.md --file plan.json
      clawbridge ask @ann/painter "What is this?" --file a.png
    """
    agent_path(handle)
    parts = read_parts(question, files)
    with connect() as client, StopSignals() as signals:
        check_taken(client, handle, parts)
        parts = upload_large(client, parts)
        talk = TaskConversation(client, handle, prints_reply=not as_json, is_quiet=quiet)
        talk.task_id, talk.context_id = task, context
        code = finish(talk, parts, signals, as_json=as_json)
    end(code)


@click.command()
@click.argument("task", shell_complete=complete_waiting_task)
@click.argument("text", required=False)
@message_options
@with_hub
def reply(
    task: str,
    text: str | None,
    files: tuple[Path, ...],
    as_json: bool,
    quiet: bool,
    connect: Connect,
) -> None:
    """Answer a task that asks for input, and print its agent's reply as it comes.

    TASK: an id that `clawbridge tasks --state input_required` lists. Without TEXT the command asks you on a
    terminal; if there is none, and with -, TEXT is standard input. The exit codes are those of `clawbridge ask`.

    \b
    Example:
      clawbridge reply task-4f1c "Tuesday"
    """
    asks = text is None and not files and is_interactive()
    parts = [] if asks else read_parts(text, files)
    with connect() as client, StopSignals() as signals:
        handle = client.agent_of(task)
        status = client.task(task, agent=handle).status
        if status.name not in WAITING:
            state = status.name.lower().replace("_", " ")
            raise CommandFailure(ExitCode.REFUSED, f"{task} does not wait for an answer: it is {state}")
        if asks:
            signals.allow()
            typed = read_answer(status.text)
            if not typed:
                raise CommandFailure(ExitCode[status.name], "no answer given")
            parts = [Part(text=typed)]
        check_taken(client, handle, parts)
        parts = upload_large(client, parts)
        talk = TaskConversation(client, handle, prints_reply=not as_json, is_quiet=quiet)
        talk.task_id = task
        code = finish(talk, parts, signals, as_json=as_json)
    end(code)


def check_taken(client: Client, handle: str, parts: list[Part]) -> None:
    """Read the agent's card, if there are files among the parts, and check that it takes them.

    Raises:
        CommandFailure: the agent does not.
    """
    if any(part.raw is not None for part in parts):
        request = HubRequest("GET", f"{agent_path(handle)}/extendedAgentCard")
        card = convert(client.url, client.call(request), CardInputModes)
        check_files(parts, handle, card.input_modes)


def finish(talk: TaskConversation, parts: list[Part], signals: StopSignals, *, as_json: bool) -> int:
    """Send a message and follow its task to the end; the exit code. A signal cancels the task."""
    try:
        code: int = converse(talk, parts, signals, asks_back=not as_json and is_interactive())
        if as_json:
            write_json(talk.result())
    except Interrupted:
        talk.end_line()
        with suppress(Interrupted):  # a second signal does not wait for the hub
            report(talk.cancel() if talk.task_id else "interrupted before the hub answered")
        code = 128 + signals.number
    finally:
        talk.end_line()
    return code
