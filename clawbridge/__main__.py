"""The entry point: `clawbridge`, or `python -m clawbridge`; and the scripts of `clawbridge completion`."""

import os
import re
import signal
import sys
from importlib import import_module
from importlib.util import find_spec
from io import TextIOWrapper
from pathlib import Path
from typing import Any, NoReturn

import click
from click.shell_completion import CompletionItem, FishComplete, add_completion_class, get_completion_class

from clawbridge import VERSION, HubError
from clawbridge.terminal import CommandFailure, ExitCode, as_failure, bad_arguments, write_json

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


SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
REST_OF_LINE = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}
MODULES = {  # of the subcommands that are imported when they are used: a client of HTTP is half of the start
    "agents": "lists",
    "artifacts": "artifacts",
    "ask": "ask",
    "evaluations": "evaluations",
    "failures": "failures",
    "favourites": "favourites",
    "files": "files",
    "groups": "groups",
    "login": "sign_in",
    "logout": "sign_in",
    "rate": "ratings",
    "reply": "ask",
    "share": "shares",
    "shared": "shares",
    "shares": "shares",
    "tasks": "lists",
    "thread": "threads",
    "threads": "threads",
    "unshare": "shares",
    "trace": "trace",
}
CHECKOUT = Path(__file__).parent.parent
WITHOUT_HUB = "no hub is installed beside this command: in a checkout run `pipx install .`, then `clawbridge-hub`"


def run_hub(*arguments: str) -> NoReturn:
    """Replace this process by the hub's program: that of the checkout, or of the wheel `clawbridge-hub`."""
    wheel = find_spec("clawbridge_hub")
    if (CHECKOUT / "hub" / "wheel").exists():
        program = CHECKOUT / "manage.py"
    elif wheel is not None and wheel.origin is not None:
        program = Path(wheel.origin).parent
    else:
        raise bad_arguments(WITHOUT_HUB)
    os.execv(sys.executable, [sys.executable, str(program), *arguments])  # noqa: S606  our own program


class Connect(click.Command):
    """Passes its arguments to the connector, which has its own options and help."""

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """The connector's options."""
        help_text = (
            import_module(".__main__", "clawbridge.connect").build_parser("clawbridge connect").format_help()
        )
        return [CompletionItem(one) for one in options_in(help_text) if one.startswith(incomplete)]


class Root(click.Group):
    """The command without a subcommand."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the subcommands."""
        return sorted([*super().list_commands(ctx), *MODULES])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The subcommand of a name."""
        if cmd_name not in MODULES:
            return super().get_command(ctx, cmd_name)
        command: click.Command = getattr(import_module(f"clawbridge.{MODULES[cmd_name]}"), cmd_name)
        return command

    def invoke(self, ctx: click.Context) -> Any:
        """Run the subcommand; Ctrl-C ends it with the exit code of a signal."""
        try:
            return super().invoke(ctx)
        except HubError as problem:
            raise as_failure(problem) from None
        except (KeyboardInterrupt, click.Abort):
            click.echo(err=True)
            raise click.exceptions.Exit(128 + signal.SIGINT) from None


@click.group(cls=Root, context_settings=SETTINGS)
@click.version_option(VERSION, prog_name="clawbridge", message="%(prog)s %(version)s")
def clawbridge() -> None:
    """Ask the agents of a Clawbridge hub, and connect agents to it.

    \b
    First steps with a hub that runs:
      clawbridge login --hub https://hub.example
      clawbridge agents
      clawbridge ask @demo/echo "hello"
    """


@clawbridge.command()
@click.option("--json", "as_json", is_flag=True, help="When the hub serves, print one line of JSON.")
def serve(as_json: bool) -> None:
    """Run a hub (`clawbridge-hub serve`), where one is installed."""
    run_hub("serve", *(["--json"] if as_json else []))


@clawbridge.command(context_settings=REST_OF_LINE)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="COMMAND …")
def manage(arguments: tuple[str, ...]) -> None:
    """Administer the hub that is installed (`clawbridge-hub help`)."""
    run_hub(*arguments)


@clawbridge.command(cls=Connect, context_settings=REST_OF_LINE)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="OPTIONS …")
@click.pass_context
def connect(ctx: click.Context, arguments: tuple[str, ...]) -> None:
    """Make a program an agent (`connect --help`)."""
    ctx.exit(import_module("clawbridge.connect.__main__").main(arguments, "clawbridge connect"))


clawbridge.add_command(completion)


def main() -> Any:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # of letters that the locale cannot write
    return clawbridge(prog_name="clawbridge")


if __name__ == "__main__":
    main()
