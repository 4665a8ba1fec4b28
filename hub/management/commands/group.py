"""`manage.py group`: list groups, and change their members, by the hub's operator."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError

from accounts import groups
from accounts.errors import SignInRefused
from accounts.models import Group, Membership, User
from hub.management.command import HubCommand


class Command(HubCommand):
    help = (
        "List the groups, or one group's members; add a user or change a role, or remove a user: for a group whose"
        " maintainers are gone; or set the claim that makes members. Works while the hub runs."
    )
    refusals = (SignInRefused,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("slug", nargs="?", default="", help="the group; without: list all groups")
        choice = parser.add_mutually_exclusive_group()
        choice.add_argument("--add", metavar="LOGIN", help="add this user, or change the role")
        choice.add_argument("--remove", metavar="LOGIN", help="remove this user")
        choice.add_argument(
            "--claim", metavar="VALUE", help="the value of OIDC_GROUPS_CLAIM that makes members; '' for none"
        )
        parser.add_argument("--role", choices=Membership.Role.values, default="member", help="with --add; member")

    def handle(self, *args: Any, **options: Any) -> None:
        """Change what the options say, and print the groups or the members."""
        if not options["slug"]:
            for one in Group.objects.select_related("account").order_by("account__login"):
                self.stdout.write(f"@{one.slug}\t{one.name}")
            return
        group = Group.objects.filter(account__login__iexact=options["slug"].removeprefix("@")).first()
        if group is None:
            raise CommandError(f"there is no group @{options['slug']}")
        if login := options["add"]:
            groups.add_member(group, self._user(login), options["role"], by=None)
        elif login := options["remove"]:
            groups.remove_member(group, self._user(login), by=None)
        elif options["claim"] is not None:
            groups.set_claim_value(group, options["claim"], by=None)
        for member in group.memberships.select_related("user").order_by("user__login"):
            self.stdout.write(f"@{member.user.login}\t{member.role}")

    def _user(self, login: str) -> User:
        user = User.objects.named(login.removeprefix("@"))
        if user is None:
            raise CommandError(f"no user has the login {login}")
        return user
