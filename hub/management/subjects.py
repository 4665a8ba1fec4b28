"""The subjects of `halt` and `resume`, as options."""

from argparse import ArgumentParser
from collections.abc import Mapping
from typing import Any

from django.core.management.base import CommandError

from agents.core.halt_rules import HaltSubject, NoSuchSubject, get_halt_subject
from agents.models import Halt


def add_subject(parser: ArgumentParser) -> None:
    """One of the options, and only one."""
    choice = parser.add_mutually_exclusive_group(required=True)
    choice.add_argument("--agent", metavar="OWNER/SLUG", help="one agent")
    choice.add_argument("--owner", metavar="LOGIN", help="all agents and sessions of a user")
    choice.add_argument("--caller", metavar="LOGIN", help="all that a user asks")


def subject_of(options: Mapping[str, Any]) -> HaltSubject:
    """The subject that the options name.

    Raises:
        CommandError: nothing has the name.
    """
    kind = next(str(one) for one in Halt.Kind if options[one])
    try:
        return get_halt_subject(kind, options[kind])
    except NoSuchSubject as unknown:
        raise CommandError(f"{unknown}: {options[kind]}") from None
