"""`manage.py mint_token`: a token for an operator, a script or a test."""

import json
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from accounts.models import Credential
from accounts.tokens import BadLogin, get_or_create_local_user, mint


class Command(BaseCommand):
    help = "Mint a token, making its user when needed. The token is shown this once; works while the hub runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Its options."""
        parser.add_argument(
            "--login", required=True, help="whose token; a local account is made when there is none"
        )
        parser.add_argument("--kind", required=True, choices=Credential.Kind.values)
        parser.add_argument("--name", default="minted by an operator", help="what to call it in lists")
        parser.add_argument("--admin", action="store_true", help="also make the user a member of the staff")
        parser.add_argument("--json", action="store_true", help="print a JSON object instead of the bare token")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the token, and nothing else, on standard output."""
        try:
            user = get_or_create_local_user(options["login"])
        except BadLogin as bad:
            raise CommandError(str(bad)) from None
        except DatabaseError:
            raise CommandError("the database has no tables yet: start the hub once, or run migrate") from None
        if not user.is_active:
            raise CommandError(f"{user.login} is suspended: a token would not work")
        if options["admin"] and not user.is_staff:
            user.is_staff = user.is_superuser = True
            user.save(update_fields=["is_staff", "is_superuser"])
        minted = mint(user, Credential.Kind(options["kind"]), options["name"])
        shown = {"token": minted.token, "login": user.login, "kind": options["kind"]}
        self.stdout.write(json.dumps(shown) if options["json"] else minted.token)
