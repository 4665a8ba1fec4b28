"""`manage.py pause_sending`: for a restored copy."""

from argparse import ArgumentParser
from typing import Any

from django.core.management.base import CommandError
from django.db import DatabaseError

from hub.management.command import HubCommand
from webhooks.service.outbox import pause_sending


class Command(HubCommand):
    help = (
        "Send no webhook deliveries and no pushes, in any process, until resume_sending; they wait. For a database"
        " that was restored from a backup, before the hub starts on it. Works while the hub runs."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("--reason", default="", help="shown on /health")

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command, and print the new state."""
        try:
            pause, is_new = pause_sending(options["reason"])
        except DatabaseError:
            raise CommandError("the database is of an older release: run migrate first") from None
        self.stdout.write("sending is paused" if is_new else f"sending is paused since {pause.paused_at:%F %T}")
