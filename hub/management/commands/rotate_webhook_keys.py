"""`manage.py rotate_webhook_keys`: seal what is sealed at rest with the newest key."""

from typing import Any

from django.core.management.base import CommandError

from a2a_bridge.service import push_configs
from accounts import signing
from agents.links.remote.card import reseal_all
from agnt.service.keys import reseal_secrets as reseal_agnt_secrets
from gateway.service.queue_rows import reseal_messages
from gateway.service.session_entries import reseal_entries
from gateway.service.team_rules import reseal_keys
from hub.management.command import HubCommand
from webhooks.service.sending import reseal_secrets


class Command(HubCommand):
    help = (
        "Seal the signing secrets of all webhooks, the credentials for remote A2A servers, what push configs"
        " hold, keys, sessions and letters of teams, signing secrets of AGNT keys and the hub's own signing key"
        " with the newest of WEBHOOK_KEYS, else with SECRET_KEY. Afterwards older keys can be removed. Works"
        " while the hub runs, and can be repeated."
    )

    def handle(self, *args: Any, **options: Any) -> None:
        """Seal all secrets again, and print their numbers."""
        done, unreadable = reseal_secrets()
        credentials, lost = reseal_all()
        envelopes, unread = reseal_keys()
        agnt_keys, unsealed = reseal_agnt_secrets()
        # They live a day, so the command does not report those that cannot be read.
        pushes, _ = push_configs.reseal_all()
        entries, damaged = reseal_entries()
        letters, spoilt = reseal_messages()
        self.stdout.write(
            f"sealed anew: secrets of {done} webhooks, credentials for {credentials} remote servers,"
            f" {pushes} push configs, {entries} entries of sessions, {letters} letters,"
            f" {envelopes} keys of envelopes, signing secrets of {agnt_keys} AGNT keys"
        )
        if missing := unreadable + lost + unread + unsealed:
            raise CommandError(f"{missing} cannot be read by any key: their owners must give them anew")
        if damaged or spoilt:
            self.stderr.write(
                f"{damaged} entries of sessions and {spoilt} letters cannot be read by any key: they are lost"
            )
        if not signing.reseal():
            raise CommandError("the hub's signing key cannot be read by any key: run rotate_signing_key")
