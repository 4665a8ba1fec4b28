"""Shell completion: the scripts for bash, zsh and fish, and the handles of agents."""

import re
from collections.abc import Callable
from contextlib import redirect_stderr, suppress
from io import StringIO
from threading import Thread
from typing import Any

import click
from click.shell_completion import CompletionItem, FishComplete, add_completion_class, get_completion_class

from clawbridge.client import Client
from clawbridge.errors import HubError
from clawbridge.sign_in import open_hub
from clawbridge.terminal import CommandFailure, ExitCode, one_line, write_json

ANSWER_WITHIN_S = 2.0
MAX_SUGGESTIONS = 100
MAX_TASKS = 50
MAX_HELP_CHARS = 60
COMPLETE_VARIABLE = "_CLAWBRIDGE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
Items = list[CompletionItem[str]]
# Bash parts words at @, = and : too. It replaces only what follows the last = or :, but the @ of a handle as well.
BASH_SOURCE = """\
%(complete_func)s() {
    local IFS=$'\\n' type value letter breaks="" kept=""
    local line="${COMP_LINE:0:COMP_POINT}"
    local word="${line##*[[:space:]]}"
    for letter in = :; do
        [[ $COMP_WORDBREAKS == *"$letter"* ]] && breaks+=$letter
    done
    [[ -n $breaks && $word == *[$breaks]* ]] && kept="${word%%"${word##*[$breaks]}"}"
    COMPREPLY=()
    while IFS=, read -r type value; do
        case $type in
            dir) compopt -o dirnames ;;
            file) compopt -o default ;;
            plain) COMPREPLY+=("${value#"$kept"}") ;;
        esac
    done < <(COMP_WORDS="$line" COMP_CWORD="$word" %(complete_var)s=bash_complete "$1")
}

complete -o nosort -F %(complete_func)s %(prog_name)s
"""


@add_completion_class
class BashComplete(FishComplete):
    """Completion in bash. The script passes the line and its last word, as that of fish does."""

    name = "bash"
    source_template = BASH_SOURCE

    def format_completion(self, item: CompletionItem[str]) -> str:
        """The kind of the item and its value; bash shows no help."""
        return f"{item.type},{item.value}"


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


def complete_task(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """The ids of the newest tasks."""
    return complete_task_in(ctx, "", incomplete)


def complete_waiting_task(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> Items:
    """The ids of the newest tasks that wait for input."""
    return complete_task_in(ctx, "input_required", incomplete)


def complete_task_in(ctx: click.Context, state: str, incomplete: str) -> Items:
    """The ids of the newest tasks in this state that begin with what was typed, each with its question."""

    def find(client: Client) -> Items:
        page = client.tasks(state=state, limit=MAX_TASKS)
        about = {one.task_id: f"@{one.agent}: {one_line(one.question)[:MAX_HELP_CHARS]}" for one in page.items}
        return [
            CompletionItem(task, help=text) for task, text in about.items() if task and task.startswith(incomplete)
        ]

    return ask_hub(ctx, find)


def ask_hub(ctx: click.Context, find: Callable[[Client], Items]) -> Items:
    """What `find` gets from the hub; nothing, and no message, without a sign-in or an answer in time.

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


def options_in(help_text: str) -> list[str]:
    """The long options that a help text names, in their order."""
    return list(dict.fromkeys(re.findall(r"(?<![\w-])--[a-z][a-z-]*", help_text)))


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.option("--json", "as_json", is_flag=True, help="Print the shell and its script as one line of JSON.")
@click.pass_context
def completion(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print a script that completes commands, options and handles.

    \b
    bash   clawbridge completion bash > ~/.local/share/bash-completion/completions/clawbridge
    zsh    clawbridge completion zsh > "${fpath[1]}/_clawbridge"
    fish   clawbridge completion fish > ~/.config/fish/completions/clawbridge.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise CommandFailure(ExitCode.BAD_ARGUMENTS, f"no completion for {shell}")
    script = found(ctx.find_root().command, {}, "clawbridge", COMPLETE_VARIABLE).source()
    if as_json:
        write_json({"shell": shell, "script": script})
    else:
        click.echo(script)
