"""`clawbridge completion`: the scripts by which bash, zsh and fish complete the command."""

import re

import click
from click.shell_completion import CompletionItem, FishComplete, add_completion_class, get_completion_class

from clawbridge.terminal import CommandFailure, ExitCode, write_json

COMPLETE_VARIABLE = "_CLAWBRIDGE_COMPLETE"
SHELLS = ("bash", "zsh", "fish")
# Bash splits words at @, = and : too. It replaces only what follows the last = or :, but also the @ of a handle.
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
