"""`manage.py export_account`: everything of one user."""

from argparse import ArgumentParser
from typing import Any

from hub.account_data.export import pieces
from hub.management.command import HubCommand, add_login, owner_of


class Command(HubCommand):
    help = "Write everything of one user as lines of JSON to standard output. Works while the hub runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        add_login(parser, "whose account")

    def handle(self, *args: Any, **options: Any) -> None:
        """A line for each row."""
        for piece in pieces(owner_of(options)):
            self.stdout.write(piece, ending="")
