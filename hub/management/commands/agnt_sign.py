"""`manage.py agnt_sign`: signs a payload as AGNT does."""

import sys
from argparse import ArgumentParser
from typing import Any

from django.core.management.base import BaseCommand, CommandError

from clawbridge.agnt.fields import is_name
from clawbridge.agnt.signing import canonical_json, read_key, sign_payload
from kit import strict_json

MAX_PAYLOAD_BYTES = 1_048_576


class Command(BaseCommand):
    help = (
        "Sign a payload, which is JSON on standard input. Prints the canonical JSON that is signed, and _sig in"
        " the next line. _ts, _from and _sig of the payload are replaced. Needs no database and no running hub."
    )
    requires_system_checks = []
    stealth_options = ("stdin",)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("--key", required=True, metavar="SECRET", help="the secret; hex:… names its bytes")
        parser.add_argument("--from", required=True, dest="sender", metavar="SENDER", help="of the envelope")
        parser.add_argument("--ts", required=True, type=int, metavar="UNIX", help="when: Unix seconds")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the signed payload and the signature."""
        if not is_name(options["sender"]):
            raise CommandError("--from: want 1 to 128 characters of A-Z a-z 0-9 _ . : -")
        if options["ts"] < 0:
            raise CommandError("--ts: want Unix seconds")
        try:
            key = read_key(options["key"])
        except ValueError as wrong:
            raise CommandError(f"--key: {wrong}") from None
        signed = sign_payload(_read_payload(options), key=key, sender=options["sender"], at_s=options["ts"])
        signature = signed.pop("_sig")
        self.stdout.write(canonical_json(signed).decode())
        self.stdout.write(signature)


def _read_payload(options: dict[str, Any]) -> dict[str, Any]:
    source = options.get("stdin") or sys.stdin.buffer
    body = source.read(MAX_PAYLOAD_BYTES + 1)
    if len(body) > MAX_PAYLOAD_BYTES:
        raise CommandError(f"the payload is over {MAX_PAYLOAD_BYTES} bytes")
    try:
        payload = strict_json.read(body)
    except strict_json.UnreadableText as unreadable:
        raise CommandError(f"the payload: {unreadable}") from None
    if not isinstance(payload, dict):
        raise CommandError("the payload: want an object")
    return payload
