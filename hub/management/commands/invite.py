"""`manage.py invite`: a link that sets up an account."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError

from accounts import invitations
from accounts.invitations import CannotInvite
from accounts.tokens import BadLogin
from hub.management.command import HubCommand


class Command(HubCommand):
    help = (
        "Make a link that sets up an account with a passkey or a password, and signs in. It works once and for 24"
        " hours, is shown this once, and may give an account that is there a new way to sign in. Works while the"
        " hub runs."
    )
    refusals = (BadLogin, CannotInvite)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("login", help="of the account; it is made when there is none")
        parser.add_argument("--admin", action="store_true", help="also make the user a member of the staff")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the link, and nothing else, on standard output."""
        try:
            invited = invitations.invite(options["login"], is_admin=options["admin"], made_by=None)
        except DatabaseError:
            raise CommandError("the database has no tables yet: start the hub once, or run migrate") from None
        self.stdout.write(invited.url)
