"""`clawbridge ask` and `clawbridge reply`: one message, its reply as it comes, and how the task ended."""

from contextlib import suppress
from pathlib import Path

import click

from clawbridge.calls import Request, agent_path, convert
from clawbridge.client import Client
from clawbridge.completion import complete_handle, complete_waiting_task
from clawbridge.conversation import Conversation, Interrupted, StopSignals, converse
from clawbridge.question import check_files, read_parts
from clawbridge.shapes import WAITING, Card, Part
from clawbridge.sign_in import Command, connection_options, open_hub
from clawbridge.terminal import (
    CommandFailure,
    ExitCode,
    end,
    is_interactive,
    read_answer,
    report,
    write_json,
)


def message_options(command: Command) -> Command:
    """Add the options of a message: its files, and what is printed."""
    quiet_help = "Do not print the agent's notes and files on standard error."
    command = click.option("-q", "--quiet", is_flag=True, help=quiet_help)(command)
    json_help = "Print the result at the end, as one line of JSON of A2A 1.0."
    command = click.option("--json", "as_json", is_flag=True, help=json_help)(command)
    return click.option(
        "--file",
        "files",
        multiple=True,
        metavar="PATH",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help=(
            "Send a file too: text as a text part, NAME.json as a data part, any other, such as an image, if the"
            " agent's card lists its media type. May be repeated."
        ),
    )(command)


@click.command()
@click.argument("handle", metavar="@OWNER/SLUG", shell_complete=complete_handle)
@click.argument("question", required=False)
@message_options
@click.option("--task", metavar="ID", default="", help="Answer a task that waits for input.")
@click.option("--context", metavar="ID", default="", help="Continue the conversation of this context id.")
@connection_options
def ask(
    handle: str,
    question: str | None,
    files: tuple[Path, ...],
    as_json: bool,
    task: str,
    context: str,
    quiet: bool,
    hub: str | None,
    token: str | None,
    token_file: Path | None,
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
    with open_hub(hub, token, token_file) as client, StopSignals() as signals:
        check_taken(client, handle, parts)
        talk = Conversation(client, handle, prints_reply=not as_json, is_quiet=quiet)
        talk.task_id, talk.context_id = task, context
        code = finish(talk, parts, signals, as_json=as_json)
    end(code)


@click.command()
@click.argument("task", shell_complete=complete_waiting_task)
@click.argument("text", required=False)
@message_options
@connection_options
def reply(
    task: str,
    text: str | None,
    files: tuple[Path, ...],
    as_json: bool,
    quiet: bool,
    hub: str | None,
    token: str | None,
    token_file: Path | None,
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
    with open_hub(hub, token, token_file) as client, StopSignals() as signals:
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
        talk = Conversation(client, handle, prints_reply=not as_json, is_quiet=quiet)
        talk.task_id = task
        code = finish(talk, parts, signals, as_json=as_json)
    end(code)


def check_taken(client: Client, handle: str, parts: list[Part]) -> None:
    """Read the agent's card, if there are files among the parts, and check that it takes them.

    Raises:
        Failure: the agent does not.
    """
    if any(part.raw is not None for part in parts):
        request = Request("GET", f"{agent_path(handle)}/extendedAgentCard")
        card = convert(client.url, client.call(request), Card)
        check_files(parts, handle, card.input_modes)


def finish(talk: Conversation, parts: list[Part], signals: StopSignals, *, as_json: bool) -> int:
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
