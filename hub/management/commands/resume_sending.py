"""`manage.py resume_sending`: end a pause."""

from typing import Any

from hub.management.command import HubCommand
from webhooks.service.outbox import resume_sending


class Command(HubCommand):
    help = "Send webhook deliveries and pushes again, those that waited first. Works while the hub runs."

    def handle(self, *args: Any, **options: Any) -> None:
        """Run the command, and print the new state."""
        self.stdout.write("sending goes on" if resume_sending() else "sending was not paused")
