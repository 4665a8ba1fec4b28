"""`manage.py scim_token`: the token with which an identity provider creates and removes users and groups."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from accounts import settings
from accounts.scim_tokens import CannotMakeToken, end_scim_token, make_scim_token
from hub.management.command import HubCommand


class Command(HubCommand):
    help = (
        "Make the hub's SCIM token, and print it this once; an earlier one ends. Without a token the hub has no"
        " SCIM. Works while the hub runs."
    )
    refusals = (CannotMakeToken,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument(
            "--issuer",
            default="",
            help="the provider of OIDC_ISSUER at which these users sign in, if there are several",
        )
        choice.add_argument("--off", action="store_true", help="end the token; users and groups stay as they are")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the token on standard output, and the address on standard error."""
        if options["off"]:
            if not end_scim_token():
                raise CommandError("the hub has no SCIM token")
            self.stdout.write("SCIM is off")
            return
        made = make_scim_token(options["issuer"])
        self.stderr.write(f"base URL: {settings.PUBLIC_URL}/scim/v2")
        self.stdout.write(made.token)
