"""`manage.py rotate_signing_key`: sign with a new key from now on."""

from typing import Any

from accounts.signing import VERIFIABLE_DAYS, rotate
from hub.management.command import HubCommand


class Command(HubCommand):
    help = (
        "Make a new key and sign cards and tokens with it from now on. The old private key is forgotten; its"
        f" public key stays at /.well-known/jwks.json for {VERIFIABLE_DAYS} days. Works while the hub runs."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Make a new signing key, and print its id."""
        self.stdout.write(f"signing with {rotate()}")
