"""`manage.py rotate_webhook_keys`: seal every webhook's secret with the newest key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from webhooks.keyring import reseal_all


class Command(BaseCommand):
    help = (
        "Seal the signing secrets of all webhooks with the newest of WEBHOOK_KEYS, else with SECRET_KEY."
        " Afterwards older keys can go. Works while the hub runs; again is fine."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Say how many."""
        done, unreadable = reseal_all()
        self.stdout.write(f"{done} sealed anew")
        if unreadable:
            raise CommandError(f"{unreadable} cannot be read by any key: their owners must roll them")
