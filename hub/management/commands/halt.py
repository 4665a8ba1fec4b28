"""`manage.py halt`: the kill switch."""

from argparse import ArgumentParser
from typing import Any

from agents.core import halt_rules
from hub.management.command import HubCommand
from hub.management.subjects import add_subject, subject_of


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
        """Say what is now so."""
        made, is_new = halt_rules.halt_subject(
            subject_of(options), by=None, by_staff=True, reason=options["reason"]
        )
        self.stdout.write(f"{made.whom}: halted" if is_new else f"{made.whom}: halted since {made.made_at:%F %T}")
