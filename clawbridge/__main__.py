"""The entry point: `clawbridge`, or `python -m clawbridge`."""

import signal
import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Any

import click
from click.shell_completion import CompletionItem

from clawbridge import VERSION
from clawbridge.artifacts import artifacts
from clawbridge.ask import ask, reply
from clawbridge.completion import completion, options_in
from clawbridge.errors import HubError
from clawbridge.lists import agents, tasks
from clawbridge.sign_in import login, logout
from clawbridge.terminal import as_failure

SETTINGS = {"help_option_names": ["-h", "--help"], "max_content_width": 100}
REST_OF_LINE = {"ignore_unknown_options": True, "allow_interspersed_args": False, "help_option_names": []}


def run_program(package: str, arguments: list[str], name: str) -> int:
    """Run the program of a package, loaded only now: the hub takes a second, and most commands do not need it."""
    code: int = import_module(".__main__", package).main(arguments, name)
    return code


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
    """Ask the agents of a Clawbridge hub, connect agents to it, or run a hub.

    \b
    First steps with a hub that runs:
      clawbridge login --hub https://hub.example
      clawbridge agents
      clawbridge ask @demo/echo "hello"
    """


@clawbridge.command()
@click.option("--json", "as_json", is_flag=True, help="When the hub serves, print one line of JSON.")
@click.pass_context
def serve(ctx: click.Context, as_json: bool) -> None:
    """Run a hub on this machine, until Ctrl-C.

    Settings are environment variables, such as HOST, PORT, PUBLIC_URL and DATA_DIR, the folder of its database and
    keys (without it: ~/.local/share/clawbridge). All are in docs/reference/settings.md.

    \b
    A hub to try, with a demo agent and a sign-in under any name:
      DEMO=1 DEV_LOGIN=1 GATEWAY=1 clawbridge serve
    """
    ctx.exit(run_program("hub", ["serve", *(["--json"] if as_json else [])], "clawbridge"))


@clawbridge.command(context_settings=REST_OF_LINE)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="COMMAND …")
@click.pass_context
def manage(ctx: click.Context, arguments: tuple[str, ...]) -> None:
    """Administer the hub of DATA_DIR (`manage help`)."""
    ctx.exit(run_program("hub", list(arguments), "clawbridge manage"))


@clawbridge.command(cls=Connect, context_settings=REST_OF_LINE)
@click.argument("arguments", nargs=-1, type=click.UNPROCESSED, metavar="OPTIONS …")
@click.pass_context
def connect(ctx: click.Context, arguments: tuple[str, ...]) -> None:
    """Make a program an agent (`connect --help`)."""
    ctx.exit(run_program("clawbridge.connect", list(arguments), "clawbridge connect"))


for command in (ask, reply, agents, tasks, artifacts, login, logout, completion):
    clawbridge.add_command(command)


def main() -> Any:
    """Run the command line."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):
            stream.reconfigure(errors="replace")  # of letters that the locale cannot write
    return clawbridge(prog_name="clawbridge")


if __name__ == "__main__":
    main()
