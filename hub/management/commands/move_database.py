"""`manage.py move_database`: from SQLite to PostgreSQL."""

from argparse import ArgumentParser
from collections.abc import Sequence
from typing import Any

from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.core.management.base import CommandError
from django.db import DatabaseError

from hub.data_dir import DataDirInUse, lock
from hub.database_move import CannotMove, Moved, move, open_target
from hub.management.command import HubCommand
from hub.postgresql import connection_settings

HEAD = ("table", "rows here", "rows there", "sum here", "sum there", "")


class Command(HubCommand):
    help = (
        "Carry everything of an embedded hub over to an empty, migrated PostgreSQL database, then compare both,"
        " table by table. The hub must be stopped. A failure leaves the target empty; the SQLite database is never"
        " changed."
    )

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the options of the command."""
        parser.add_argument(
            "--to", required=True, metavar="DATABASE_URL", help="postgres://user:password@host/name"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        """Copy the database, and print the compared sums."""
        if not settings.IS_EMBEDDED:
            raise CommandError("DATABASE_URL is set: run this with the embedded hub's environment, DATA_DIR alone")
        try:
            lock(settings.DATA_DIR)
            open_target(connection_settings(options["to"]))
            moved = move(lambda line: self.stderr.write(line, self.style.HTTP_INFO))
        except (DataDirInUse, ImproperlyConfigured, CannotMove) as cannot:
            raise CommandError(f"{cannot}; nothing was moved") from None
        except DatabaseError as failure:
            raise CommandError(f"{str(failure).strip()}; nothing was moved") from None
        self._show(moved)
        if wrong := [one.table for one in moved if not one.is_right]:
            raise CommandError(f"these differ, nothing was moved: {', '.join(wrong)}")
        self._print_next_steps(moved)

    def _show(self, moved: Sequence[Moved]) -> None:
        lines = [HEAD, *map(_line, moved)]
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            self.stdout.write("  ".join(map(str.ljust, line, widths)).rstrip())

    def _print_next_steps(self, moved: Sequence[Moved]) -> None:
        if cleaned := sum(one.cleaned for one in moved):
            self.stderr.write(f"{cleaned} texts held NUL, which PostgreSQL has no room for: each is now U+FFFD")
        rows = sum(one.there.rows for one in moved)
        self.stdout.write(f"moved {rows} rows; keep DATA_DIR, it holds the secret key")


def _line(one: Moved) -> tuple[str, ...]:
    verdict = "same" if one.is_right else "DIFFERS"
    return (one.table, str(one.here.rows), str(one.there.rows), str(one.here), str(one.there), verdict)
