"""`manage.py link_oidc`: let an account at an OpenID Connect provider sign in to an account of the hub."""

from argparse import ArgumentParser
from typing import Any

from accounts.oauth.provider_accounts import CannotLink, link_oidc
from hub.management.command import HubCommand


class Command(HubCommand):
    help = (
        "Give an account to the holder of an account at an OpenID Connect provider, for good. Both names are on"
        " the page that refused them. Works while the hub runs."
    )
    refusals = (CannotLink,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("--login", required=True, help="the account of the hub")
        parser.add_argument("--issuer", required=True, help="the provider, exactly as it names itself")
        parser.add_argument("--subject", required=True, help="the account there: `sub` of its ID tokens")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command, and print the new state."""
        user = link_oidc(options["login"], options["issuer"], options["subject"])
        self.stdout.write(f"@{user.login} is signed in to by {options['subject']} of {options['issuer']} now")
