"""Completion of handles and of tasks, which the hub lists."""

from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from functools import partial
from io import StringIO
from threading import Thread
from typing import Any

import click
from click.shell_completion import CompletionItem

from clawbridge import HubError
from clawbridge.client import Client
from clawbridge.sign_in import open_hub
from clawbridge.terminal import CommandFailure, one_line

ANSWER_WITHIN_S = 2.0
MAX_SUGGESTIONS = 100
MAX_TASKS = 50
MAX_HELP_CHARS = 60
Items = list[CompletionItem[str]]


def complete_handle(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """The handles that begin with what was typed."""
    typed = incomplete.removeprefix("@")

    def find(client: Client) -> Items:
        return [
            CompletionItem(f"@{one.handle}", help=one_line(one.tagline or one.name))
            for one in client.agents(typed, limit=MAX_SUGGESTIONS).items
            if one.handle.lower().startswith(typed.lower())
        ]

    return ask_hub(ctx, find)


def complete_task(ctx: click.Context, parameter: click.Parameter, incomplete: str, *, state: str = "") -> Items:
    """The ids of the newest tasks, in this state, that begin with what was typed; each with its question."""

    def find(client: Client) -> Items:
        page = client.tasks(state=state, limit=MAX_TASKS)
        about = {one.task_id: f"@{one.agent}: {one_line(one.question)[:MAX_HELP_CHARS]}" for one in page.items}
        return [
            CompletionItem(task, help=text) for task, text in about.items() if task and task.startswith(incomplete)
        ]

    return ask_hub(ctx, find)


complete_waiting_task = partial(complete_task, state="input_required")


def ask_hub(ctx: click.Context, find: Callable[[Client], Items]) -> Items:
    """The items that `find` gets from the hub; none, and no message, without a sign-in or an answer in time.

    The thread is left behind: no time-out of HTTP bounds the look-up of a name, or an answer that drips.
    """
    options: tuple[Any, ...] = (ctx.params.get("hub"), None, ctx.params.get("token_file"))
    found: Items = []

    def run() -> None:
        with suppress(CommandFailure, HubError), open_hub(*options, within_s=ANSWER_WITHIN_S) as client:
            found.extend(find(client))

    with redirect_stderr(StringIO()):
        thread = Thread(target=run, daemon=True)
        thread.start()
        thread.join(ANSWER_WITHIN_S)
    return [*found]
