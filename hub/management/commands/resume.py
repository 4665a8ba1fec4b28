"""`manage.py resume`: lift a halt."""

from argparse import ArgumentParser
from typing import Any

from agents.core import halt_rules
from hub.management.command import HubCommand
from hub.management.commands.halt import add_subject, subject_of


class Command(HubCommand):
    help = (
        "Let a halted agent, owner or caller go on, also if a member of staff halted it. Works while the hub runs."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        add_subject(parser)

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command, and print the new state."""
        count = halt_rules.lift_halts(subject_of(options).halts, by=None)
        self.stdout.write("lifted" if count else "was not halted")
