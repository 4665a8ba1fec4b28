"""`manage.py link_github`: decides whose login it is that a local account holds."""

from argparse import ArgumentParser
from typing import Any

from accounts.oauth.provider_accounts import CannotLink, link, rename
from hub.management.command import HubCommand


class Command(HubCommand):
    help = (
        "Settle a login that a local account holds: give the account to a GitHub account for good, or rename it so"
        " that the GitHub account of that login can join by itself. Works while the hub runs."
    )
    refusals = (CannotLink,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("--login", required=True, help="the local account")
        choice = parser.add_mutually_exclusive_group(required=True)
        choice.add_argument("--github-id", type=int, help="the number of the GitHub account whose it is")
        choice.add_argument("--rename", metavar="LOGIN", help="a new login for the local account")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command, and print the new state."""
        if options["rename"]:
            user = rename(options["login"], options["rename"])
            self.stdout.write(f"the local account is @{user.login} now; its agents keep their handles")
        else:
            user = link(options["login"], options["github_id"])
            self.stdout.write(f"@{user.login} is signed in to by GitHub account {user.github_id} now")
