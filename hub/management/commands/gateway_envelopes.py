"""`manage.py gateway_envelopes`: moves messages of a team between the hub and its older transport, Redis."""

import sys
from argparse import ArgumentParser
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, nullcontext
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, Literal

import msgspec
from django.core.management.base import CommandError
from redis import Redis
from redis.exceptions import RedisError

from accounts.models import User
from gateway.service.inbox import deliver, read_waiting
from gateway.wire.errors import FrameRefused
from gateway.wire.frames import MAX_FRAME_BYTES, Json
from gateway.wire.redis_envelopes import DIALECTS, Dialect, from_legacy, to_legacy
from hub.management.command import HubCommand, add_login, owner_of
from kit import strict_json

SHOWN_BAD = 100
INBOX, AGENTS = "openclaw:a2a:inbox:", "openclaw:a2a:agents"
MESSAGES = "A2A:messages:"
AT_ONCE = 500
KEPT_S = 604_800
TIMEOUT_S = 10.0
HELP = (
    "import: put the messages of files or Redis lists into the inboxes of a team; an agent gets them when it"
    " connects. export: write what waits there. Neither takes anything away; an import may be repeated."
)


class Command(HubCommand):
    help = HELP
    refusals = (OSError,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument("direction", choices=["import", "export"])
        add_login(parser)
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
        """Move the messages; exit code 1 if one was bad."""
        user = owner_of(options)
        try:
            (self._import if options["direction"] == "import" else self._export)(user, options)
        except RedisError as failure:
            raise CommandError(f"Redis: {failure}") from None

    def _import(self, owner: User, options: dict[str, Any]) -> None:
        counts = {"stored": 0, "there already": 0, "of other types": 0, "bad": 0}
        with _opened(options["file"], "rb", sys.stdin.buffer) as file:
            found = _read_lists(_connect(options["redis"])) if options["redis"] else _lines_of(file)
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
            count = _write_lists(_connect(options["redis"]), made, options["dialect"])
        else:
            with _opened(options["file"], "wb", sys.stdout.buffer) as file:
                count = _write_lines(file, made)
        self.stderr.write(f"{count} written")


def _import_one(owner: User, text: bytes) -> str:
    """Store one message; returns what became of it.

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
    """The lines that are not blank; only the beginning of a line that is too long."""
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


def _connect(url: str) -> Redis:
    """A client for a Redis server that gives up after TIMEOUT_S."""
    client: Redis = Redis.from_url(url, socket_timeout=TIMEOUT_S, socket_connect_timeout=TIMEOUT_S)
    return client


def _read_lists(redis: Redis) -> Iterator[tuple[str, bytes]]:
    """Every envelope in the lists of both dialects with its place, the oldest of each list first."""
    for prefix in (INBOX, MESSAGES):
        for key in sorted(redis.scan_iter(match=f"{prefix}*", count=AT_ONCE)):
            if redis.type(key) == b"list":
                yield from _read_list(redis, key, is_newest_first=prefix == INBOX)


def _write_lists(redis: Redis, envelopes: Iterable[Json], dialect: Dialect) -> int:
    """Add envelopes to the lists of a dialect, in order; returns their number."""
    count = 0
    for envelope in envelopes:
        count += 1
        text = msgspec.json.encode(envelope)
        if dialect == "inbox":
            redis.sadd(AGENTS, envelope["to"])
            redis.lpush(f"{INBOX}{envelope['to']}", text)
        else:
            key = f"{MESSAGES}{envelope['channel']}:{datetime.now(UTC).date().isoformat()}"
            redis.rpush(key, text)
            redis.expire(key, KEPT_S)
    return count


def _read_list(redis: Redis, key: bytes, *, is_newest_first: bool) -> Iterator[tuple[str, bytes]]:
    """Read a list by index from its oldest end, so that entries added meanwhile at the other end move no index."""
    name = key.decode(errors="replace")
    for start in range(0, redis.llen(key), AT_ONCE):
        first, last = start, start + AT_ONCE - 1
        if is_newest_first:
            first, last = -1 - last, -1 - first
        found = redis.lrange(key, first, last)
        for index, text in enumerate(reversed(found) if is_newest_first else found):
            yield f"{name}[{start + index}]", text if isinstance(text, bytes) else text.encode()
