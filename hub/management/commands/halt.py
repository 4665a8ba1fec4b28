"""`manage.py halt`: the kill switch."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from agents.core import halt_rules
from agents.core.halt_rules import HaltSubject, NoSuchSubject, get_halt_subject
from agents.models import Halt
from hub.management.command import HubCommand


def add_subject(parser: ArgumentParser) -> None:
    """The options that name a subject, of which a command takes one."""
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--agent", metavar="OWNER/SLUG", help="one agent")
    choice.add_argument("--owner", metavar="LOGIN", help="all agents and sessions of a user")
    choice.add_argument("--caller", metavar="LOGIN", help="all that a user asks")


def subject_of(options: Mapping[str, Any]) -> HaltSubject:
    """The subject that the options name.

    Raises:
        CommandError: nothing has the name.
    """
    kind = next(str(one) for one in Halt.Kind if options[one])
    try:
        return get_halt_subject(kind, options[kind])
    except NoSuchSubject as unknown:
        raise CommandError(f"{unknown}: {options[kind]}") from None


class Command(HubCommand):
    help = (
        "Halt an agent, all agents and sessions of an owner, or the questions of a caller: asks are refused, open"
        " ones end, sockets and streams close, in every process within a second. Works while the hub runs."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        add_subject(parser)
        parser.add_argument("--reason", default="", help="for the record")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command, and print the new state."""
        made, is_new = halt_rules.halt_subject(
            subject_of(options), by=None, by_staff=True, reason=options["reason"]
        )
        self.stdout.write(f"{made.whom}: halted" if is_new else f"{made.whom}: halted since {made.made_at:%F %T}")
