"""The base of the hub's own commands, and the option that names whose team a command is about."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError

from accounts.models import User


class HubCommand(BaseCommand):
    """A command that runs without the checks of `manage.py check`, which import all pages (docs/adr/0163).

    `refusals`: exceptions whose text tells the operator why the command did nothing.
    """

    requires_system_checks = ()
    refusals: ClassVar[tuple[type[Exception], ...]] = ()

    def execute(self, *args: Any, **options: Any) -> str | None:
        """Run the command as Django does, with the text of a refusal in place of a traceback."""
        try:
            return super().execute(*args, **options)
        except self.refusals as refused:
            raise CommandError(str(refused)) from None


def add_login(parser: ArgumentParser, text: str = "whose team") -> None:
    """The option."""
    parser.add_argument("--login", required=True, help=text)


def owner_of(options: Mapping[str, Any]) -> User:
    """The user that it names.

    Raises:
        CommandError: no user has the login.
    """
    owner = User.objects.named(options["login"])
    if owner is None:
        raise CommandError(f"no user has the login {options['login']}")
    return owner
