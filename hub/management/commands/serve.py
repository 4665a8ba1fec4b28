"""`manage.py serve`: run one hub process."""

import socket
import sys
from argparse import ArgumentParser
from typing import Any

from django.conf import settings
from django.core.management.base import CommandError

from hub import embedded_schema
from hub.data_dir import DataDirInUse, lock
from hub.management.command import HubCommand
from hub.server import HubServer
from hub.sqlite.base import kept
from kit.malloc import bound_malloc


class Command(HubCommand):
    help = (
        "Run one hub process on HOST:PORT. Embedded (no DATABASE_URL): migrates its SQLite database and runs the"
        " jobs too. With DATABASE_URL and REDIS_URL: run `migrate` before, and a Celery worker with beat beside."
    )
    refusals = (DataDirInUse,)

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Add the option of the command."""
        parser.add_argument("--json", action="store_true", help="when it serves, print one line of JSON")

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until a signal; exits 0 after a clean drain."""
        _check_port()
        if settings.IS_EMBEDDED:
            # The descriptor is never closed: the lock holds until the process ends, however it ends.
            lock(settings.DATA_DIR)
            # Under the lock: two processes must not migrate one SQLite file.
            embedded_schema.bring_up_to_date()
        sys.setswitchinterval(SWITCH_INTERVAL_S)
        bound_malloc()
        server = HubServer(as_json=options["json"])
        with kept.keeping():
            server.run()
        if not server.started:
            raise CommandError("the hub could not start")


SWITCH_INTERVAL_S = 0.001


def _check_port() -> None:
    family = socket.AF_INET6 if ":" in settings.HOST else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((settings.HOST, settings.PORT))
        except OSError as taken:
            raise CommandError(
                f"cannot listen on {settings.HOST}:{settings.PORT}: {taken.strerror}; set PORT"
            ) from None
