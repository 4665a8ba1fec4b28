"""The base of the hub's own commands."""

from typing import Any, ClassVar

from django.core.management.base import BaseCommand, CommandError


class HubCommand(BaseCommand):
    """A command that runs without the checks of `manage.py check`, which import all pages (docs/adr/0163).

    `refusals`: exceptions whose text tells the operator why the command did nothing.
    """

    requires_system_checks = ()
    refusals: ClassVar[tuple[type[Exception], ...]] = ()

    def execute(self, *args: Any, **options: Any) -> str | None:
        """As Django, with the text of a refusal in place of a traceback."""
        try:
            return super().execute(*args, **options)
        except self.refusals as refused:
            raise CommandError(str(refused)) from None
