"""Shell completion: the scripts for bash, zsh and fish, by click, and the handles of agents."""

import re

import click
from click.shell_completion import CompletionItem, get_completion_class

from clawbridge.hub_client import AgentPage
from clawbridge.sign_in import open_hub
from clawbridge.terminal import CommandFailure, ExitCode, one_line

ANSWER_WITHIN_S = 2.0
MAX_SUGGESTIONS = 100
COMPLETE_VARIABLE = "_CLAWBRIDGE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")


def complete_handle(ctx: click.Context, parameter: click.Parameter, incomplete: str) -> list[CompletionItem]:
    """The handles that begin with what was typed; none without a sign-in, or when the hub is slow."""
    typed = incomplete.removeprefix("@")
    options = (ctx.params.get("hub"), None, ctx.params.get("token_file"))
    try:
        with open_hub(*options, within_s=ANSWER_WITHIN_S) as client:
            answer = client.call("GET", "/api/v1/agents", query={"q": typed, "limit": MAX_SUGGESTIONS})
            page = client.read(answer, AgentPage)
    except CommandFailure:
        return []
    return [
        CompletionItem(f"@{one.handle}", help=one_line(one.tagline or one.name))
        for one in page.items
        if one.handle.lower().startswith(typed.lower())
    ]


def options_in(help_text: str) -> list[str]:
    """The long options that a help text names, in their order."""
    return list(dict.fromkeys(re.findall(r"(?<![\w-])--[a-z][a-z-]*", help_text)))


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def completion(ctx: click.Context, shell: str) -> None:
    """Print a script that completes commands, options and handles.

    \b
    bash   clawbridge completion bash > ~/.local/share/bash-completion/completions/clawbridge
    zsh    clawbridge completion zsh > "${fpath[1]}/_clawbridge"
    fish   clawbridge completion fish > ~/.config/fish/completions/clawbridge.fish
    """
    found = get_completion_class(shell)
    if found is None:
        raise CommandFailure(ExitCode.BAD_ARGUMENTS, f"no completion for {shell}")
    click.echo(found(ctx.find_root().command, {}, "clawbridge", COMPLETE_VARIABLE).source())
