"""`manage.py rotate_webhook_keys`: seal webhooks' secrets and remote servers' credentials anew."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from agents.links.remote import access
from webhooks import keyring


class Command(BaseCommand):
    help = (
        "Seal the signing secrets of all webhooks, and the credentials for remote A2A servers, with the newest of"
        " WEBHOOK_KEYS, else with SECRET_KEY."
        " Afterwards older keys can go. Works while the hub runs; again is fine."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Say how many."""
        done, unreadable = keyring.reseal_all()
        credentials, lost = access.reseal_all()
        self.stdout.write(f"{done + credentials} sealed anew")
        if unreadable + lost:
            raise CommandError(f"{unreadable + lost} cannot be read by any key: their owners must give them anew")
