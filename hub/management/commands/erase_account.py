"""`manage.py erase_account`: erase one user."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from accounts.models import User
from hub.account_data.erasure import CannotClose, close, erase_unless_busy
from hub.account_data.tables import EXPORTED
from hub.management.command import HubCommand, add_login, owner_of

LATER = "the hub erases the rest when it has erased others, and no question of theirs is open"


class Command(HubCommand):
    help = (
        "Erase an account for good: tokens, agents, sessions, transcripts, files, webhooks, tasks. Works while the"
        " hub runs."
    )
    refusals = (CannotClose,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        add_login(parser, "whose account")
        parser.add_argument(
            "--yes", action="store_true", help="do it; without this, count their rows and change nothing"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Erase the account, or print what would be erased."""
        user = owner_of(options)
        if not options["yes"]:
            self._count(user)
            raise CommandError(f"this erases @{user.login} for good; say so with --yes, after export_account")
        closed = close(user.pk, by_operator=True)
        left = "" if erase_unless_busy(closed) else f"; {LATER}"
        self.stdout.write(f"@{user.login} is erased{left}")

    def _count(self, user: User) -> None:
        self.stdout.write(f"@{user.login} has so many rows, by the tables of export_account:")
        for part in EXPORTED:
            if count := part.rows(user).count():
                self.stdout.write(f"{count:>9} {part.name}")
        self.stdout.write("What they asked others' agents stays, without their words and name.")
