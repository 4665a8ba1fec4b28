"""`manage.py rotate_webhook_keys`: seal what is sealed at rest with the newest key."""

from typing import Any

from django.core.management.base import BaseCommand, CommandError

from a2a_bridge.pushes import sealed
from accounts import signing
from webhooks.keyring import reseal_all


class Command(BaseCommand):
    help = (
        "Seal the signing secrets of all webhooks and the hub's own signing key with the newest of WEBHOOK_KEYS,"
        " else with SECRET_KEY. Afterwards older keys can go. Works while the hub runs; again is fine."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Say how many."""
        done, unreadable = reseal_all()
        sealed.reseal_all()  # they live a day: one that cannot be read is not worth a word
        self.stdout.write(f"{done} sealed anew")
        if unreadable:
            raise CommandError(f"{unreadable} cannot be read by any key: their owners must roll them")
        if not signing.reseal():
            raise CommandError("the hub's signing key cannot be read by any key: run rotate_signing_key")
