"""`manage.py account`: look at one account, and change its access, by the hub's operator."""

from argparse import ArgumentParser
from typing import Any

from django.db.models import Q

from accounts import access
from accounts.models import Credential
from hub.management.command import HubCommand, add_login, owner_of

SESSION = Credential.Kind.SESSION
SWITCHES = {
    "suspend": ("is_active", False),
    "reinstate": ("is_active", True),
    "give_staff": ("is_staff", True),
    "take_staff": ("is_staff", False),
}


class Command(HubCommand):
    help = (
        "Show an account, after the changes that the options name: its access, sign-ins, tokens and groups."
        " The log of the admin has no entry of it. Works while the hub runs."
    )
    refusals = (access.AccessRefused,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        add_login(parser, "whose account")
        active, staff = parser.add_mutually_exclusive_group(), parser.add_mutually_exclusive_group()
        active.add_argument("--suspend", action="store_true", help="refuse its tokens, hide its agents")
        active.add_argument("--reinstate", action="store_true", help="end the suspension")
        staff.add_argument("--give-staff", action="store_true", help="make the user a member of the staff")
        staff.add_argument("--take-staff", action="store_true", help="take the staff rights away")
        parser.add_argument("--end-sessions", action="store_true", help="end all sign-ins")
        parser.add_argument(
            "--revoke-tokens", action="store_true", help="revoke all tokens, and sign programs out"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Change what the options say, and print the account."""
        user = owner_of(options)
        given = dict(switch for name, switch in SWITCHES.items() if options[name])
        if given:
            user = access.change_access(user, given, by=None)
        if options["end_sessions"]:
            access.revoke_credentials(user, Q(kind=SESSION), by=None)
        if options["revoke_tokens"]:
            access.revoke_tokens(user, by=None)
        state = "erased" if user.closed_at else "active" if user.is_active else "suspended"
        self.stdout.write(f"@{user.login}\t{state}{', staff' if user.is_staff else ''}")
        live = user.credentials.live()
        self.stdout.write(f"sign-ins\t{live.filter(kind=SESSION).count()}")
        self.stdout.write(f"tokens\t{live.exclude(kind=SESSION).filter(grant=None).count()}")
        self.stdout.write(f"programs\t{user.client_grants.live().count()}")
        for one in user.memberships.select_related("group__account").order_by("group__account__login"):
            self.stdout.write(f"@{one.group.slug}\t{one.role}")
