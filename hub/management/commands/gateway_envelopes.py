"""`manage.py gateway_envelopes`: moves messages of a team between the hub and its older transport, Redis."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec
from django.core.management.base import BaseCommand, CommandError
from redis.exceptions import RedisError

from accounts.models import User
from gateway.adapters.delivery import deliver, read_waiting
from gateway.adapters.redis_envelopes import DIALECTS, from_legacy, to_legacy
from gateway.adapters.redis_lists import connect, read_lists, write_lists
from gateway.envelope import MAX_FRAME_BYTES, Json
from gateway.errors import FrameRefused
from kit import strict_json

SHOWN_BAD = 100
HELP = (
    "import: put the messages of files or Redis lists into the inboxes of a team; an agent gets them when it"
    " connects. export: write what waits there. Neither takes anything away; an import may be repeated."
)


class Command(BaseCommand):
    help = HELP

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Its options."""
        parser.add_argument("direction", choices=["import", "export"])
        parser.add_argument("--login", required=True, help="whose team")
        parser.add_argument("--redis", metavar="URL", help="read or write the lists of this server, not a file")
        parser.add_argument(
            "--file", default="-", help="JSON, an envelope on each line; -: standard input or output"
        )
        parser.add_argument(
            "--dialect",
            default=DIALECTS[0],
            choices=DIALECTS,
            help="of an export: envelopes of channels, or those of inboxes; an import takes both",
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Move them; exit code 1 when one of them was bad."""
        user = User.objects.named(options["login"])
        if user is None:
            raise CommandError(f"there is no account @{options['login']}")
        try:
            (self._import if options["direction"] == "import" else self._export)(user, options)
        except RedisError as failure:
            raise CommandError(f"Redis: {failure}") from None
        except OSError as failure:
            raise CommandError(str(failure)) from None

    def _import(self, owner: User, options: dict[str, Any]) -> None:
        counts = {"stored": 0, "there already": 0, "of other types": 0, "bad": 0}
        with _opened(options["file"], "rb", sys.stdin.buffer) as file:
            found = read_lists(connect(options["redis"])) if options["redis"] else _lines_of(file)
            for place, text in found:
                try:
                    outcome = _import_one(owner, text)
                except (FrameRefused, strict_json.UnreadableText) as flaw:
                    outcome = "bad"
                    if counts["bad"] < SHOWN_BAD:
                        self.stderr.write(f"{place}: {_describe(flaw)}")
                counts[outcome] += 1
        self.stderr.write(", ".join(f"{count} {name}" for name, count in counts.items()))
        if counts["bad"]:
            raise CommandError(f"{counts['bad']} were not imported")

    def _export(self, owner: User, options: dict[str, Any]) -> None:
        made = (to_legacy(frame, options["dialect"]) for frame in read_waiting(owner))
        if options["redis"]:
            count = write_lists(connect(options["redis"]), made, options["dialect"])
        else:
            with _opened(options["file"], "wb", sys.stdout.buffer) as file:
                count = _write_lines(file, made)
        self.stderr.write(f"{count} written")


def _import_one(owner: User, text: bytes) -> str:
    """Store one; what became of it.

    Raises:
        FrameRefused, UnreadableText: it is bad.
    """
    if len(text) > MAX_FRAME_BYTES:
        raise strict_json.BadShape(f"over {MAX_FRAME_BYTES} bytes")
    envelope = strict_json.read(text)
    if not isinstance(envelope, dict):
        raise strict_json.BadShape("an envelope is an object")
    frame = from_legacy(envelope)
    if frame["type"] not in ("message", "broadcast"):
        return "of other types"
    return "stored" if deliver(owner, frame) else "there already"


def _describe(flaw: Exception) -> str:
    return f"{flaw.code.value} {flaw.code.name}: {flaw}" if isinstance(flaw, FrameRefused) else str(flaw)


def _opened(name: str, mode: Literal["rb", "wb"], standard: BinaryIO) -> AbstractContextManager[BinaryIO]:
    return nullcontext(standard) if name == "-" else Path(name).open(mode)


def _lines_of(file: BinaryIO) -> Iterator[tuple[str, bytes]]:
    """The lines that are not blank; of one that is too long the beginning, and the rest is passed over."""
    number = 0
    while line := file.readline(MAX_FRAME_BYTES + 2):
        number += 1
        rest = line
        while rest and not rest.endswith(b"\n"):
            rest = file.readline(MAX_FRAME_BYTES)
        if line.strip():
            yield f"line {number}", line.rstrip(b"\r\n")


def _write_lines(file: BinaryIO, envelopes: Iterable[Json]) -> int:
    count = 0
    for envelope in envelopes:
        file.write(msgspec.json.encode(envelope) + b"\n")
        count += 1
    file.flush()
    return count
