"""Whose team a command is about, as an option."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from accounts.models import User


def add_login(parser: ArgumentParser) -> None:
    """The option."""
    parser.add_argument("--login", required=True, help="whose team")


def owner_of(options: Mapping[str, Any]) -> User:
    """The user that it names.

    Raises:
        CommandError: no user has the login.
    """
    owner = User.objects.named(options["login"])
    if owner is None:
        raise CommandError(f"no user has the login {options['login']}")
    return owner
