"""`manage.py mint_token`: a token for an operator, a script or a test."""

import json
import re
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError
from django.utils.module_loading import import_string

from accounts.models import Credential, User
from accounts.signing import NoKey
from accounts.tokens import (
    JWT_FORMAT,
    NO_LIMITS,
    BadLogin,
    NoSuchSeat,
    TokenLimits,
    check_seat,
    get_or_create_local_user,
    mint,
)
from agnt.models import ApiKey
from agnt.service.keys import mint_key
from clawbridge.agnt.fields import is_name
from hub.management.command import HubCommand

LIFETIME = re.compile(r"([0-9]{1,9})([smhd]?)")
OF_AGNT = ("tier", "customer", "senders")
MAX_CUSTOMER_CHARS = 100
UNITS_S = {"": 1, "s": 1, "m": 60, "h": 3600, "d": 24 * 3600}


class Command(HubCommand):
    help = "Mint a token, making its user when needed. The token is shown this once; works while the hub runs."
    refusals = (BadLogin,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument(
            "--login", required=True, help="whose token; a local account is made when there is none"
        )
        parser.add_argument("--kind", default=Credential.Kind.APP, choices=Credential.Kind.values)
        parser.add_argument("--name", default="minted by an operator", help="what to call it in lists")
        parser.add_argument("--admin", action="store_true", help="also make the user a member of the staff")
        parser.add_argument(
            "--scopes",
            "--scope",
            help="of an app token: ask,read,publish,admin, or some; or ask:owner/slug."
            " Of an AGNT key: query, booking or full",
        )
        parser.add_argument("--tier", choices=ApiKey.Tier.values, help="of an AGNT key; without it free")
        parser.add_argument("--customer", help="of an AGNT key: who is invoiced; without it the key alone")
        parser.add_argument(
            "--senders", help="of an AGNT key: the names it may send as, separated by commas; without it all"
        )
        parser.add_argument("--agent", help="of an app token: owner/slug of the one agent that it asks")
        parser.add_argument(
            "--expires-in",
            "--expires",
            type=_read_lifetime_s,
            help="seconds that a token is good for, but a session, or 90m, 1h, 30d",
        )
        parser.add_argument(
            "--format", choices=["opaque", JWT_FORMAT], help="of an app token: jwt is one that others can verify"
        )
        parser.add_argument("--json", action="store_true", help="print a JSON object instead of the bare token")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the token, and nothing else, on standard output."""
        is_agnt = options["kind"] == Credential.Kind.AGNT
        if not is_agnt and any(options[name] is not None for name in OF_AGNT):
            raise CommandError("--tier, --customer and --senders are for keys of the kind agnt")
        limits = NO_LIMITS if is_agnt else _limits(options)
        key_options = _read_key_options(options) if is_agnt else {}
        try:
            user = get_or_create_local_user(options["login"])
        except DatabaseError:
            raise CommandError("the database has no tables yet: start the hub once, or run migrate") from None
        if not user.is_active:
            raise CommandError(f"{user.login} is suspended: a token would not work")
        if options["admin"] and not user.is_staff:
            user.is_staff = user.is_superuser = True
            user.save(update_fields=["is_staff", "is_superuser"])
        if is_agnt:
            self.stdout.write(_mint_agnt_key(user, options, key_options))
            return
        try:
            minted = mint(user, Credential.Kind(options["kind"]), options["name"], limits=limits)
        except NoKey:
            raise CommandError("the signing key cannot be read: run rotate_signing_key, or set its key") from None
        shown = {"token": minted.token, "login": user.login, "kind": options["kind"]}
        self.stdout.write(json.dumps(shown) if options["json"] else minted.token)


def _mint_agnt_key(user: User, options: dict[str, Any], key_options: dict[str, Any]) -> str:
    """The text to print: a new key of the user's network, or JSON with its signing secret too."""
    made = mint_key(user, options["name"], **key_options)
    if not options["json"]:
        return made.token
    shown = {"token": made.token, "login": user.login, "kind": options["kind"]}
    shown |= {"tier": made.key.tier, "scope": made.key.scope, "customer": made.key.customer}
    return json.dumps(shown | {"key_id": str(made.key.public_id), "signing_secret": made.secret})


def _read_key_options(options: dict[str, Any]) -> dict[str, Any]:
    """The arguments of `mint_key`."""
    if options["agent"] is not None or options["format"] is not None:
        raise CommandError("--agent and --format are for tokens of the kind app")
    scope = options["scopes"] or ApiKey.Scope.QUERY
    if scope not in ApiKey.Scope.values:
        raise CommandError(f"--scope: want one of {', '.join(ApiKey.Scope.values)}")
    senders = [one.strip() for one in (options["senders"] or "").split(",") if one.strip()]
    if wrong := [one for one in senders if not is_name(one)]:
        raise CommandError(f"--senders: {wrong[0]!r} cannot be the `from` of an envelope")
    customer = options["customer"] or ""
    if len(customer) > MAX_CUSTOMER_CHARS or "\0" in customer:
        raise CommandError(f"--customer: want at most {MAX_CUSTOMER_CHARS} characters")
    lifetime_s = options["expires_in"]
    limits = _checked("NewToken", {"expires_in": lifetime_s}) if lifetime_s is not None else NO_LIMITS
    return {
        "tier": options["tier"] or ApiKey.Tier.FREE,
        "scope": scope,
        "customer": customer,
        "senders": senders,
        "lifetime": limits.lifetime,
    }


def _read_lifetime_s(text: str) -> int:
    """Seconds, of a number with or without a unit."""
    found = LIFETIME.fullmatch(text)
    if found is None:
        raise ArgumentTypeError(f"{text!r} is no time: want seconds, or 90m, 1h, 30d")
    return int(found[1]) * UNITS_S[found[2]]


def _limits(options: dict[str, Any]) -> TokenLimits:
    """The limits of the token, checked as the body of a mint over REST is."""
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
    limits = _checked("NewAppToken", given) if given else NO_LIMITS
    try:
        check_seat(options["login"], limits)
    except NoSuchSeat as refused:
        raise CommandError(f"--{refused}") from None
    return limits


def _checked(body_name: str, given: dict[str, Any]) -> TokenLimits:
    # Imported only when limits are given: REST framework doubles the imports of this command.
    body = import_string(f"accounts.api.account.{body_name}")(data={"name": "x", **given})
    if not body.is_valid():
        raise CommandError("; ".join(_flaws(body.errors)))
    limits: TokenLimits = body.limits()
    return limits


def _flaws(errors: Any) -> Iterator[str]:
    """Each option that has a flaw, with its first one."""
    for name, said in errors.items():
        while isinstance(said, list | dict):
            said = next(iter(said.values() if isinstance(said, dict) else said))
        yield f"--{name.replace('_', '-')}: {said}"
