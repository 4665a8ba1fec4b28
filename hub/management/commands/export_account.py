"""`manage.py export_account`: everything of one user."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from accounts.models import User
from hub.account_data.export import pieces
from hub.management.command import HubCommand


class Command(HubCommand):
    help = "Write everything of one user as lines of JSON to standard output. Works while the hub runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("--login", required=True, help="whose account")

    def handle(self, *args: Any, **options: Any) -> None:
        """A line for each row."""
        user = User.objects.named(options["login"])
        if user is None:
            raise CommandError(f"there is no account @{options['login']}")
        for piece in pieces(user):
            self.stdout.write(piece, ending="")
