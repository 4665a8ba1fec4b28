"""`manage.py mint_token`: a token for an operator, a script or a test."""

import json
import re
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from typing import Any

from django.core.management.base import BaseCommand, CommandError
from django.db import DatabaseError

from accounts.api.tokens import JWT_FORMAT, NewAppToken
from accounts.models import Credential
from accounts.signing import NoKey
from accounts.tokens import NO_LIMITS, BadLogin, Limits, get_or_create_local_user, mint

LIFETIME = re.compile(r"([0-9]{1,9})([smhd]?)")
UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 24 * 3600}


class Command(BaseCommand):
    help = "Mint a token, making its user when needed. The token is shown this once; works while the hub runs."

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Its options."""
        parser.add_argument(
            "--login", required=True, help="whose token; a local account is made when there is none"
        )
        parser.add_argument("--kind", default=Credential.Kind.APP, choices=Credential.Kind.values)
        parser.add_argument("--name", default="minted by an operator", help="what to call it in lists")
        parser.add_argument("--admin", action="store_true", help="also make the user a member of the staff")
        parser.add_argument(
            "--scopes", "--scope", help="of an app token: ask,read,publish,admin, or some; or ask:owner/slug"
        )
        parser.add_argument("--agent", help="of an app token: owner/slug of the one agent that it asks")
        parser.add_argument(
            "--expires-in",
            "--expires",
            type=_read_lifetime_s,
            help="seconds that an app or channel token is good for, or 90m, 1h, 30d",
        )
        parser.add_argument(
            "--format", choices=["opaque", JWT_FORMAT], help="of an app token: jwt is one that others can verify"
        )
        parser.add_argument("--json", action="store_true", help="print a JSON object instead of the bare token")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the token, and nothing else, on standard output."""
        limits = _limits(options)
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
        try:
            minted = mint(user, Credential.Kind(options["kind"]), options["name"], limits=limits)
        except NoKey:
            raise CommandError("the signing key cannot be read: run rotate_signing_key, or set its key") from None
        shown = {"token": minted.token, "login": user.login, "kind": options["kind"]}
        self.stdout.write(json.dumps(shown) if options["json"] else minted.token)


def _read_lifetime_s(text: str) -> int:
    """Seconds, of a number with or without a unit."""
    found = LIFETIME.fullmatch(text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is no time: want seconds, or 90m, 1h, 30d")
    return int(found[1]) * UNITS_S[found[2]]


def _limits(options: dict[str, Any]) -> Limits:
    """What the token is limited to, checked as the body of a mint over REST is."""
    asked = {
        "scopes": options["scopes"].split(",") if options["scopes"] is not None else None,
        "agent": options["agent"],
        "expires_in": options["expires_in"],
        "format": options["format"],
    }
    given = {name: value for name, value in asked.items() if value is not None}
    kind = Credential.Kind(options["kind"])
    if kind == Credential.Kind.SESSION and given:
        raise CommandError("a session is limited to nothing and lasts 30 days: make a token of the kind app")
    if kind == Credential.Kind.CHANNEL and given.keys() - {"expires_in"}:
        raise CommandError("--scopes, --agent and --format are for tokens of the kind app")
    body = NewAppToken(data={"name": "x", **given})
    if not body.is_valid():
        raise CommandError("; ".join(_flaws(body.errors)))
    return body.limits() if given else NO_LIMITS


def _flaws(errors: Any) -> Iterator[str]:
    """Each option that has a flaw, with its first one."""
    for name, said in errors.items():
        while isinstance(said, list | dict):
            said = next(iter(said.values() if isinstance(said, dict) else said))
        yield f"--{name.replace('_', '-')}: {said}"
