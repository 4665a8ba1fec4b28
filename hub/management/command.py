"""The base of the hub's own commands."""

from django.core.management.base import BaseCommand


class HubCommand(BaseCommand):
    """A command that runs without the checks of `manage.py check`, which import all pages (docs/adr/0163)."""

    requires_system_checks = ()
